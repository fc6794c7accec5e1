#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
iptables -I FORWARD -p tcp --dport 80 -j ACCEPT
iptables -I FORWARD -p tcp --sport 80 -j ACCEPT
