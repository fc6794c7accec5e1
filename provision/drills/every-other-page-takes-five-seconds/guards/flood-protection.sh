#!/bin/sh
[ "$ROLE" = server ] || exit 0
[ -e /etc/nftables.d/hardening.nft ] || exit 0
rules=$(nft list ruleset)
case $rules in
    *'icmp type echo-request limit rate over'*drop*) ;;
    *) echo 'the flood protection is gone'; exit 1 ;;
esac
echo "$rules" | grep 'udp dport 53' | grep -q 'limit rate over .*drop' || { echo 'queries to the resolver are not limited any more'; exit 1; }
