#!/bin/sh
# Whatever is fixed on a device stays.
set -- sg off tx off tso off gso off gro off
for device in "$UNDERLAY" $(ls /sys/class/net/cni0/brif 2>/dev/null) cni0 flannel.1; do
    ethtool -K "$device" "$@" >/dev/null 2>&1 || :
done
link=$(ip -n endpoint -o -4 route get "$PEER_ENDPOINT")
link=${link#* dev } link=${link%% *}
ip netns exec endpoint ethtool -K "$link" "$@" >/dev/null 2>&1 || :
ethtool -k "$UNDERLAY" | grep -q '^generic-segmentation-offload: off'
