#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
iptables -P FORWARD ACCEPT
