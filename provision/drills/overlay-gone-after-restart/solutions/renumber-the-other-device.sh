#!/bin/sh
[ "$ROLE" = server ] || exit 0
ip link delete repl0
ip link add name repl0 mtu 1450 type vxlan id 700 dstport 4789 local "$ADDRESS" dev "$UNDERLAY"
ip address add 172.31.250.2/24 dev repl0
ip link set dev repl0 up
systemctl restart overlaylab-flannel
