#!/bin/sh
[ "$ROLE" = server ] || exit 0
# shellcheck source=/dev/null
. /run/overlaylab/etcd/settings
mac=$(etcdctl --endpoints "$ENDPOINTS" --command-timeout 10s get --print-value-only --prefix \
    /coreos.com/network/subnets/ | jq --raw-output "select(.PublicIP == \"$ADDRESS\").BackendData.VtepMAC")
ip link set dev flannel.1 address "$mac"
# The kernel forgot its entries for the peers when the address changed.
gateway=$(ip -4 route get "$PEER_ENDPOINT")
gateway=${gateway#* via } gateway=${gateway%% *}
mac=$(bridge fdb show dev flannel.1 | grep " dst $PEER_ADDRESS ")
ip neigh replace "$gateway" dev flannel.1 lladdr "${mac%% *}" nud permanent
