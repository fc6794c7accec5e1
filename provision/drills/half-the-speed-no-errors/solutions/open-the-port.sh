#!/bin/sh
case $ROLE in other) exit 0 ;; esac
nft insert rule inet filter input udp dport 6784 accept
