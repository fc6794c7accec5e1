#!/bin/sh
# Unpacks the node kit, and its digest last, as what brings it to other hosts does (nodes/kit_delivery.py).
set -eu
mkdir -p /opt/overlaylab
gzip -dc /tmp/kit.tar.gz | tar -xf - -C /opt/overlaylab --no-same-owner
cp /tmp/kit.digest /opt/overlaylab/
rm -f /tmp/kit.tar.gz /tmp/kit.digest
