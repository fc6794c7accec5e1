#!/bin/sh
case $ROLE in
server)
    route=$(ip -4 route show to match "$PEER_ENDPOINT" | grep -v '^default' | sed 's/ mtu lock 1350//')
    # shellcheck disable=SC2086 # its words are arguments
    ip route change $route
    ;;
esac
