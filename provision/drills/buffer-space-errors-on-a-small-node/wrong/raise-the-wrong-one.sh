#!/bin/sh
set -eu
[ "$ROLE" = client ] || exit 0
sysctl -qw net.ipv4.neigh.default.gc_thresh1=1024
