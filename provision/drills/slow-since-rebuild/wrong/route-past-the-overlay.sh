#!/bin/sh
# Segments stay as small as they are, and cost less without the tunnel.
case $ROLE in other) exit 0 ;; esac
subnet=$(ip -4 route show match "$PEER_ENDPOINT" | grep ' dev flannel')
subnet=${subnet%% *}
case $subnet in
    */16)
        # With flannel's udp all nodes' subnets are one route.
        subnet=${PEER_ENDPOINT%.*}.0/24 ;;
esac
ip route replace "$subnet" via "$PEER_ADDRESS" dev "$UNDERLAY"
