#!/bin/sh
[ "$ROLE" = server ] || exit 0
nft insert rule inet filter input tcp dport 4 accept
nft insert rule inet filter input udp dport 4 accept
