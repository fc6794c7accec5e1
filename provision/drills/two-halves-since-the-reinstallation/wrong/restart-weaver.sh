#!/bin/sh
set -eu
systemctl restart overlaylab-weave.service
sleep 10
