#!/bin/sh
[ "$ROLE" = server ] || exit 0
ip -n endpoint link set dev ethfl mtu 576
