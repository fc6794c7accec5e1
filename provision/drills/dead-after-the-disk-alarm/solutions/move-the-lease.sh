#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
# shellcheck source=/dev/null
. /run/overlaylab/etcd/settings
etcd() { etcdctl --endpoints "$ENDPOINTS" --command-timeout 10s "$@"; }
prefix=/coreos.com/network/subnets
new=$(sed -n 's/^FLANNEL_SUBNET=\(.*\)\.[0-9]*\/.*/\1/p' /run/overlaylab/flannel/subnet.env)
systemctl stop overlaylab-flannel.service
lease=$(etcd get --print-value-only "$prefix/$new.0-24")
etcd put "$prefix/${ENDPOINT%.*}.0-24" "$lease"
etcd del "$prefix/$new.0-24"
systemctl start overlaylab-flannel.service
sleep 2
