#!/bin/sh
# The second node takes in UDP of a list, on which the tunnel's port is not.
[ "$ROLE" = server ] || exit 0
nft -f - <<END
table inet filter {
    chain input {
        type filter hook input priority filter; policy accept;
        iifname != "$UNDERLAY" accept
        ip protocol != udp accept
        udp dport { 53, 67, 68, 123, 161, 7946 } accept
        ip protocol udp counter drop
    }
}
END
