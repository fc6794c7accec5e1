#!/bin/sh
# The lease is deleted while flanneld is down; it then draws a subnet until it is another one.
set -eu
[ "$ROLE" = server ] || exit 0
# shellcheck source=/dev/null
. /run/overlaylab/etcd/settings
unit=overlaylab-flannel.service prefix=/coreos.com/network/subnets
old=${ENDPOINT%.*}
subnet=$old
tries=0
while [ "$subnet" = "$old" ]; do
    tries=$((tries + 1))
    [ $tries -le 5 ] || exit 1
    systemctl stop $unit
    etcdctl --endpoints "$ENDPOINTS" --command-timeout 10s del "$prefix/$old.0-24" >/dev/null
    systemctl start $unit
    subnet=$(sed -n 's/^FLANNEL_SUBNET=\(.*\)\.[0-9]*\/.*/\1/p' /run/overlaylab/flannel/subnet.env)
done
