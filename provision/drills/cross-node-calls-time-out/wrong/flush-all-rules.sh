#!/bin/sh
[ "$ROLE" = server ] || exit 0
nft flush ruleset
