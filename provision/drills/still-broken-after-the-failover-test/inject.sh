#!/bin/sh
set -eu
net=${PEER_ENDPOINT%.*}.0/24
case $ROLE in
    client)
        # A standby node that is not there.
        ip route replace default via "${ADDRESS%.*}.250" dev "$UNDERLAY" table 200
        ip rule add to "$net" lookup 200 priority 900
        ;;
    server)
        nft -f - <<'END'
table inet failover {
    chain forward {
        type filter hook forward priority filter + 10; policy accept;
        udp dport 53 counter drop
        tcp dport 53 counter drop
    }
}
END
        ;;
esac
