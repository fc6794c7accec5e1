#!/bin/sh
set -eu
modprobe openvswitch
modprobe vport_vxlan
sed -i 's/ --no-fastdp//' /run/overlaylab/overlay/settings
systemctl restart overlaylab-weave.service
sleep 10
