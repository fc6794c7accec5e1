#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
sysctl -qw net.netfilter.nf_conntrack_max=65536
