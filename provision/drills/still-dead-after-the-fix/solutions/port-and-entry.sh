#!/bin/sh
case $ROLE in
    server) nft insert rule inet hardening input udp dport 8472 accept ;;
    client)
        gateway=$(ip -4 route get "$PEER_ENDPOINT")
        gateway=${gateway#* via } gateway=${gateway%% *}
        mac=$(bridge fdb show dev flannel.1 | grep " dst $PEER_ADDRESS ")
        ip neigh replace "$gateway" dev flannel.1 lladdr "${mac%% *}" nud permanent
        ;;
esac
