# Sourced by the start scripts of overlays that keep their state in etcd, after common.sh.
# shellcheck shell=sh disable=SC2154  # MEMBERS, ENDPOINTS and ADDRESS come from the settings
# shellcheck source=/dev/null
. /run/overlaylab/etcd/settings
etcd_unit=overlaylab-etcd.service

# Whether this node is a member: only members run etcd.
etcd_member() { case " $MEMBERS " in *" $ADDRESS "*) ;; *) return 1 ;; esac; }

# Starts the node's member and waits until the cluster answers: one member of two serves nobody.
# Argument: seconds. Where it takes longer, prints the cause on stderr and fails.
etcd_start() {
    if etcd_member && ! systemctl is-active --quiet $etcd_unit; then
        systemctl start $etcd_unit || { echo "etcd did not start: $(etcd_words)" >&2; return 1; }
    fi
    read -r now _ </proc/uptime
    end=$((${now%.*} + $1))
    until etcd_healthy; do
        if etcd_member && ! systemctl is-active --quiet $etcd_unit; then
            etcd_ended >&2
            return 1
        fi
        read -r now _ </proc/uptime
        [ "${now%.*}" -lt "$end" ] || { etcd_problem "$1" >&2; return 1; }
        sleep 0.5
    done
}

# Healthy is a member that has a leader and so a majority. All have to be: daemons ask any of them, and would wait for
# one that a firewall hides from this node.
etcd_healthy() {
    for member in $MEMBERS; do
        case $(curl --silent --max-time 3 "http://$member:2379/health") in *'"health":"true"'*) ;; *) return 1 ;; esac
    done
}

# The last that etcd said of itself.
etcd_words() { journalctl --no-pager --quiet --unit $etcd_unit --lines 3 --output cat; }

etcd_ended() {
    words=$(etcd_words)
    case $words in
        *'address already in use'*)
            echo "etcd ended: its port 2379/tcp or 2380/tcp on $ADDRESS is taken;" \
                "\`ss -lntp 'sport = 2379 or sport = 2380'\` says by what" ;;
        *'out of range'* | *'cluster ID mismatch'*)
            echo "etcd ended: the other member runs since before this node was reset; reset all nodes, then converge" ;;
        *) echo "etcd ended: $words" ;;
    esac
}

# Why there is no healthy member after $1 seconds, a clause for each that cannot be reached.
etcd_problem() {
    said=''
    for member in $MEMBERS; do
        [ "$member" != "$ADDRESS" ] || continue
        for port in 2380 2379; do
            # Clients that are no members do not speak to 2380.
            [ $port = 2379 ] || etcd_member || continue
            code=0
            curl --silent --max-time 3 --output /dev/null "http://$member:$port/version" || code=$?
            case $code in
                0) continue ;;
                7) why="refuses connections on $port/tcp: etcd does not run there, or a firewall rejects them" ;;
                *) why="does not answer on $port/tcp: a firewall drops the packets, or the node is down" ;;
            esac
            ping -n -q -c 1 -W 2 "$member" >/dev/null 2>&1 || why="$why; it does not answer a ping on the underlay either"
            said="$said; $member $why"
            break
        done
    done
    [ -n "$said" ] || said="; its members answer each other, but have no leader: $(etcd_words)"
    echo "etcd is not healthy after $1 s$said"
}
