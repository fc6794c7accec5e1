#!/bin/sh
# What containers need of this machine's root: one verb a call, so that each is announced once
# (providers/lxc_host.py). Every verb may be repeated; `remove` works whatever was cut off before it.
#
#   survey                                              prints NAME ADDRESS BOX of every container of the lab
#   bridges MANAGEMENT ADDRESS/LENGTH UNDERLAY MTU [HOST MAC]...
#   freeze NAME...                                      what is changed from now on does not outlive a start;
#                                                       prints "host-key NAME KEY" of each
#   start NAME...                                       kills what runs, starts anew
#   stop NAME...
#   remove MANAGEMENT UNDERLAY NAME...                  containers, bridges, shared files that nobody needs
#   modules NAME...                                     prints what loading NAME brought, or "failed NAME REASON"
#   unload NAME...                                      those that nobody uses; prints what is gone
set -u
umask 022
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
verb=$1
shift
lxcpath=
case $verb in modules | unload) ;; *) lxcpath=$(lxc-config lxc.lxcpath) || exit 1 ;; esac

# Without STP a port forwards at once. With an address of its own a bridge does not take that of a port, which
# comes and goes with its node: the peers' neighbour entries would be wrong after each clean start.
bridge() { # NAME MTU
    [ -e "/sys/class/net/$1" ] || ip link add name "$1" type bridge stp_state 0 forward_delay 0 || return 1
    read -r mac <"/sys/class/net/$1/address"
    ip link set dev "$1" address "$mac" mtu "$2" up || return 1
    # Neither router solicitations of this machine nor its forwarding have a place there.
    for setting in ipv6/conf/"$1"/disable_ipv6=1 ipv4/conf/"$1"/forwarding=0; do
        [ ! -e "/proc/sys/net/${setting%=*}" ] || echo "${setting#*=}" >"/proc/sys/net/${setting%=*}"
    done
}

# Where br_netfilter sends bridged packets through iptables, Docker's policy DROP would cut the nodes off.
bridge_rule() { iptables -w "$1" FORWARD -i "$2" -o "$2" -j ACCEPT 2>/dev/null; }

start_all() {
    pids='' failed=''
    for name; do
        lxc-start --daemon --name "$name" &
        pids="$pids $!"
    done
    for pid in $pids; do wait "$pid" || failed=yes; done
    [ -z "$failed" ]
}

# lxc-stop asks the container's monitor. Where that was killed, the kernel knows the processes by control group.
kill_container() {
    timeout 20 lxc-stop --kill --name "$1" 2>/dev/null
    find /sys/fs/cgroup -type d \( -name "lxc.payload.$1" -o -name "lxc.payload.$1-[0-9]*" \) 2>/dev/null |
        while read -r group; do
            find "$group" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u |
                while read -r pid; do kill -KILL "$pid" 2>/dev/null; done
        done
    return 0
}

remove_groups() {
    find /sys/fs/cgroup -depth -type d \( -path "*/lxc.payload.$1" -o -path "*/lxc.payload.$1/*" \
        -o -path "*/lxc.payload.$1-[0-9]*" -o -path "*/lxc.monitor.$1" -o -path "*/lxc.monitor.$1-[0-9]*" \) \
        -exec rmdir {} + 2>/dev/null
    return 0
}

case $verb in
    survey)
        for folder in "$lxcpath"/overlaylab-*; do
            case $folder in */overlaylab-image-* | *'*') continue ;; esac
            # A node whose making was cut off has neither.
            address=$(sed -n 's|^lxc.net.0.ipv4.address *= *\([0-9.]*\).*|\1|p' "$folder/config" 2>/dev/null | tail -n 1)
            box=$(sed -n 's|^# made of ||p' "$folder/config" 2>/dev/null | head -n 1)
            echo "${folder##*/} ${address:--} ${box:--}"
        done
        ;;
    bridges)
        management=$1 address=$2 underlay=$3 mtu=$4
        shift 4
        bridge "$management" 1500 && ip address replace "$address" dev "$management" &&
            bridge "$underlay" "$mtu" || exit 1
        # Known for good, a node is reached the moment it listens: asking for its address takes up to a second.
        while [ $# -gt 1 ]; do
            ip neighbour replace "$1" lladdr "$2" dev "$management" nud permanent || exit 1
            shift 2
        done
        if [ "$(cat /proc/sys/net/bridge/bridge-nf-call-iptables 2>/dev/null)" = 1 ]; then
            bridge_rule -C "$underlay" || bridge_rule -I "$underlay" || exit 1
        fi
        ;;
    freeze)
        for name; do
            cd "$lxcpath/$name" || exit 1
            kill_container "$name"
            if [ ! -e frozen ]; then
                rm -rf work provisioned && mv upper provisioned && mkdir upper && : >frozen || exit 1
            fi
            key=provisioned/etc/ssh/ssh_host_ed25519_key.pub
            # Within the container a link means another file.
            if [ -f $key ] && [ ! -h $key ]; then echo "host-key $name $(cat $key)"; fi
        done
        start_all "$@"
        ;;
    start)
        for name; do kill_container "$name"; done
        start_all "$@"
        ;;
    stop)
        for name; do kill_container "$name"; done
        ;;
    remove)
        management=$1 underlay=$2
        shift 2
        for name; do
            kill_container "$name"
            rm -rf --one-file-system "${lxcpath:?}/$name"
            rm -f "/run/lxc/lock/$lxcpath/.$name" "/var/log/lxc/$name.log"
            # Killed a moment ago, processes may take a moment to go.
            tries=0
            while remove_groups "$name"; [ -n "$(find /sys/fs/cgroup -type d -name "lxc.payload.$name*")" ]; do
                tries=$((tries + 1))
                [ $tries -lt 20 ] || break
                sleep 0.1
            done
        done
        for port in "/sys/class/net/$underlay/brif"/*; do
            [ ! -e "$port" ] || ip link delete "${port##*/}"
        done
        [ ! -e "/sys/class/net/$underlay" ] || ip link delete "$underlay"
        while bridge_rule -D "$underlay"; do :; done
        used=
        for folder in "$lxcpath"/overlaylab-*/config; do [ ! -e "$folder" ] || used=yes; done
        if [ -z "$used" ] && [ -e "/sys/class/net/$management" ]; then ip link delete "$management"; fi
        # While a template unpacks an image, no configuration names it yet.
        exec 9<"$lxcpath"
        flock --wait 120 9
        for image in "$lxcpath"/overlaylab-image-*; do
            [ -d "$image" ] || continue
            grep -qsF ":$image/rootfs:" "$lxcpath"/overlaylab-*/config || rm -rf --one-file-system "$image"
        done
        # LXC's own, for as long as it runs anything: whoever starts a container makes them anew.
        if ! grep -q '@.*/command$' /proc/net/unix; then
            find /sys/fs/cgroup -maxdepth 2 -type d -name lxc.pivot -exec rmdir {} + 2>/dev/null
            rmdir -p "/run/lxc/lock$lxcpath" 2>/dev/null
        fi
        exit 0
        ;;
    modules)
        before=$(mktemp) && after=$(mktemp) || exit 1
        trap 'rm -f "$before" "$after"' EXIT
        for name; do
            cut -d' ' -f1 /proc/modules 2>/dev/null | sort >"$before"
            # By default these two bring devices along, on this machine's own network.
            case $name in dummy) options=numdummies=0 ;; ifb) options=numifbs=0 ;; *) options='' ;; esac
            # shellcheck disable=SC2086
            reason=$(modprobe "$name" $options 2>&1) || echo "failed $name $(echo "$reason" | tail -n 1)"
            cut -d' ' -f1 /proc/modules 2>/dev/null | sort >"$after"
            comm -13 "$before" "$after"
        done
        ;;
    unload)
        # Modules hold each other: what is left is tried again as long as something goes.
        gone=yes
        while [ -n "$gone" ]; do
            gone=
            for name; do
                [ -d "/sys/module/$name" ] || continue
                if rmmod "$name" 2>/dev/null; then echo "$name"; gone=yes; fi
            done
        done
        ;;
    *)
        echo "lxc_host.sh: unknown verb $verb" >&2
        exit 2
        ;;
esac
