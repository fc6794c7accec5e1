#!/bin/sh
# A storage card on both nodes, as macvlan; answers go over it; then the first node filters by the reverse path.
set -eu
card() {
    [ ! -e /sys/class/net/stor0 ] || return 0
    # The wire is the same: each card answers for its own address only.
    sysctl -qw "net.ipv4.conf.$UNDERLAY.arp_ignore=1"
    ip link add link "$UNDERLAY" name stor0 type macvlan mode bridge
    sysctl -qw net.ipv4.conf.stor0.arp_ignore=1 net.ipv4.conf.stor0.proxy_arp=0
    ip address add "10.99.0.${ADDRESS##*.}/24" dev stor0
    ip link set dev stor0 up
}
case $ROLE in
    client)
        card
        sysctl -qw net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.default.rp_filter=1 \
            "net.ipv4.conf.$UNDERLAY.rp_filter=1" net.ipv4.conf.stor0.rp_filter=1 \
            net.ipv4.conf.all.send_redirects=0 net.ipv4.conf.all.accept_source_route=0
        ;;
    server)
        card
        ip route replace default via "10.99.0.${PEER_ADDRESS##*.}" dev stor0 table 99
        ip -4 route show table 10 | while read -r block rest; do
            case "$rest " in *"via $PEER_ADDRESS "*) ip rule add to "$block" table 99 priority 5000 ;; esac
        done
        ;;
esac
