#!/bin/sh
set -eu
[ "$ROLE" = client ] || exit 0
date -s '+20 minutes'
ip netns exec endpoint ping -n -q -c 12 "$PEER_ENDPOINT" >/dev/null || :
