#!/bin/sh
case $ROLE in
    server) nft insert rule inet hardening input udp dport 8472 accept ;;
    client) systemctl restart overlaylab-flannel ;;
esac
