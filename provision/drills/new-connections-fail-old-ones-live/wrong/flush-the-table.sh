#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
conntrack -F
# Until the relay has spoken again.
sleep 2
