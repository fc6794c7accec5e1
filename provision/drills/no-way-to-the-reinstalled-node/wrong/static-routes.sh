#!/bin/sh
set -eu
[ "$ROLE" != other ] || exit 0
ip route replace "$PEER_ENDPOINT/32" via "$PEER_ADDRESS" dev "$UNDERLAY"
