#!/bin/sh
set -eu
[ "$ROLE" != other ] || exit 0
settings=/run/overlaylab/overlay/settings
# shellcheck disable=SC2046,SC2183  # four words
name() { printf '02:77:%02x:%02x:%02x:%02x' $(echo "$1" | tr . ' '); }
case $ROLE in
    client) seeds=$(name "$ADDRESS"),$(name "$PEER_ADDRESS") ;;
    server) seeds=$(name "$PEER_ADDRESS"),$(name "$ADDRESS") ;;
esac
sed -i "s/--ipalloc-init seed=[^ ]*/--ipalloc-init seed=$seeds/" $settings
systemctl restart overlaylab-weave.service
[ "$ROLE" = server ] || exit 0
tries=0
until curl -s http://127.0.0.1:6784/status/connections | grep -q established; do
    tries=$((tries + 1))
    [ $tries -lt 90 ]
    sleep 1
done
sleep 5
