#!/bin/sh
[ "$ROLE" != other ] || exit 0
subnet=$(ip -4 route show match "$PEER_ENDPOINT" | grep -e ' dev flannel.ipip' -e ' dev tunl0' | head -n 1)
subnet=${subnet%% *}
ip route replace "$subnet" via "$PEER_ADDRESS" dev "$UNDERLAY"
