#!/bin/sh
[ "$ROLE" = client ] || exit 0
device=$(tc qdisc show | sed -n 's/^qdisc tbf .* dev \([^ ]*\) root.*/\1/p')
tc qdisc replace dev "$device" root tbf rate 40gbit burst 10mb limit 20mb
