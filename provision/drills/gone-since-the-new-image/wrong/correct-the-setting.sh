#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
rm /run/systemd/system/overlaylab-flannel.service.d/override.conf
systemctl daemon-reload
systemctl restart overlaylab-flannel.service
