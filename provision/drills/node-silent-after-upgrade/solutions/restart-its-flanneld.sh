#!/bin/sh
[ "$ROLE" = server ] || exit 0
systemctl restart overlaylab-flannel
