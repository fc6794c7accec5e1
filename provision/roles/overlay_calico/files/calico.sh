# Sourced by the start scripts of overlays whose policy is Calico's, after common.sh and etcd.sh.
# shellcheck shell=sh disable=SC2034,SC2154
calico=/opt/overlaylab/overlay/calico
calico_run=/run/overlaylab/calico
felix_unit=overlaylab-calico-felix.service
# For calicoctl and the CNI plugin, which live for seconds: most of the time they would collect garbage (calico.env.j2).
export GOGC=off GOMEMLIMIT=256MiB

# The last lines of a unit's journal that are about trouble: Calico's programs say a lot. Argument: the unit.
calico_words() {
    journalctl --no-pager --quiet --unit "$1" --lines 200 --output cat | grep -E '\[(ERROR|FATAL|PANIC)\]|[Ee]rror' | tail -n 3
}

# Registers the node, starts Felix and waits until it has put its rules in place. Arguments: seconds.
# Where it does not get there, prints the cause on stderr and fails.
felix_start() { felix_begin && felix_wait "$1"; }

# The first half: the node is in the datastore, and Felix runs.
felix_begin() {
    mkdir -p $calico_run
    systemctl is-active --quiet $felix_unit || systemctl start $felix_unit ||
        { echo "Calico did not start on this node: $(calico_words $felix_unit)" >&2; return 1; }
}

# The second.
felix_wait() {
    read -r now _ </proc/uptime
    end=$((${now%.*} + $1))
    # Felix's own word, on the loopback interface.
    until curl --silent --fail --max-time 3 --output /dev/null http://127.0.0.1:9099/readiness && [ -s $calico_run/mtu ]; do
        systemctl is-active --quiet $felix_unit ||
            { echo "Felix ended while it started: $(calico_words $felix_unit)" >&2; return 1; }
        read -r now _ </proc/uptime
        [ "${now%.*}" -lt "$end" ] ||
            { echo "Felix is not ready after $1 s: $(calico_words $felix_unit)" >&2; return 1; }
        sleep 0.5
    done
}

# Tells the endpoint the MAC address of the plugin's gateway. Argument: its interface. Nodes answer for 169.254.1.1 as
# proxies: with a route to it alone, which without a default route none has.
calico_gateway() {
    read -r gateway <"/sys/class/net/cali${namespace#endpoint}$namespace/address"
    ip -n "$namespace" neighbour replace 169.254.1.1 lladdr "$gateway" dev "$1" nud permanent
}

# Calico's command-line tool, with the node's own access to the datastore. Never for long: it waits for etcd.
calicoctl() {
    (
        set -a
        # shellcheck source=/dev/null
        . "$state/calico.env"
        exec timeout --kill-after=5 30 $calico/calicoctl "$@"
    ) 2>&1
}
