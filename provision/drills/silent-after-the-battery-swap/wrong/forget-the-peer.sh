#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
# shellcheck disable=SC2046  # key and networks
set -- $(ip netns exec endpoint wg show wg0 allowed-ips | grep -F "	$PEER_ENDPOINT/32")
ip netns exec endpoint wg set wg0 peer "$1" remove
ip netns exec endpoint wg set wg0 peer "$1" endpoint "$PEER_ADDRESS:51820" allowed-ips "$PEER_ENDPOINT/32"
ip netns exec endpoint ping -n -q -c 5 "$PEER_ENDPOINT" >/dev/null || :
