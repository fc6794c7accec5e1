#!/bin/sh
[ "$ROLE" = server ] || exit 0
# shellcheck source=/dev/null
. /run/overlaylab/etcd/settings
mac=$(etcdctl --endpoints "$ENDPOINTS" --command-timeout 10s get --print-value-only --prefix \
    /coreos.com/network/subnets/ | jq --raw-output "select(.PublicIP == \"$ADDRESS\").BackendData.VtepMAC")
ip link set dev flannel.1 address "$mac"
