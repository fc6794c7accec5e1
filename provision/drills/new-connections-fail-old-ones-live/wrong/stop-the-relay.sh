#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
systemctl stop metrics-relay.service
sleep 15
conntrack -F
