#!/bin/sh
set -eu
[ "$ROLE" = client ] || exit 0
# As Flannel's own route goes; in mode udp it has one for the whole network.
route=$(ip -4 route show "${PEER_ENDPOINT%.*}.0/24")
[ "$MODE" != udp ] || route="_ dev flannel0"
# shellcheck disable=SC2086  # words
ip route add "$PEER_ENDPOINT" ${route#* }
