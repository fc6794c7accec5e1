#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
while ip rule del priority 5000 2>/dev/null; do :; done
