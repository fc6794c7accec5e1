#!/bin/sh
# Flood protection as one finds it in hardening guides, with too small a number in one line.
set -eu
[ "$ROLE" = server ] || exit 0
mkdir -p /etc/nftables.d
cat >/etc/nftables.d/hardening.nft <<'END'
table inet hardening {
    chain protection {
        tcp flags & (fin | syn) == fin | syn drop
        icmp type echo-request limit rate over 1000/second burst 1000 packets drop
        udp dport 53 limit rate over 1/second burst 3 packets drop
    }
    chain input { type filter hook input priority filter - 5; policy accept; jump protection; }
    chain forward { type filter hook forward priority filter - 5; policy accept; jump protection; }
}
END
nft -f /etc/nftables.d/hardening.nft
