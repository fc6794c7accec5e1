#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
# The first node's list: names are made of underlay addresses, in the order of the inventory.
settings=/run/overlaylab/overlay/settings
# shellcheck disable=SC2046,SC2183  # four words
name() { printf '02:77:%02x:%02x:%02x:%02x' $(echo "$1" | tr . ' '); }
sed -i "s/--ipalloc-init seed=[^ ]*/--ipalloc-init seed=$(name "$PEER_ADDRESS"),$(name "$ADDRESS")/" $settings
systemctl restart overlaylab-weave.service
tries=0
until curl -s http://127.0.0.1:6784/status/connections | grep -q established; do
    tries=$((tries + 1))
    [ $tries -lt 90 ]
    sleep 1
done
sleep 5
