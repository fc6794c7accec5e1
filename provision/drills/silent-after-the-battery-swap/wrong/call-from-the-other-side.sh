#!/bin/sh
[ "$ROLE" = server ] || exit 0
ip netns exec endpoint ping -n -q -c 5 "$PEER_ENDPOINT" || :
