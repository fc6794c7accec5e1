#!/bin/sh
# A bridge as `docker compose` makes one, with half of the second node's subnet, and the file that it is made of.
set -eu
[ "$ROLE" = client ] || exit 0
net=${PEER_ENDPOINT%.*} bridge=br-5be1f0a7c3d2
ip link add name $bridge type bridge
ip address add "$net.126/25" dev $bridge
ip link set dev $bridge up
mkdir -p /srv/reports
cat >/srv/reports/compose.yml <<END
services:
  reports: {image: "reports:7"}
networks:
  default:
    ipam: {config: [{subnet: $net.0/25, gateway: $net.126}]}
END
