#!/bin/sh
[ "$ROLE" = server ] || exit 0
ip link delete repl0
systemctl restart overlaylab-flannel
