#!/bin/sh
# Small buffers for new sockets, then the restart that makes them weaver's.
set -eu
cat >/etc/sysctl.d/60-memory.conf <<'END'
net.core.rmem_default = 4608
net.core.rmem_max = 4608
net.core.optmem_max = 20480
END
sysctl -q -p /etc/sysctl.d/60-memory.conf
systemctl restart overlaylab-weave.service
