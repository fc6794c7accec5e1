#!/bin/sh
[ "$ROLE" = server ] || exit 0
nft insert rule inet hardening input udp dport 8472 accept
