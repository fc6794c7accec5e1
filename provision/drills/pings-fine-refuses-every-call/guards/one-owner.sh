#!/bin/sh
[ "$ROLE" = client ] || exit 0
for name in $(ip netns list | cut -d' ' -f1); do
    [ "$name" != endpoint ] || continue
    if ip -n "$name" -4 -o address | grep -qF " $PEER_ENDPOINT/"; then
        echo "two endpoints have the address $PEER_ENDPOINT"
        exit 1
    fi
done
