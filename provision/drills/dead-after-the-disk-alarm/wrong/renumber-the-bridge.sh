#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
# shellcheck source=/dev/null
. /run/overlaylab/flannel/subnet.env
ip address add "$FLANNEL_SUBNET" dev cni0
