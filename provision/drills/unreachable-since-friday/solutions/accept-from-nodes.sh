#!/bin/sh
[ "$ROLE" = server ] || exit 0
nft insert rule inet filter input ip saddr "${ADDRESS%.*}.0/24" accept
