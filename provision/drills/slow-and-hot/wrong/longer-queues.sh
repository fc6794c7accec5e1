#!/bin/sh
for device in "$UNDERLAY" cni0 flannel.1; do
    [ ! -e "/sys/class/net/$device" ] || ip link set dev "$device" txqueuelen 10000
done
