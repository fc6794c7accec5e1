#!/bin/sh
set -eu
# Where etcd cannot be reached, it does not come back.
timeout 20 systemctl restart overlaylab-flannel.service || :
