#!/bin/sh
[ "$ROLE" = client ] || exit 0
for unit in overlaylab-flannel overlaylab-romana-agent overlaylab-calico-felix; do
    ! systemctl is-active --quiet $unit || systemctl stop $unit
done
