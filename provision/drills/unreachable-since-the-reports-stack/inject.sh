#!/bin/sh
# A bridge as `docker compose` makes one, with half of the second node's subnet.
set -eu
[ "$ROLE" = client ] || exit 0
net=${PEER_ENDPOINT%.*} bridge=br-5be1f0a7c3d2
ip link add name $bridge type bridge
ip address add "$net.126/25" dev $bridge
ip link set dev $bridge up
