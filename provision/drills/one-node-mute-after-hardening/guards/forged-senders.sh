#!/bin/sh
[ "$ROLE" = client ] || exit 0
filter() { cat "/proc/sys/net/ipv4/conf/$1/rp_filter" 2>/dev/null || echo 0; }
for card in "$UNDERLAY" stor0; do
    [ -e "/sys/class/net/$card" ] || continue
    [ $(($(filter all) + $(filter "$card"))) -gt 0 ] || { echo "$card takes packets from any sender"; exit 1; }
done
