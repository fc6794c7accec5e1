#!/bin/sh
case $ROLE in
server) iptables -D OUTPUT -p icmp --icmp-type fragmentation-needed -j DROP ;;
esac
