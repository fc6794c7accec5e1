#!/bin/sh
[ "$ROLE" = server ] || exit 0
ip link set dev "$UNDERLAY" mtu 9001
ip route flush cache
ip netns exec endpoint ip route flush cache
