#!/bin/sh
case $ROLE in
client | server) systemctl restart web.service ;;
esac
