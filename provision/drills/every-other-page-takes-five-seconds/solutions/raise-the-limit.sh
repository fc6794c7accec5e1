#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
handle=$(nft -a list chain inet hardening protection | sed -n 's/.*udp dport 53 .*# handle //p')
nft replace rule inet hardening protection handle "$handle" udp dport 53 limit rate over 500/second burst 500 packets drop
