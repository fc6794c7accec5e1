#!/bin/sh
set -eu
systemctl restart overlaylab-flannel.service
