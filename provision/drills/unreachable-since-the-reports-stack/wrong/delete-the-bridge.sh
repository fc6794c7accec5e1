#!/bin/sh
set -eu
[ "$ROLE" = client ] || exit 0
ip link delete br-5be1f0a7c3d2
