#!/bin/sh
for namespace in /run/overlaylab/docker/exec/netns/1-*; do
    if nsenter --net="$namespace" bridge fdb show dev vxlan0 2>/dev/null | grep -q '^00:00:00:00:00:00 .*dst '; then
        echo "vxlan0 of $NODE sends every frame for an unknown address to other nodes"
        exit 1
    fi
done
