#!/bin/sh
set -eu
systemctl restart overlaylab-calico-confd.service overlaylab-calico-bird.service
