#!/bin/sh
[ "$ROLE" = server ] || exit 0
nft -f - <<END
table ip guest {
    chain in {
        type filter hook prerouting priority raw; policy accept;
        iifname "$UNDERLAY" fib daddr type unicast counter drop
    }
    chain out {
        type filter hook postrouting priority 300; policy accept;
        oifname "$UNDERLAY" fib saddr type != local counter drop
    }
}
END
