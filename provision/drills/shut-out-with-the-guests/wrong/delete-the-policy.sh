#!/bin/sh
set -eu
[ "$ROLE" = client ] || exit 0
set -a
# shellcheck source=/dev/null
. /run/overlaylab/overlay/calico.env
set +a
timeout 60 /opt/overlaylab/overlay/calico/calicoctl delete globalnetworkpolicy no-guests
sleep 5
