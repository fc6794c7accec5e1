#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
sed -i 's/^names=.*/names="backup-agent indexer"/' /etc/default/cpu-share
systemctl restart cpu-share.service
