# Sourced by the overlays' start scripts.
# shellcheck shell=sh
# The node kit's programs before the node's own, also where somebody types the script's name.
PATH=/opt/overlaylab/bin:$PATH
state=/run/overlaylab/overlay
# Where the CNI plugin host-local keeps what it handed out; its own default would outlive a reboot.
# shellcheck disable=SC2034  # of those that source this
leases=/run/overlaylab/cni

# What was loaded before the overlay came, once: overlay-reset goes back to it (traces.py).
record_before() {
    rm -f "$state/modules.after"
    [ ! -e "$state/modules.before" ] || return 0
    mkdir -p "$state"
    # Asking nft loads its modules: without them there is nothing to ask for. A kernel without modules has it
    # built in, or answers that it has not.
    : >"$state/chains.before"
    if [ -d /sys/module/nf_tables ]; then nft -j list chains >"$state/chains.before"; fi
    if [ ! -e /proc/modules ]; then nft -j list chains >"$state/chains.before" || :; fi
    list_modules >"$state/modules.new"
    mv "$state/modules.new" "$state/modules.before"
}

# Modules that come later are somebody else's.
record_after() {
    [ -e "$state/modules.before" ] || return 0
    [ -e "$state/modules.after" ] || list_modules >"$state/modules.after"
}

# Notes kernel settings that the overlay is going to change, once: traces.restore_sysctls writes them back. Arguments:
# paths below /proc/sys, also as patterns; those that a device brings with it go with the device.
record_sysctls() {
    [ ! -e "$state/sysctls.before" ] || return 0
    for name; do
        # Not by the shell, which reads byte by byte: the kernel gives numbers to the first read only, and so one digit.
        # shellcheck disable=SC2086  # a pattern is to be expanded
        grep -sH '' /proc/sys/$name || :
    done | while IFS=: read -r file value; do echo "${file#/proc/sys/} $value"; done >"$state/sysctls.new"
    mv "$state/sysctls.new" "$state/sysctls.before"
}

# Nothing where the kernel takes no modules.
list_modules() { [ ! -e /proc/modules ] || cat /proc/modules; }

# Arguments: as modprobe(8) takes them. A container has no modules of the machine's kernel: the machine's own root has
# loaded what there is, and some are built in without a trace in /sys. What is missing shows when it is used.
need_module() { [ -d "/sys/module/$1" ] || [ ! -d "/lib/modules/$(uname -r)" ] || modprobe "$@"; }

# What the start scripts attach: the endpoint or, called with the argument endpoint2, a second one on the same node.
namespace=endpoint
[ "${1-}" != endpoint2 ] || namespace=endpoint2

# Makes the network namespace. Not the node's network under another name.
make_namespace() {
    [ -e /run/netns/$namespace ] || ip netns add $namespace
    ip -n $namespace link set lo up
}

# Calls a CNI plugin for the endpoint, as a container runtime would, and prints its answer. Arguments: ADD or DEL,
# the network's configuration (its own "type" is the first in it), the interface's name in the endpoint, and the
# folders with plugins, colons between them. A plugin that cannot reach its daemon may hang: always with a limit.
# Plugins name devices by the first letters of the container's name, which therefore differ: endpoint, 2endpoint2.
cni() {
    plugin=${2#*'"type"'} plugin=${plugin#*'"'} plugin=${plugin%%'"'*}
    folders=$4:
    while [ -n "$folders" ] && [ ! -x "${folders%%:*}/$plugin" ]; do folders=${folders#*:}; done
    [ -n "$folders" ] || { echo "there is no CNI plugin $plugin in $4"; return 1; }
    printf '%s\n' "$2" | CNI_COMMAND=$1 CNI_CONTAINERID=${namespace#endpoint}$namespace \
        CNI_NETNS=/run/netns/$namespace CNI_IFNAME=$3 \
        CNI_PATH=$4 timeout --kill-after=5 90 "${folders%%:*}/$plugin" 2>&1 || {
        ended=$?
        case $ended in 124 | 137) echo "it had not ended after 90 s" ;; esac
        return $ended
    }
}
