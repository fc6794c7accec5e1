#!/bin/sh
case $ROLE in
    server) nft delete table inet hardening ;;
    client) systemctl restart overlaylab-flannel ;;
esac
