#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
# shellcheck source=/dev/null
. /run/overlaylab/etcd/settings
file=/run/overlaylab/flannel/subnet.env
# shellcheck source=/dev/null
. $file
new=${FLANNEL_SUBNET%.*}
systemctl stop overlaylab-flannel.service
etcdctl --endpoints "$ENDPOINTS" --command-timeout 10s del "/coreos.com/network/subnets/$new.0-24"
mkdir -p ${file%/*}
printf 'FLANNEL_NETWORK=%s\nFLANNEL_SUBNET=%s.1/24\nFLANNEL_MTU=%s\nFLANNEL_IPMASQ=%s\n' \
    "$FLANNEL_NETWORK" "${ENDPOINT%.*}" "$FLANNEL_MTU" "$FLANNEL_IPMASQ" >$file
systemctl start overlaylab-flannel.service
sleep 2
