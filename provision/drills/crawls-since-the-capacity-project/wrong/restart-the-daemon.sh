#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
case $OVERLAY in
    flannel) systemctl restart overlaylab-flannel.service ;;
    weave) systemctl restart overlaylab-weave.service ;;
esac
sleep 3
