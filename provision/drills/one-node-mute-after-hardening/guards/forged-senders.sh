#!/bin/sh
[ "$ROLE" = client ] || exit 0
[ -e /sys/class/net/stor0 ] || exit 0
filter() { cat "/proc/sys/net/ipv4/conf/$1/rp_filter" 2>/dev/null || echo 0; }
for card in "$UNDERLAY" stor0; do
    [ $(($(filter all) + $(filter "$card"))) -gt 0 ] || { echo "$card takes packets from any sender"; exit 1; }
done
