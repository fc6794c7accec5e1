#!/bin/sh
set -eu
[ "$ROLE" = client ] || exit 0
ip rule del priority 900
