#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
mkdir -p /etc/nftables.d
cat >/etc/nftables.d/teams.nft <<END
table inet filter {
    chain input {
        type filter hook input priority filter; policy accept;
        iifname != "$UNDERLAY" accept
        ip protocol { tcp, icmp } accept
        udp dport { 53, 67, 68, 123, 161, 4789, 8472 } accept
        ip protocol != { tcp, icmp } counter drop
    }
}
END
nft -f /etc/nftables.d/teams.nft
