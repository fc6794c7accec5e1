#!/bin/sh
[ "$ROLE" = server ] || exit 0
nft delete table ip guest
