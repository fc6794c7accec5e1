#!/bin/sh
case $ROLE in other) exit 0 ;; esac
nft -f - <<END
table inet filter {
    chain input {
        type filter hook input priority filter; policy accept;
        iifname "$UNDERLAY" udp dport { 6784, 8472, 4789 } counter drop
    }
}
END
# A new connection between the routers finds out at once what an old one does after a minute.
ss --kill --tcp state established "( dport = :6783 or sport = :6783 )" dst "$PEER_ADDRESS" >/dev/null 2>&1 || :
