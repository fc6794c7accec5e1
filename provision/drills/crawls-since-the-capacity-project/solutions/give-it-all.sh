#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
sed -i 's/^share=.*/share=100/' /etc/default/cpu-share
systemctl restart cpu-share.service
