#!/bin/sh
set -eu
case $ROLE in
    server) ip address add 10.0.2.15/32 dev lo ;;
    *)
        bridge fdb show dev flannel.1 | while read -r mac rest; do
            case $rest in *' 10.0.2.15 '*) bridge fdb replace "$mac" dev flannel.1 dst "$PEER_ADDRESS" self permanent ;; esac
        done
        ;;
esac
