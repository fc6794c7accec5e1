#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
sed -i "s|^IP=.*|IP=$ADDRESS/24|" /run/overlaylab/overlay/calico.env
systemctl restart overlaylab-calico-felix.service
# confd, BIRD on both sides, and the session.
tries=0
until ip -4 route show match "$PEER_ENDPOINT" proto bird | grep -q " via $PEER_ADDRESS "; do
    tries=$((tries + 1))
    [ $tries -lt 45 ] || break
    sleep 1
done
