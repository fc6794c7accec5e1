#!/bin/sh
# As `systemctl edit --runtime` writes it; the subnet file lets flanneld ask for the subnet that it had.
set -eu
[ "$ROLE" = server ] || exit 0
# shellcheck source=/dev/null
. /run/overlaylab/etcd/settings
unit=overlaylab-flannel.service
dropin=/run/systemd/system/$unit.d
file=/run/overlaylab/flannel/subnet.env
kept=$(cat $file)
mkdir -p $dropin
printf '[Service]\nEnvironment=FLANNELD_PUBLIC_IP=10.0.2.15\n' >$dropin/override.conf
systemctl daemon-reload
systemctl stop $unit
etcdctl --endpoints "$ENDPOINTS" --command-timeout 10s del "/coreos.com/network/subnets/${ENDPOINT%.*}.0-24" >/dev/null
mkdir -p ${file%/*}
printf '%s\n' "$kept" >$file
systemctl start $unit
# shellcheck source=/dev/null
. $file
[ "${FLANNEL_SUBNET%.*}" = "${ENDPOINT%.*}" ]
