#!/bin/sh
set -eu
case $ROLE in
    client)
        ip rule del priority 900
        ip route flush table 200
        ;;
    server) nft delete table inet failover ;;
esac
