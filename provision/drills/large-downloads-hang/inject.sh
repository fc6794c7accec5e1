#!/bin/sh
case $ROLE in
server)
    route=$(ip -4 route show to match "$PEER_ENDPOINT" | grep -v '^default')
    # shellcheck disable=SC2086 # its words are arguments
    ip route change $route mtu lock 1350
    iptables -A OUTPUT -p icmp --icmp-type fragmentation-needed -j DROP
    ;;
esac
