#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
systemctl stop cpu-share.service
