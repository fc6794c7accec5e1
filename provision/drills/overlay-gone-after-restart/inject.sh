#!/bin/sh
[ "$ROLE" = server ] || exit 0
systemctl stop overlaylab-flannel
ip link delete flannel.1
ip link add name repl0 mtu 1450 type vxlan id 1 dstport 8472 local "$ADDRESS" dev "$UNDERLAY"
ip address add 172.31.250.2/24 dev repl0
ip link set dev repl0 up
# That it ends is the fault.
systemctl start overlaylab-flannel 2>/dev/null || :
