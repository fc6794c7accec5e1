#!/bin/sh
case $OVERLAY in docker-overlay | calico) port=4789 ;; *) port=8472 ;; esac
case $ROLE in
    server) nft insert rule inet filter input tcp dport $port accept ;;
esac
