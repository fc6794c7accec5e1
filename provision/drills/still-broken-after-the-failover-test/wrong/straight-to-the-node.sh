#!/bin/sh
set -eu
case $ROLE in
    client)
        ip rule del priority 900
        ip route replace "${PEER_ENDPOINT%.*}.0/24" via "$PEER_ADDRESS" dev "$UNDERLAY"
        ;;
    server) nft delete table inet failover ;;
esac
