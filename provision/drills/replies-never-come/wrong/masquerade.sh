#!/bin/sh
case $ROLE in other) exit 0 ;; esac
iptables -t nat -A POSTROUTING -s "$ENDPOINT" -o "$UNDERLAY" -j MASQUERADE
