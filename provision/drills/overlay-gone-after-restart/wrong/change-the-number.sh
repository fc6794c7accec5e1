#!/bin/sh
# shellcheck source=/dev/null
. /run/overlaylab/etcd/settings
etcdctl --endpoints "$ENDPOINTS" --command-timeout 10s put /coreos.com/network/config \
    "{\"Network\":\"${ENDPOINT%.*.*}.0.0/16\",\"Backend\":{\"Type\":\"vxlan\",\"VNI\":2}}" >/dev/null
systemctl restart overlaylab-flannel
