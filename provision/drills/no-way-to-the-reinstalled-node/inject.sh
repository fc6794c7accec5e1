#!/bin/sh
# The node registers itself with an address that it has not; confd tells BIRD on all nodes.
set -eu
[ "$ROLE" = server ] || exit 0
sed -i "s|^IP=.*|IP=10.0.2.15/24|" /run/overlaylab/overlay/calico.env
systemctl restart overlaylab-calico-felix.service
