#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
nft add table inet local-traffic
nft add chain inet local-traffic prerouting '{ type filter hook prerouting priority raw; }'
nft add chain inet local-traffic output '{ type filter hook output priority raw; }'
nft add rule inet local-traffic prerouting iif lo notrack
nft add rule inet local-traffic output oif lo notrack
conntrack -D -s 127.0.0.1 >/dev/null 2>&1 || :
