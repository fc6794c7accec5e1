#!/bin/sh
set -eu
[ "$ROLE" != server ] || exit 0
ip route add "${PEER_ENDPOINT%.*}.0/24" via "$PEER_ADDRESS" dev "$UNDERLAY"
