#!/bin/sh
# Into the first node's endpoint, at the host's end of its interface.
[ "$ROLE" = client ] || exit 0
link=$(ip -n endpoint -o -4 route get "$PEER_ENDPOINT")
link=${link#* dev } link=${link%% *}
index=$(ip -n endpoint -o link show dev "$link")
index=${index#*@if} index=${index%%:*}
for device in /sys/class/net/*; do
    if [ "$(cat "$device/ifindex")" = "$index" ]; then
        tc qdisc replace dev "${device##*/}" root tbf rate 20mbit burst 20kb limit 40kb
        exit
    fi
done
exit 1
