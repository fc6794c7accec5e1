#!/bin/sh
[ "$ROLE" = client ] || exit 0
systemctl restart overlaylab-flannel
