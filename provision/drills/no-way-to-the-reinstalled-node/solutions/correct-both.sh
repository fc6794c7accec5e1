#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
sed -i "s|^IP=.*|IP=$ADDRESS/24|" /run/overlaylab/overlay/calico.env
set -a
# shellcheck source=/dev/null
. /run/overlaylab/overlay/calico.env
set +a
timeout 60 /opt/overlaylab/overlay/calico/calicoctl patch node "$NODENAME" \
    --patch '{"spec":{"bgp":{"ipv4Address":"'"$ADDRESS"'/24"}}}'
tries=0
until ip -4 route show match "$PEER_ENDPOINT" proto bird | grep -q " via $PEER_ADDRESS "; do
    tries=$((tries + 1))
    [ $tries -lt 45 ] || break
    sleep 1
done
