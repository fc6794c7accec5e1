#!/bin/sh
case $ROLE in other) exit 0 ;; esac
subnet=$(ip -4 route show match "$PEER_ENDPOINT" dev flannel.1)
subnet=${subnet%% *}
ip route replace "$subnet" via "$PEER_ADDRESS" dev "$UNDERLAY"
