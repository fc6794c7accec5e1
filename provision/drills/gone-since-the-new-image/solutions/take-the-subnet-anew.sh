#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
# shellcheck source=/dev/null
. /run/overlaylab/etcd/settings
file=/run/overlaylab/flannel/subnet.env
kept=$(cat $file)
rm /run/systemd/system/overlaylab-flannel.service.d/override.conf
systemctl daemon-reload
systemctl stop overlaylab-flannel.service
etcdctl --endpoints "$ENDPOINTS" --command-timeout 10s del "/coreos.com/network/subnets/${ENDPOINT%.*}.0-24"
mkdir -p ${file%/*}
printf '%s\n' "$kept" >$file
systemctl start overlaylab-flannel.service
sleep 2
