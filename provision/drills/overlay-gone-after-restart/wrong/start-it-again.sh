#!/bin/sh
[ "$ROLE" = server ] || exit 0
systemctl reset-failed overlaylab-flannel
systemctl start overlaylab-flannel 2>/dev/null || :
