#!/bin/sh
set -eu
sed -i 's/--ipalloc-init seed=[^ ]* //; s/--ipalloc-range [^ "]*//' /run/overlaylab/overlay/settings
systemctl restart overlaylab-weave.service
[ "$ROLE" = server ] || exit 0
tries=0
until curl -s http://127.0.0.1:6784/status/connections | grep -q established; do
    tries=$((tries + 1))
    [ $tries -lt 90 ]
    sleep 1
done
sleep 5
