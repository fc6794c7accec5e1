#!/bin/sh
[ "$ROLE" = client ] || exit 0
nft delete table netdev filter
