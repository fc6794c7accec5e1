#!/bin/sh
[ "$ROLE" = server ] || exit 0
case $OVERLAY in docker-overlay | calico) port=4789 ;; *) port=8472 ;; esac
nft insert rule inet filter input udp dport $port accept
