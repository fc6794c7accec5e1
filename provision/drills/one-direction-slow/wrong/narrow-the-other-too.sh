#!/bin/sh
[ "$ROLE" = client ] || exit 0
ip link set dev "$UNDERLAY" mtu 1500
