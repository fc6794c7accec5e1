#!/bin/sh
[ "$ROLE" = client ] || exit 0
for namespace in /run/overlaylab/docker/exec/netns/1-*; do
    entry=$(nsenter --net="$namespace" ip neigh show to "$PEER_ENDPOINT" dev vxlan0 2>/dev/null) || continue
    case $entry in *lladdr*) ;; *) continue ;; esac
    mac=${entry#*lladdr }
    nsenter --net="$namespace" bridge fdb delete "${mac%% *}" dev vxlan0
    nsenter --net="$namespace" bridge fdb add "${mac%% *}" dev vxlan0 dst "$PEER_ADDRESS" self permanent
done
