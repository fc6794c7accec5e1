#!/bin/sh
set -eu
printf 'net.core.rmem_default = 1048576\nnet.core.rmem_max = 1048576\n' >/etc/sysctl.d/60-memory.conf
sysctl -q -p /etc/sysctl.d/60-memory.conf
systemctl restart overlaylab-weave.service
sleep 10
