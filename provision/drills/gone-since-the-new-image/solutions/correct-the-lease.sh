#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
# shellcheck source=/dev/null
. /run/overlaylab/etcd/settings
etcd() { etcdctl --endpoints "$ENDPOINTS" --command-timeout 10s "$@"; }
key=/coreos.com/network/subnets/${ENDPOINT%.*}.0-24
rm /run/systemd/system/overlaylab-flannel.service.d/override.conf
systemctl daemon-reload
systemctl stop overlaylab-flannel.service
etcd put "$key" "$(etcd get --print-value-only "$key" | sed "s/10\.0\.2\.15/$ADDRESS/")"
systemctl start overlaylab-flannel.service
sleep 2
