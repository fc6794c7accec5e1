#!/bin/sh
# The clock goes back, and the session is lost as with a boot: this node's handshakes are now older than the last one
# that the peer took. Its port is another one, too, so that the peer's own handshakes, which carry no time, find nobody.
set -eu
[ "$ROLE" = client ] || exit 0
# shellcheck disable=SC2046  # key and networks
set -- $(ip netns exec endpoint wg show wg0 allowed-ips | grep -F "	$PEER_ENDPOINT/32")
forget() {
    ip netns exec endpoint wg set wg0 peer "$1" remove
    ip netns exec endpoint wg set wg0 peer "$1" endpoint "$PEER_ADDRESS:51820" allowed-ips "$PEER_ENDPOINT/32"
}
# The peer has to have seen a handshake of this node's: until now, its own may have been the only one.
forget "$1"
ip netns exec endpoint ping -n -q -c 1 -w 15 "$PEER_ENDPOINT" >/dev/null
date -s '20 minutes ago' >/dev/null
forget "$1"
ip netns exec endpoint wg set wg0 listen-port 0
