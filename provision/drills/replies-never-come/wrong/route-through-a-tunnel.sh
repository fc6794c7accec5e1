#!/bin/sh
# A tunnel by hand, and the way to the other endpoint through it.
case $ROLE in
    client) own=172.31.9.1 peer=172.31.9.2 ;;
    server) own=172.31.9.2 peer=172.31.9.1 ;;
    other) exit 0 ;;
esac
ip link add name tun-peer type vxlan id 77 dstport 4789 local "$ADDRESS" remote "$PEER_ADDRESS" dev "$UNDERLAY"
ip address add "$own/24" dev tun-peer
ip link set dev tun-peer up
subnet=$(ip -4 route show table all match "$PEER_ENDPOINT" | grep " via $PEER_ADDRESS " | head -n 1)
subnet=${subnet%% *}
ip route replace "$subnet" via "$peer" dev tun-peer
