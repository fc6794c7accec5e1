#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
handle=$(nft -a list chain inet hardening protection | sed -n 's/.*udp dport 53 .*# handle //p')
nft add set inet hardening clients '{ type ipv4_addr; flags dynamic; timeout 1m; }'
nft replace rule inet hardening protection handle "$handle" \
    udp dport 53 update @clients '{ ip saddr limit rate over 50/second burst 100 packets }' drop
