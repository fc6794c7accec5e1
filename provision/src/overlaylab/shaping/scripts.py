"""POSIX sh for root on a node: put a profile in force, take it away, fill its bucket again."""

from __future__ import annotations

import shlex
from pathlib import Path

from overlaylab.shaping.on_node import bucket
from overlaylab.shaping.sizes import NodeShaping
from overlaylab.shaping.tc import INGRESS, rate_batch, tc_batch

# On the node: what to restore, and the digest of what is applied. Gone after a reboot, as the shaping is.
STATE = "/run/overlaylab/profile"
# What the node remembers of the profile that was put in force by hand (``record``).
RECORD = "/var/lib/overlaylab/profile.json"
# What puts the profile in force again after a reboot.
KEPT = "/var/lib/overlaylab/profile.sh"
UNIT = "overlaylab-profile.service"
BUCKET_UNIT = "overlaylab-bucket"

# The host's endpoint is the node's own network: nothing further to do there. A second one on the node, where a suite
# measures within it, is treated as the first.
_OWN_ENDPOINTS = """for endpoint in endpoint endpoint2; do
    [ -e /run/netns/$endpoint ] && ! [ /run/netns/$endpoint -ef /proc/self/ns/net ] || continue
    export endpoint"""

# Segment everywhere a packet can still be a super-packet when the qdisc counts it: the underlay (unless its
# NIC is to do it), the overlay's own devices and the endpoint's. Management (eth0) is left alone.
# One process asks for all devices (an ethtool before 5.9 knows no '*'), and one more sets each device that
# needs it: they cost 50 ms apiece on an emulated CPU. What is turned off here is noted, to be turned on again.
_SEGMENT = """
segment() {
    { ethtool -k '*' 2>/dev/null || for link in /sys/class/net/*; do ethtool -k "${link##*/}"; done; echo end; } |
        sed -n "s/^Features for \\(.*\\):$/device \\1/p; s/^tcp-segmentation-offload:/tso/p
            s/^generic-segmentation-offload:/gso/p; s/^generic-receive-offload:/gro/p; /^end$/p" >"$state/features"
    on='' off=''
    while read -r feature value fixed; do
        case $feature in
            device | end)
                if [ -n "$on" ]; then
                    echo "$1 $device$on" >>"$state/offloads"
                    # shellcheck disable=SC2086
                    ethtool -K "$device" $off 2>/dev/null || :
                fi
                device=$value on='' off=''
                continue ;;
        esac
        case $1-$device in
            "root-$nic") continue ;;
            *-lo | root-eth0) [ "$device" = "$underlay" ] || continue ;;
        esac
        if [ "$value$fixed" = on ]; then on="$on $feature on" off="$off $feature off"; fi
    done <"$state/features"
}
"""

_LIMIT = """
limit() {
    before=$(ip -d link show dev "$2" | sed -n "s/.* $3 \\([0-9]*\\).*/\\1/p")
    echo "$1 $2 $3 $before" >>"$state/gso_limits"
    ip link set dev "$2" "$3" "$4"
}
"""


def mtu_script(interface: str, mtu: int) -> str:
    """The profile's MTU alone, before an overlay is converged.

    Daemons look at the underlay's MTU when they start; `clear_script` restores what was there before.
    """
    return f"""set -eu
underlay={shlex.quote(interface)}; state={STATE}
mkdir -p "$state"
[ -e "$state/mtu" ] || cat /sys/class/net/$underlay/mtu >"$state/mtu"
ip link set dev $underlay mtu {mtu}
"""


def apply_script(shaping: NodeShaping, after_reboot: str = "") -> str:
    """Put the profile in force. Prints ``changed`` or ``unchanged``.

    after_reboot: what else, as POSIX sh, has to be done then.
    """
    script = _apply(shaping)
    if not shaping.restored:
        return script
    restored = f'if [ "${{1:-}}" = restored ]; then\n({after_reboot})\nfi\n' if after_reboot else ""
    return f"""set -eu
mkdir -p {Path(KEPT).parent}
cat >{KEPT} <<'PROFILE'
{script}{restored}PROFILE
if ! [ -e /etc/systemd/system/{UNIT} ] && [ -d /etc/systemd/system ]; then
    # systemd finds it when it starts next, which is when it is wanted: no reload, which takes long.
    mkdir -p /etc/systemd/system/multi-user.target.wants
    # With the path of commands that is in force here: the kit's tools are not on systemd's own.
    cat >/etc/systemd/system/{UNIT} <<UNIT
[Unit]
Description=The network profile that was in force before the reboot (overlaylab)
After=network.target
[Service]
Type=oneshot
RemainAfterExit=yes
Environment=PATH=$PATH
ExecStart=/bin/sh {KEPT} restored
UNIT
    ln -s ../{UNIT} /etc/systemd/system/multi-user.target.wants/{UNIT}
fi
sh {KEPT}
"""


def _apply(shaping: NodeShaping) -> str:
    device = shlex.quote(shaping.interface)
    batch = tc_batch(shaping)
    steps = [
        f"ip link set dev $underlay mtu {shaping.mtu}" if shaping.mtu else "",
        _INGRESS_DEVICE if shaping.ingress else "",
        f"tc -batch - <<'BATCH'\n{batch}BATCH" if batch else "",
        _gso_limits(shaping),
        _segmentation(shaping),
        _bucket(shaping) if shaping.sustained else "",
    ]
    wanted = "\n".join(step for step in steps if step)
    return f"""set -eu
underlay={device}; state={STATE}; export underlay state
if [ -e "$state/begun" ]; then
    digest=''; [ ! -e "$state/digest" ] || read -r digest <"$state/digest"
    if [ "$digest" = {shaping.digest} ]; then echo unchanged; exit 0; fi
    # What another profile set and this one does not is the node's own again.
    ({_restore(shaping.interface)})
fi
mkdir -p "$state"
: >"$state/begun"
[ -e "$state/mtu" ] || cat /sys/class/net/$underlay/mtu >"$state/mtu"
tc qdisc del dev $underlay root 2>/dev/null || :
{wanted}
echo {shaping.digest} >"$state/digest"
echo changed
"""


# Without numifbs the module brings two devices of its own. Where it cannot be loaded from here, as in a
# container, the kernel loads it when the device is asked for.
_INGRESS_DEVICE = f"""
[ -d /sys/module/ifb ] || {{ modprobe ifb numifbs=0 2>/dev/null && : >"$state/ifb"; }} || :
ip link add name {INGRESS} type ifb
ip link set dev {INGRESS} up"""


def _gso_limits(shaping: NodeShaping) -> str:
    """The underlay's own traffic and the endpoint's alike are kept from packets that the queue cannot hold: a
    burst that the endpoint's TCP sends at once would meet the same queue, packet by packet."""
    lines = []
    if shaping.single_packets:
        lines.append('limit root "$underlay" gso_max_segs 1')
    size = shaping.gso_max_size
    if size:
        lines.append(f'limit root "$underlay" gso_max_size {size}')
        lines.append(
            f"""{_OWN_ENDPOINTS}
    ip netns exec $endpoint sh -euc '{_LIMIT}
    for link in /sys/class/net/*; do
        case $link in */lo) ;; *) limit "$endpoint" "${{link##*/}}" gso_max_size {size} ;; esac
    done'
done"""
        )
    return "\n".join([_LIMIT.rstrip(), *lines]) if lines else ""


def _segmentation(shaping: NodeShaping) -> str:
    if not shaping.tunnels_segmented:
        return ""
    nic = "" if shaping.segmented else "$underlay"
    within = _SEGMENT.replace("'", "'\\''")
    return f"""nic={nic}; export nic
{_SEGMENT}
segment root
{_OWN_ENDPOINTS}
    ip netns exec $endpoint sh -euc '{within}
    segment "$endpoint"'
done"""


def _bucket(shaping: NodeShaping) -> str:
    assert shaping.rate and shaping.sustained and shaping.bucket
    program = Path(bucket.__file__).read_text(encoding="utf-8")
    full, empty = (rate_batch(shaping, rate) for rate in (shaping.rate, shaping.sustained))
    argv = f'python3 "$state/bucket.py" $underlay "$state" {shaping.bucket:.0f} {shaping.rate:.0f} {shaping.sustained:.0f}'
    return f"""cat >"$state/full" <<'BATCH'
{full}BATCH
cat >"$state/empty" <<'BATCH'
{empty}BATCH
cat >"$state/bucket.py" <<'PROGRAM'
{program}PROGRAM
if [ -d /run/systemd/system ]; then
    systemd-run --quiet --collect --unit={BUCKET_UNIT} --setenv=PATH="$PATH" {argv}
else
    setsid {argv} </dev/null >/dev/null 2>&1 &
fi
waited=0
until [ -s "$state/bucket" ]; do
    waited=$((waited + 1)); [ $waited -lt 200 ] || {{ echo "the bucket's keeper does not start" >&2; exit 1; }}
    sleep 0.05
done"""


# The bucket is full again, as after a launch.
FILL_BUCKET = f"""set -eu
read -r pid <{STATE}/bucket.pid
resets() {{ sed -n 's/.*"resets": \\([0-9]*\\).*/\\1/p' {STATE}/bucket; }}
before=$(resets)
kill -USR1 "$pid"
waited=0
until [ "$(resets)" != "$before" ]; do
    waited=$((waited + 1)); [ $waited -lt 100 ] || {{ echo "the bucket's keeper does not answer" >&2; exit 1; }}
    sleep 0.02
done
"""


def clear_script(interface: str) -> str:
    """Take the profile away, also for the time after a reboot, and restore what it replaced."""
    unit = f"/etc/systemd/system/{UNIT} /etc/systemd/system/multi-user.target.wants/{UNIT}"
    return f"""set -eu
[ ! -e {KEPT} ] || rm -f {KEPT} {unit}
rm -f {RECORD}
{_restore(interface)}"""


def _restore(interface: str) -> str:
    return f"""
underlay={shlex.quote(interface)}; state={STATE}
[ -d "$state" ] || exit 0
if [ -e "$state/full" ]; then
    if [ -d /run/systemd/system ]; then systemctl stop {BUCKET_UNIT}.service 2>/dev/null || :
    elif [ -e "$state/bucket.pid" ]; then
        read -r pid <"$state/bucket.pid"
        kill "$pid" 2>/dev/null || :
    fi
fi
# The MTU first: the default qdisc that takes the root's place sizes itself by it.
[ ! -e "$state/mtu" ] || ip link set dev $underlay mtu "$(cat "$state/mtu")"
tc qdisc del dev $underlay root 2>/dev/null || :
if [ -d /sys/class/net/{INGRESS} ]; then
    tc qdisc del dev $underlay ingress 2>/dev/null || :
    ip link del dev {INGRESS}
    [ ! -e "$state/ifb" ] || modprobe -r ifb 2>/dev/null || :
fi
if [ -e "$state/gso_limits" ]; then
    while read -r scope device what size; do
        within=
        [ "$scope" = root ] || within="ip netns exec $scope"
        $within ip link set dev "$device" "$what" "$size" 2>/dev/null || :
    done <"$state/gso_limits"
fi
if [ -e "$state/offloads" ]; then
    while read -r scope device settings; do
        within=
        [ "$scope" = root ] || within="ip netns exec $scope"
        # shellcheck disable=SC2086
        $within ethtool -K "$device" $settings 2>/dev/null || :
    done <"$state/offloads"
fi
rm -rf "$state"
"""
