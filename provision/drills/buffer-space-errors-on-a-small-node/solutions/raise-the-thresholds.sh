#!/bin/sh
set -eu
[ "$ROLE" = client ] || exit 0
sysctl -qw net.ipv4.neigh.default.gc_thresh3=1024 net.ipv4.neigh.default.gc_thresh2=512 net.ipv4.neigh.default.gc_thresh1=128
sleep 3
