#!/bin/sh
set -eu
[ "$ROLE" = client ] || exit 0
printf 'net.ipv4.neigh.default.gc_thresh%s\n' '1 = 4096' '2 = 8192' '3 = 16384' >/etc/sysctl.d/90-neighbours.conf
sysctl -q -p /etc/sysctl.d/90-neighbours.conf
sleep 3
