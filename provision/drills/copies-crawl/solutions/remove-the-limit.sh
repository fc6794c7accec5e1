#!/bin/sh
[ "$ROLE" = client ] || exit 0
device=$(tc qdisc show | sed -n 's/^qdisc tbf .* dev \([^ ]*\) root.*/\1/p')
tc qdisc delete dev "$device" root
