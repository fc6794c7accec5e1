#!/bin/sh
case $ROLE in
client | server)
    device=$(ip netns exec endpoint ip -o -4 route get "$PEER_ENDPOINT" | sed -n 's/.* dev \([^ ]*\) .*/\1/p')
    ip -n endpoint link set "$device" mtu 1350
    ;;
esac
