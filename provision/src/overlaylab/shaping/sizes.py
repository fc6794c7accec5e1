"""From a profile to what each node's underlay interface is told.

What is computed here, `tc` says to tc, `scripts` puts in force, and `readback` reads
back. Why each size is what it is: docs/architecture.md, "Shaping", which sums up what was measured.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from overlaylab.specs.inventory import EXTERNAL, Inventory, InventoryNode
from overlaylab.specs.profile import Profile
from overlaylab.specs.profile_rules import UNCAPPED

# Bytes of an Ethernet header, which qdiscs count and the MTU does not.
ETHERNET = 14

# Bytes assumed for sizes where a profile leaves the node's own MTU.
DEFAULT_MTU = 1500

# Bytes: the largest packet that TCP hands down in one piece (net/core, GSO_LEGACY_MAX_SIZE).
SUPER_PACKET = 65_536

# Seconds at the rate that a bucket of HTB holds.
BURST_TIME = 0.008


@dataclass(frozen=True)
class PeerClass:
    """What traffic towards one other node gets. delay, jitter: seconds, one way; loss: ratio.

    endpoint: the overlay's address on that node, where packets to it cross the underlay as they are.
    """

    node: str
    address: str
    delay: float
    jitter: float
    loss: float
    endpoint: str | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """Outer destination addresses by which its traffic is known."""
        return (self.address,) if self.endpoint in (None, self.address) else (self.address, self.endpoint)

    @property
    def impaired(self) -> bool:
        return bool(self.delay or self.jitter or self.loss)


@dataclass(frozen=True)
class NodeShaping:
    """What one node's underlay interface is told.

    rate, sustained: bit/s (None: uncapped, one rate); bucket: bytes above `sustained` that go out at `rate`;
    burst: bytes, of HTB's own bucket at the rate; queue: seconds at the rate that a packet waits at most.
    offloads: as `Profile` has them. ingress: what comes in is held to the rate too. restored: after a reboot.
    """

    interface: str
    mtu: int | None
    offloads: str
    rate: float | None
    sustained: float | None
    bucket: float | None
    burst: int
    queue: float
    overhead: int
    peers: tuple[PeerClass, ...]
    ingress: bool
    # TCP port of the SSH server that is neither capped nor delayed, where the underlay may carry SSH too.
    exempt_ssh: int | None
    restored: bool

    @property
    def queueing(self) -> bool:
        """Whether a qdisc is needed at all."""
        return self.rate is not None or any(peer.impaired for peer in self.peers)

    @property
    def segmented(self) -> bool:
        """Everything is cut into packets before it is counted."""
        return self.offloads == "segmented"

    @property
    def tunnels_segmented(self) -> bool:
        """What leaves an overlay's devices is cut into packets before the underlay counts it."""
        return self.offloads in ("segmented", "no-tunnel-offload")

    @property
    def frame(self) -> int:
        """Bytes of a full frame as qdiscs count it."""
        return (self.mtu or DEFAULT_MTU) + ETHERNET

    def burst_at(self, rate: float) -> int:
        """Bytes of HTB's bucket at a rate: 8 ms or as stated, and two frames at least."""
        return self.burst if rate == self.rate else round(max(rate / 8 * BURST_TIME, 2 * self.frame))

    def queue_at(self, rate: float) -> int:
        """Bytes that wait at most at a rate; a queue that holds no two frames would drop everything."""
        return max(int(rate * self.queue / 8), 2 * self.frame)

    @property
    def gso_max_size(self) -> int | None:
        """Bytes of the largest packet that TCP may hand down; None where all of them fit into the queue."""
        # Since Linux 4.17 TCP makes super-packets whatever ethtool says, since 5.18 of full size where the RTT is below
        # half a millisecond. A queue of 20 ms at 5 Mbit/s holds none of those: it would drop each.
        queue = self.queue_at(self.sustained or self.rate or UNCAPPED)
        if not (self.tunnels_segmented and self.queueing) or queue >= 2 * SUPER_PACKET:
            return None
        return max(queue // 4, 2 * self.frame)

    @property
    def single_packets(self) -> bool:
        """TCP may hand down single packets only: netem loses whole what it is given, a super-packet too."""
        return any(peer.loss for peer in self.peers)

    @property
    def digest(self) -> str:
        """Names what is applied, so that applying it twice changes nothing."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]


def applied_delay(target_rtt: float | None, baseline_rtt: float) -> float:
    """One-way delay, s, that each of two nodes adds: half of what the RTT lacks to its target, or none."""
    return max(0.0, (target_rtt or 0.0) - baseline_rtt) / 2


def node_shaping(
    profile: Profile,
    inventory: Inventory,
    node: InventoryNode,
    baseline_rtt: Mapping[frozenset[str], float],
    endpoints: Mapping[str, str] | None = None,
) -> NodeShaping:
    """What `node` is told.

    baseline_rtt: {pair of node names: RTT in s without a profile}. endpoints: {node name: address on the overlay}.
    """
    delays = {
        peer: applied_delay(
            profile.rtt(node.zone, peer.zone), baseline_rtt.get(frozenset((node.name, peer.name)), 0.0)
        )
        for peer in inventory.nodes
        if peer.name != node.name
    }
    peers = tuple(
        PeerClass(
            node=peer.name,
            address=str(peer.underlay_address.ip),
            delay=delay,
            # A delay of nothing has nothing to vary.
            jitter=profile.jitter if delay else 0.0,
            loss=profile.loss,
            endpoint=(endpoints or {}).get(peer.name),
        )
        for peer, delay in delays.items()
    )
    mtu = profile.mtu or DEFAULT_MTU
    elsewhere = inventory.provider == EXTERNAL
    return NodeShaping(
        interface=node.underlay_interface,
        mtu=profile.mtu,
        offloads=profile.offloads,
        rate=profile.rate,
        sustained=profile.sustained,
        bucket=profile.bucket,
        burst=profile.burst_bytes(mtu) if profile.rate else 0,
        queue=profile.queue,
        overhead=round(profile.overhead),
        peers=peers,
        ingress=bool(profile.ingress_metered and profile.rate),
        # Somebody else's host keeps its way in, which may well be this interface under another address: SSH is
        # exempt, and a reboot takes the profile away.
        exempt_ssh=node.ssh_port if node.management_on_underlay or elsewhere else None,
        restored=not elsewhere,
    )
