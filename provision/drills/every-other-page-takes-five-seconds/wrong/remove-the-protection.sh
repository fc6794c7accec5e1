#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
nft delete table inet hardening
