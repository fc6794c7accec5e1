#!/bin/sh
set -eu
[ "$ROLE" = client ] || exit 0
ip address add 192.168.240.1/28 dev br-5be1f0a7c3d2
ip address del "${PEER_ENDPOINT%.*}.126/25" dev br-5be1f0a7c3d2
