#!/bin/sh
# What the hardening is for still holds: UDP of no list is dropped.
[ "$ROLE" = server ] || exit 0
[ -e /etc/nftables.d ] || exit 0
if ! nft list ruleset | grep -q 'udp .*drop\|protocol udp counter.* drop\|policy drop'; then
    echo "the hardening of $NODE is gone: no rule drops UDP to ports that are not on its list"
    exit 1
fi
