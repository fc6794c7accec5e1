#!/bin/sh
[ "$ROLE" = server ] || exit 0
# shellcheck source=/dev/null
. /run/overlaylab/flannel/subnet.env
ip -n endpoint link set dev ethfl mtu "$FLANNEL_MTU"
