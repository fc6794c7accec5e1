#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
iptables -I FORWARD -i "$UNDERLAY" -o romana-endpoint -j ACCEPT
iptables -I FORWARD -i romana-endpoint -o "$UNDERLAY" -j ACCEPT
