# Sourced by the start scripts of overlays whose data path is Flannel's, after common.sh, etcd.sh and the settings.
# shellcheck shell=sh disable=SC2034,SC2154
flannel=/opt/overlaylab/overlay/flannel
flannel_run=/run/overlaylab/flannel
flannel_unit=overlaylab-flannel.service

# The errors of the flanneld that was started last; the rest of its journal is long.
flannel_words() {
    journalctl --no-pager --quiet --output cat "_SYSTEMD_INVOCATION_ID=$(systemctl show --property InvocationID \
        --value $flannel_unit)" | grep '^[EF][0-9]' | tail -n 3
}

# Gives flanneld its configuration and starts it. Where it does not get ready, prints the cause on stderr and fails.
flannel_start() {
    # The reset goes by it; the settings may be new already.
    echo "$RANGE" >"$state/network"
    need_module br_netfilter
    case $MODE in
        vxlan | ipip | wireguard) need_module "$MODE" ;;
        udp) need_module tun ;;
    esac
    # Every node writes the same; the first has to be there before flanneld asks.
    answer=$(etcdctl --endpoints "$ENDPOINTS" --command-timeout 10s put /coreos.com/network/config \
        "{\"Network\":\"$RANGE\",\"Backend\":{\"Type\":\"$MODE\"}}" 2>&1) ||
        { echo "etcd did not take flannel's configuration: $answer" >&2; return 1; }
    for _ in 1 2 3; do
        ! systemctl start $flannel_unit 2>/dev/null || return 0
        words=$(flannel_words)
        # Two nodes drew the same subnet, one in a hundred at the same moment, and the later one ends. In the makers'
        # manifest it is started again, too.
        case $words in *'subnet already exists'*) ;; *) break ;; esac
    done
    echo "flanneld did not get ready: $words" >&2
    return 1
}

# Attaches the endpoint through the CNI plugin flannel, and prints its answer. Arguments: the interface, what else
# the plugin passes to the one that it delegates to (JSON without braces), folders with plugins besides Flannel's.
# NETWORK is the network's name, where it is not the makers'.
flannel_attach() {
    conf='{"type":"flannel","cniVersion":"0.3.1","name":"'${NETWORK:-cbr0}'","subnetFile":"'$flannel_run'/subnet.env",
        "dataDir":"'$flannel_run'/cni","ipam":{"dataDir":"'$flannel_run'/networks"},
        "delegate":{'${MTU:+"\"mtu\":$MTU,"}$2'}}'
    # An address from an attempt that failed would be in the way.
    [ ! -e $flannel_run/networks ] || cni DEL "$conf" "$1" "$flannel:$3" >/dev/null || :
    cni ADD "$conf" "$1" "$flannel:$3"
}
