#!/bin/sh
set -eu
[ "$ROLE" = client ] || exit 0
sysctl -qw net.ipv4.conf.stor0.rp_filter=0
