#!/bin/sh
set -eu
[ "$ROLE" = client ] || exit 0
ip -n endpoint link set dev wg0 down
ip -n endpoint link set dev wg0 up
