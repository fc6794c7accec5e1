"""A profile on nodes that answer from a list, and a network whose delay is what they were told."""

from __future__ import annotations

import json
import re
from ipaddress import IPv4Address

from lab_builders import inventory
from lab_fakes import Counters, FakeNodes, iperf3, ping

from overlaylab.shaping import readback as shaping_readback
from overlaylab.shaping import scripts, sizes
from overlaylab.shaping.shaper import Shaper
from overlaylab.specs import profile_rules
from overlaylab.specs.profile import load_profile

A1 = load_profile("azure-a1")
THEORY = 100e6 * 1448 / 1514
BASELINE = 0.000466
PAIR = frozenset(("node1", "node2"))
COUNTERS = "</proc/stat"
PING, IPERF3, READBACK = "ping -n", "iperf3 --client", "tc -j qdisc show"


def readback(shaped: sizes.NodeShaping, **changes) -> str:
    """What a node prints on which `shaped` is in force, but for `changes`."""
    qdiscs = [{"kind": "htb" if shaped.queueing else "noqueue", "root": True, "handle": "1:"}]
    qdiscs += [
        {
            "kind": "netem",
            "parent": f"1:{n:x}",
            "options": {
                "delay": {"delay": peer.delay, "jitter": peer.jitter},
                "loss-random": {"loss": peer.loss},
            },
        }
        for n, peer in enumerate(shaped.peers, 0x10)
        if peer.impaired
    ]
    rate = shaped.rate or profile_rules.UNCAPPED
    qdiscs += [
        {
            "kind": "bfifo",
            "parent": f"{n:x}:" if peer.impaired else f"1:{n:x}",
            "options": {"limit": shaped.queue_at(rate)},
        }
        for n, peer in enumerate(shaped.peers, 0x10)
    ]
    seen = {"digest": shaped.digest, "mtu": 1500, "offloads_on": "", "kept": "1", "qdisc": qdiscs} | changes
    printed = f"rate {rate / 1e3:.0f}Kbit ceil {rate / 1e3:.0f}Kbit"
    classes = [f"class htb 1:1 root {printed}"]
    classes += [
        f"class htb 1:{n:x} parent 1:1 leaf 10: prio 0 {printed}" for n, _ in enumerate(shaped.peers, 0x10)
    ]
    filters = [
        f"filter parent 1: protocol ip pref 10 u32 flowid 1:{n:x} not_in_hw\n"
        f"  match {int(IPv4Address(peer.address)):08x}/ffffffff at 16"
        for n, peer in enumerate(shaped.peers, 0x10)
    ]
    cut = f"\n{shaping_readback._CUT}\n"
    return cut.join([json.dumps(seen), "\n".join(classes), "\n".join(filters), ""])


def shaper(profile=A1, *, zones=("a", "a"), **answers) -> Shaper:
    """On nodes where everything goes right, but for `answers`."""
    nodes = FakeNodes(inventory(*zones), {})
    found = Shaper(nodes, profile, machine=None, baseline={PAIR: BASELINE})
    nodes.answers |= {
        PING: lambda script: ping([BASELINE + 0.0005] * 200, script),
        IPERF3: iperf3(THEORY),
        COUNTERS: Counters(),
        "tc -batch": "changed\n",
        '[ -d "$state" ] || exit 0': "",
        "systemctl": "",
        "unshare --net tc": "",
    }
    for name, node in nodes.items():
        node.answers |= answers
        node.answers.setdefault(READBACK, lambda _, name=name: readback(found.shaping_of(name)))
    return found


class Network:
    """Answers pings: `bare` s, what netem adds on each node, and `cost` s where netem adds anything.

    bare may be a list: the RTTs of ping after ping. Loaded pings (15 of them) take `loaded` s.
    """

    def __init__(
        self, found: Shaper, bare: float | list[float], cost: float = 0.0, loaded: float = 0.02
    ) -> None:
        self.found, self.cost, self.loaded = found, cost, loaded
        self.bare = bare if isinstance(bare, list) else [bare] * 200
        # Round-trip delay in force, s, ping after ping.
        self.delays: list[float] = []

    def __call__(self, script: str) -> str:
        if "-c 15" in script:
            return ping([self.loaded] * 15, script)
        added = sum(map(self._delay, self.found.nodes.values()))
        self.delays.append(added)
        return ping([rtt + added + (self.cost if added else 0.0) for rtt in self.bare], script)

    @staticmethod
    def _delay(node) -> float:
        """What the node was told last."""
        for script in reversed(node.log):
            if "tc -batch" in script:
                return sum(float(us) * 1e-6 for us in re.findall(r"netem delay (\d+)us", script))
            if script == scripts.clear_script("eth1"):
                return 0.0
        return 0.0


def network(
    bare: float | list[float], profile=A1, *, cost: float = 0.0, loaded: float = 0.02, **options
) -> Shaper:
    """A shaper on such a network."""
    found = shaper(profile, **options)
    found.nodes.answers[PING] = Network(found, bare, cost, loaded)
    return found
