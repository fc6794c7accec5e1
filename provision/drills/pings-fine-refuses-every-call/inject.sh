#!/bin/sh
# A container's namespace with the server's address, on the client's card; it announces itself when it comes up.
set -eu
[ "$ROLE" = client ] || exit 0
container=cni-b7e20f4c-5d11-0a3e
ip netns add $container
ip link add link "$UNDERLAY" name mac1 netns $container type macvlan mode bridge
ip -n $container link set dev lo up
ip netns exec $container sysctl -qw net.ipv4.conf.mac1.arp_notify=1
ip -n $container address add "$PEER_ENDPOINT/16" dev mac1
ip -n $container link set dev mac1 up
