#!/bin/sh
[ "$ROLE" = server ] || exit 0
nft insert rule ip guest out ip saddr "${ENDPOINT%.*.*}.0.0/16" accept
