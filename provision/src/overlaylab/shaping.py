"""From a profile to `tc`: what each node's underlay interface is told, and what it says back.

One mechanism for one zone and for many: HTB at the root, one class with the node's cap, below it one
class per zone with a netem leaf for that zone's delay, and a byte-bounded fifo as the queue. Filters
choose the class by the outer destination address. Why each size is what it is: docs/architecture.md,
"Shaping", which sums up what was measured.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from overlaylab.errors import UserError
from overlaylab.inventory import Inventory, InventoryNode
from overlaylab.profile import Profile

ETHERNET = 14
"""Bytes of an Ethernet header, which qdiscs count and the MTU does not."""

UNCAPPED = 100_000_000_000
"""Rate, bit/s, of the HTB classes where a profile delays but does not cap: above any NIC used here."""

DEFAULT_MTU = 1500
"""Bytes assumed for sizes where a profile leaves the node's own MTU."""

SUPER_PACKET = 65_536
"""Bytes: the largest packet that TCP hands down in one piece (net/core, GSO_LEGACY_MAX_SIZE)."""

NETEM_LIMIT = 20_000
"""Packets. netem's default of 1000 silently caps long fat paths; the fifo below it bounds the queue."""

STATE = "/run/overlaylab/profile"
"""On the node: what to restore, and the digest of what is applied. Gone after a reboot, as the shaping is."""


@dataclass(frozen=True)
class ZoneClass:
    """What traffic towards one zone gets. delay, jitter: seconds, one way; loss: ratio."""

    zone: str
    addresses: tuple[str, ...]
    delay: float
    jitter: float
    loss: float


@dataclass(frozen=True)
class NodeShaping:
    """What one node's underlay interface is told. rate: bit/s (None: uncapped), burst and queue: bytes."""

    interface: str
    mtu: int | None
    segmented: bool
    rate: float | None
    burst: int
    queue: int
    overhead: int
    zones: tuple[ZoneClass, ...]
    exempt_ssh: int | None
    """TCP port of the SSH server that is neither capped nor delayed, where the underlay carries SSH too."""

    @property
    def queueing(self) -> bool:
        """Whether a qdisc is needed at all."""
        return self.rate is not None or any(z.delay or z.jitter or z.loss for z in self.zones)

    @property
    def gso_max_size(self) -> int | None:
        """Bytes of the largest packet that TCP may hand down; None where all of them fit into the queue.

        Since Linux 4.17 TCP makes super-packets whatever ethtool says, and since 5.18 of full size where the RTT
        is below half a millisecond. A queue of 20 ms at 5 Mbit/s holds none of those: it would drop each.
        """
        if not (self.segmented and self.queueing) or self.queue >= 2 * SUPER_PACKET:
            return None
        return max(self.queue // 4, 2 * ((self.mtu or DEFAULT_MTU) + ETHERNET))

    @property
    def digest(self) -> str:
        """Names what is applied, so that applying it twice changes nothing."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]


def applied_delay(target_rtt: float | None, baseline_rtt: float) -> float:
    """One-way delay, s, that each of two nodes adds: half of what the RTT lacks to its target, or none."""
    return max(0.0, (target_rtt or 0.0) - baseline_rtt) / 2


def check_supported(profile: Profile, *, cpu_limits: bool = False) -> None:
    """Refuse what a profile can describe and nodes cannot be told yet. Raises UserError.

    cpu_limits: whether the nodes are made with the profile's vCPUs and quota, as system containers are.
    """
    of_cpu = {"quota": profile.quota, "vcpus": profile.vcpus}
    told = {
        "sustained": profile.sustained,
        "ingress_metered": profile.ingress_metered or None,
        **({} if cpu_limits else of_cpu),
    }
    for name, value in told.items():
        if value is not None:
            instead = ", or measure with PROVIDER=lxc, which can" if name in of_cpu else ""
            raise UserError(
                f"profile {profile.name}: {name}",
                "is described, but this version of overlaylab cannot put it in force",
                seen=value,
                fix=f"Choose a profile without it (./task profile:list){instead}: nothing is left out in silence",
            )


def node_shaping(
    profile: Profile, inventory: Inventory, node: InventoryNode, baseline_rtt: Mapping[frozenset[str], float]
) -> NodeShaping:
    """What `node` is told. baseline_rtt: {pair of node names: RTT in s without a profile}."""
    zones = []
    peers = [peer for peer in inventory.nodes if peer.name != node.name]
    for zone in sorted({peer.zone for peer in peers}):
        members = [peer for peer in peers if peer.zone == zone]
        target = profile.rtt(node.zone, zone)
        baseline = max(baseline_rtt.get(frozenset((node.name, peer.name)), 0.0) for peer in members)
        zones.append(
            ZoneClass(
                zone=zone,
                addresses=tuple(str(peer.underlay_address.ip) for peer in members),
                delay=applied_delay(target, baseline),
                jitter=profile.jitter or 0.0,
                loss=profile.loss or 0.0,
            )
        )
    mtu = profile.mtu or DEFAULT_MTU
    rate = profile.rate
    return NodeShaping(
        interface=node.underlay_interface,
        mtu=profile.mtu,
        segmented=profile.segmented,
        rate=rate,
        burst=profile.burst_bytes(mtu) if rate else 0,
        # At least two frames: a queue that holds none would drop everything.
        queue=max(int((rate or UNCAPPED) * profile.queue / 8), 2 * (mtu + ETHERNET)),
        overhead=round(profile.overhead),
        zones=tuple(zones),
        exempt_ssh=node.ssh_port if node.management_on_underlay else None,
    )


def tc_batch(shaping: NodeShaping) -> str:
    """Input for ``tc -batch -`` (tc(8), tc-htb(8), tc-netem(8), tc-bfifo(8)); empty where nothing is shaped."""
    if not shaping.queueing:
        return ""
    device = shaping.interface
    rate = int(shaping.rate or UNCAPPED)
    burst = shaping.burst or int(UNCAPPED * 0.008 / 8)
    # quantum: one frame, or HTB derives one from the rate and warns about it.
    quantum = (shaping.mtu or DEFAULT_MTU) + ETHERNET
    size = f"burst {burst}b cburst {burst}b quantum {quantum}"
    if shaping.overhead:
        size += f" overhead {shaping.overhead}"
    lines = [
        f"qdisc add dev {device} root handle 1: htb default 10",
        f"class add dev {device} parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit {size}",
    ]
    # A class may always send its own rate, whatever its parent has left (tc-htb(8)): the zones' rates must
    # not add up to more than the cap, or traffic to three zones at once would get three times of it.
    htb = f"htb rate {max(rate // len(shaping.zones), 8)}bit ceil {rate}bit {size}"
    for number, zone in enumerate(shaping.zones):
        minor = 0x10 + number
        lines.append(f"class add dev {device} parent 1:1 classid 1:{minor:x} {htb}")
        parent = f"1:{minor:x}"
        if zone.delay or zone.jitter or zone.loss:
            netem = f"netem delay {zone.delay * 1e6:.0f}us"
            if zone.jitter:
                # `rate` keeps packets in order, which jitter alone does not (tc-netem(8)).
                netem += f" {zone.jitter * 1e6:.0f}us rate {rate}bit"
            if zone.loss:
                netem += f" loss {zone.loss * 100:g}%"
            lines.append(
                f"qdisc add dev {device} parent {parent} handle {minor:x}: {netem} limit {NETEM_LIMIT}"
            )
            parent = f"{minor:x}:"
        lines.append(
            f"qdisc add dev {device} parent {parent} handle {0x100 + minor:x}: bfifo limit {shaping.queue}"
        )
        lines += [
            f"filter add dev {device} parent 1: protocol ip prio 10 u32 match ip dst {address}/32 flowid 1:{minor:x}"
            for address in zone.addresses
        ]
    if shaping.exempt_ssh:
        # The operator's way in: neither capped nor delayed, whatever the profile says.
        lines += [
            f"class add dev {device} parent 1: classid 1:2 htb rate {UNCAPPED}bit quantum {quantum}",
            f"filter add dev {device} parent 1: protocol ip prio 1 u32 "
            f"match ip protocol 6 0xff match ip sport {shaping.exempt_ssh} 0xffff flowid 1:2",
        ]
    return "\n".join(lines) + "\n"


# The host's endpoint is the node's own network: nothing further to do there.
_OWN_ENDPOINT = "[ -e /run/netns/endpoint ] && ! [ /run/netns/endpoint -ef /proc/self/ns/net ]"

# Segment everywhere a packet can still be a super-packet when the qdisc counts it: the underlay, the
# overlay's own devices and the endpoint's. Management (the default route's or eth0) is left alone.
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
        case $1-$device in root-lo | root-eth0 | endpoint-lo) [ "$device" = "$underlay" ] || continue ;; esac
        if [ "$value$fixed" = on ]; then on="$on $feature on" off="$off $feature off"; fi
    done <"$state/features"
}
"""


def mtu_script(interface: str, mtu: int) -> str:
    """POSIX sh for root on the node: the profile's MTU alone, before an overlay is converged.

    Daemons look at the underlay's MTU when they start; `clear_script` restores what was there before.
    """
    return f"""set -eu
underlay={shlex.quote(interface)}; state={STATE}
mkdir -p "$state"
[ -e "$state/mtu" ] || cat /sys/class/net/$underlay/mtu >"$state/mtu"
ip link set dev $underlay mtu {mtu}
"""


def apply_script(shaping: NodeShaping) -> str:
    """POSIX sh for root on the node: put the profile in force. Prints ``changed`` or ``unchanged``."""
    device = shlex.quote(shaping.interface)
    batch = tc_batch(shaping)
    return f"""set -eu
underlay={device}; state={STATE}; export underlay state
mkdir -p "$state"
if [ -e "$state/digest" ]; then
    read -r digest <"$state/digest"
    if [ "$digest" = {shaping.digest} ]; then echo unchanged; exit 0; fi
    # What another profile set and this one does not is the node's own again.
    ({clear_script(shaping.interface)}); mkdir -p "$state"
fi
[ -e "$state/mtu" ] || cat /sys/class/net/$underlay/mtu >"$state/mtu"
tc qdisc del dev $underlay root 2>/dev/null || :
{f"ip link set dev $underlay mtu {shaping.mtu}" if shaping.mtu else ""}
{f"tc -batch - <<'BATCH'{chr(10)}{batch}BATCH" if batch else ""}
{_gso_max_size(shaping.gso_max_size) if shaping.gso_max_size else ""}
{_segment_call() if shaping.segmented else ""}
echo {shaping.digest} >"$state/digest"
echo changed
"""


# The underlay's own traffic and the endpoint's alike: a burst that the endpoint's TCP sends at once would meet
# the same queue, packet by packet.
_LIMIT = """
limit() {
    before=$(ip -d link show dev "$2" | sed -n "s/.* gso_max_size \\([0-9]*\\).*/\\1/p")
    echo "$1 $2 $before" >>"$state/gso_max_sizes"
    ip link set dev "$2" gso_max_size "$gso_max_size"
}
"""


def _gso_max_size(size: int) -> str:
    return f"""
gso_max_size={size}; export gso_max_size
{_LIMIT}
limit root "$underlay"
if {_OWN_ENDPOINT}; then
    ip netns exec endpoint sh -euc '{_LIMIT}
    for link in /sys/class/net/*; do
        case $link in */lo) ;; *) limit endpoint "${{link##*/}}" ;; esac
    done'
fi"""


def _segment_call() -> str:
    return (
        _SEGMENT
        + """
segment root
if """
        + _OWN_ENDPOINT
        + """; then
    ip netns exec endpoint sh -euc '"""
        + _SEGMENT.replace("'", "'\\''")
        + """
    segment endpoint'
fi"""
    )


def clear_script(interface: str) -> str:
    """POSIX sh for root on the node: take the profile away and restore what it replaced."""
    return f"""set -eu
underlay={shlex.quote(interface)}; state={STATE}
[ -d "$state" ] || exit 0
# The MTU first: the default qdisc that takes the root's place sizes itself by it.
[ ! -e "$state/mtu" ] || ip link set dev $underlay mtu "$(cat "$state/mtu")"
tc qdisc del dev $underlay root 2>/dev/null || :
if [ -e "$state/gso_max_sizes" ]; then
    while read -r scope device size; do
        within=
        [ "$scope" = root ] || within='ip netns exec endpoint'
        $within ip link set dev "$device" gso_max_size "$size" 2>/dev/null || :
    done <"$state/gso_max_sizes"
fi
if [ -e "$state/offloads" ]; then
    while read -r scope device settings; do
        within=
        [ "$scope" = root ] || within='ip netns exec endpoint'
        # shellcheck disable=SC2086
        $within ethtool -K "$device" $settings 2>/dev/null || :
    done <"$state/offloads"
fi
rm -rf "$state"
"""
