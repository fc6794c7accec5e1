#!/bin/sh
set -eu
[ "$ROLE" = client ] || exit 0
sysctl -qw net.ipv4.conf.all.rp_filter=2 "net.ipv4.conf.$UNDERLAY.rp_filter=2" net.ipv4.conf.stor0.rp_filter=2
