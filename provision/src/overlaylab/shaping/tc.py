"""What tc(8) is told, as text for ``tc -batch``.

One mechanism for one peer and for many: HTB at the root, one class with the node's cap, below it one class per
peer with a netem leaf for that peer's delay, and a byte-bounded fifo as the queue. Filters choose the class by
the outer destination address: the peer's own, and its endpoint's where an overlay adds no header.
"""

from __future__ import annotations

from overlaylab.shaping.sizes import BURST_TIME, NodeShaping, PeerClass
from overlaylab.specs.profile_rules import UNCAPPED

# Packets. netem's default of 1000 silently caps long fat paths; the fifo below it bounds the queue.
NETEM_LIMIT = 20_000

# The ifb device through which incoming traffic goes where it is metered: qdiscs queue only what leaves.
INGRESS = "overlaylab-in"


def tc_batch(shaping: NodeShaping) -> str:
    """Input for ``tc -batch -`` (tc-htb(8), tc-netem(8), tc-bfifo(8)); empty where nothing is shaped."""
    if not shaping.queueing:
        return ""
    device = shaping.interface
    rate = shaping.rate or UNCAPPED
    size = _size(shaping, rate)
    lines = [
        f"qdisc add dev {device} root handle 1: htb default 10",
        f"class add dev {device} parent 1: classid 1:1 htb rate {rate:.0f}bit ceil {rate:.0f}bit {size}",
    ]
    # A class may always send its own rate, whatever its parent has left (tc-htb(8)): the peers' rates must
    # not add up to more than the cap, or traffic to three peers at once would get three times of it.
    share = max(int(shaping.sustained or rate) // max(len(shaping.peers), 1), 8)
    for number, peer in enumerate(shaping.peers):
        minor = _minor(number)
        lines.append(
            f"class add dev {device} parent 1:1 classid 1:{minor:x} htb rate {share}bit ceil {rate:.0f}bit {size}"
        )
        if peer.impaired:
            lines.append(
                f"qdisc add dev {device} parent 1:{minor:x} handle {minor:x}: {_netem(peer)} limit {NETEM_LIMIT}"
            )
        lines.append(f"qdisc add {_fifo(shaping, number, rate)}")
        lines += [
            f"filter add dev {device} parent 1: protocol ip prio 10 u32 match ip dst {address}/32 flowid 1:{minor:x}"
            for address in peer.addresses
        ]
    if shaping.exempt_ssh:
        # The operator's way in: neither capped nor delayed, whatever the profile says.
        lines += [
            f"class add dev {device} parent 1: classid 1:2 htb rate {UNCAPPED}bit quantum {shaping.frame}",
            f"filter add dev {device} parent 1: protocol ip prio 1 u32 "
            f"match ip protocol 6 0xff match ip sport {shaping.exempt_ssh} 0xffff flowid 1:2",
        ]
    if shaping.ingress:
        lines += _ingress(shaping, rate)
    return "\n".join(lines) + "\n"


def rate_batch(shaping: NodeShaping, rate: float) -> str:
    """Input for ``tc -batch`` that holds the node to another rate, bit/s, its queues with it."""
    device = shaping.interface
    lines = [
        f"class change dev {device} parent 1: classid 1:1 htb rate {rate:.0f}bit ceil {rate:.0f}bit {_size(shaping, rate)}"
    ]
    lines += [f"qdisc change {_fifo(shaping, number, rate)}" for number in range(len(shaping.peers))]
    return "\n".join(lines) + "\n"


def _minor(number: int) -> int:
    return 0x10 + number


def _size(shaping: NodeShaping, rate: float) -> str:
    burst = shaping.burst_at(rate) if shaping.rate else int(UNCAPPED * BURST_TIME / 8)
    # quantum: one frame, or HTB derives one from the rate and warns about it.
    size = f"burst {burst}b cburst {burst}b quantum {shaping.frame}"
    return f"{size} overhead {shaping.overhead}" if shaping.overhead else size


def _netem(peer: PeerClass) -> str:
    netem = f"netem delay {peer.delay * 1e6:.0f}us"
    if peer.jitter:
        # `rate` keeps packets in order, which jitter alone does not (tc-netem(8)). Not the cap: what exceeds it
        # would wait in here, where no queue is bounded, rather than in the fifo.
        netem += f" {peer.jitter * 1e6:.0f}us rate {UNCAPPED}bit"
    if peer.loss:
        netem += f" loss {peer.loss * 100:g}%"
    return netem


def _fifo(shaping: NodeShaping, number: int, rate: float) -> str:
    minor = _minor(number)
    parent = f"{minor:x}:" if shaping.peers[number].impaired else f"1:{minor:x}"
    return f"dev {shaping.interface} parent {parent} handle {0x100 + minor:x}: bfifo limit {shaping.queue_at(rate)}"


def _ingress(shaping: NodeShaping, rate: float) -> list[str]:
    device = shaping.interface
    lines = [
        f"qdisc add dev {INGRESS} root handle 1: htb default 10",
        f"class add dev {INGRESS} parent 1: classid 1:10 htb rate {rate:.0f}bit ceil {rate:.0f}bit {_size(shaping, rate)}",
        f"qdisc add dev {INGRESS} parent 1:10 handle 110: bfifo limit {shaping.queue_at(rate)}",
        f"qdisc add dev {device} handle ffff: ingress",
        f"filter add dev {device} parent ffff: protocol all prio 10 u32 match u32 0 0 "
        f"action mirred egress redirect dev {INGRESS}",
    ]
    if shaping.exempt_ssh:
        lines.append(
            f"filter add dev {device} parent ffff: protocol ip prio 1 u32 "
            f"match ip protocol 6 0xff match ip dport {shaping.exempt_ssh} 0xffff action pass"
        )
    return lines
