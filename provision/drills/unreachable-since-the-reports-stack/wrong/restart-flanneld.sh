#!/bin/sh
set -eu
[ "$ROLE" = client ] || exit 0
systemctl restart overlaylab-flannel.service
