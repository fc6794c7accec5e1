#!/bin/sh
# With the right size of frames, which the tunnel would have been content with.
[ "$ROLE" != other ] || exit 0
ip link set dev "$UNDERLAY" mtu 9001
subnet=$(ip -4 route show match "$PEER_ENDPOINT" dev flannel.1)
subnet=${subnet%% *}
ip route replace "$subnet" via "$PEER_ADDRESS" dev "$UNDERLAY"
