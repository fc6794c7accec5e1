#!/bin/sh
set -eu
systemctl restart overlaylab-calico-felix.service
sleep 10
