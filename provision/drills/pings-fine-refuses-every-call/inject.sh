#!/bin/sh
# A container's namespace with the server's address, on the client's card. It announces itself when it comes up, and
# goes on asking for somebody who is not there: each question takes the address back from its owner.
set -eu
[ "$ROLE" = client ] || exit 0
container=cni-b7e20f4c-5d11-0a3e
ip netns add $container
ip link add link "$UNDERLAY" name mac1 netns $container type macvlan mode bridge
ip -n $container link set dev lo up
ip netns exec $container sysctl -qw net.ipv4.conf.mac1.arp_notify=1
ip -n $container address add "$PEER_ENDPOINT/16" dev mac1
ip -n $container link set dev mac1 up
cat >/run/systemd/system/export.service <<END
[Unit]
Description=Export of yesterday's orders
[Service]
NetworkNamespacePath=/run/netns/$container
ExecStart=/opt/overlaylab/bin/ping -n -q -i 1 ${ENDPOINT%.*}.250
END
systemctl daemon-reload
systemctl start export.service
