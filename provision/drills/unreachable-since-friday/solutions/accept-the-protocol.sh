#!/bin/sh
[ "$ROLE" = server ] || exit 0
nft insert rule inet filter input ip protocol 4 accept
