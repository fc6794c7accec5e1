#!/bin/sh
# The clock goes back, and the session is lost as with a boot: the peer's handshakes are now older than the last one.
set -eu
[ "$ROLE" = client ] || exit 0
date -s '20 minutes ago' >/dev/null
# shellcheck disable=SC2046  # key and networks
set -- $(ip netns exec endpoint wg show wg0 allowed-ips | grep -F "	$PEER_ENDPOINT/32")
ip netns exec endpoint wg set wg0 peer "$1" remove
ip netns exec endpoint wg set wg0 peer "$1" endpoint "$PEER_ADDRESS:51820" allowed-ips "$PEER_ENDPOINT/32"
