"""A profile on nodes that answer from a list, and a network whose delay is what they were told."""

from __future__ import annotations

import json
import re

from lab_builders import inventory
from lab_fakes import Counters, FakeNodes, iperf3, ping

from overlaylab import shaping, shaping_readback
from overlaylab.profile import load_profile
from overlaylab.shaper import Shaper

A1 = load_profile("azure-a1")
THEORY = 100e6 * 1448 / 1514
BASELINE = 0.000466
PAIR = frozenset(("node1", "node2"))
COUNTERS = "</proc/stat"
PING, IPERF3, READBACK = "ping -n", "iperf3 --client", "tc -j qdisc show"


def readback(shaped: shaping.NodeShaping, **changes) -> str:
    """What a node prints on which `shaped` is in force, but for `changes`."""
    qdiscs = [{"kind": "htb" if shaped.queueing else "noqueue", "root": True, "handle": "1:"}]
    qdiscs += [
        {"kind": "netem", "parent": f"1:{0x10 + n:x}", "options": {"delay": {"delay": zone.delay}}}
        for n, zone in enumerate(shaped.zones)
        if zone.delay
    ]
    seen = {"digest": shaped.digest, "mtu": 1500, "offloads_on": "", "qdisc": qdiscs} | changes
    rate = f"{(shaped.rate or shaping.UNCAPPED) / 1e3:.0f}Kbit"
    return f"{json.dumps(seen)}\n{shaping_readback._CUT}\nclass htb 1:1 root rate {rate} ceil {rate}\n"


def shaper(profile=A1, *, zones=("a", "a"), **answers) -> Shaper:
    """On nodes where everything goes right, but for `answers`."""
    nodes = FakeNodes(inventory(*zones), {})
    found = Shaper(nodes, profile, {PAIR: BASELINE})
    nodes.answers |= {
        PING: ping([BASELINE + 0.0005] * 200),
        IPERF3: iperf3(THEORY),
        COUNTERS: Counters(),
        "tc -batch": "changed\n",
        '[ -d "$state" ] || exit 0': "",
        "systemctl": "",
        "unshare --net tc": "",
    }
    for name, node in nodes.items():
        node.answers |= answers
        node.answers.setdefault(READBACK, lambda _, name=name: readback(found.told(name)))
    return found


class Network:
    """Answers pings: `bare` s, what netem adds on each node, and `cost` s where netem adds anything.

    bare may be a list: the RTTs of ping after ping. Loaded pings (17 of them) take `loaded` s.
    """

    def __init__(
        self, found: Shaper, bare: float | list[float], cost: float = 0.0, loaded: float = 0.02
    ) -> None:
        self.found, self.cost, self.loaded = found, cost, loaded
        self.bare = bare if isinstance(bare, list) else [bare] * 200
        self.delays: list[float] = []
        """Round-trip delay in force, s, ping after ping."""

    def __call__(self, script: str) -> str:
        if "-c 17" in script:
            return ping([self.loaded] * 17)
        added = sum(map(self._delay, self.found.nodes.values()))
        self.delays.append(added)
        return ping([rtt + added + (self.cost if added else 0.0) for rtt in self.bare])

    @staticmethod
    def _delay(node) -> float:
        """What the node was told last."""
        for script in reversed(node.log):
            if "tc -batch" in script:
                return sum(float(us) * 1e-6 for us in re.findall(r"netem delay (\d+)us", script))
            if script == shaping.clear_script("eth1"):
                return 0.0
        return 0.0


def network(
    bare: float | list[float], profile=A1, *, cost: float = 0.0, loaded: float = 0.02, **options
) -> Shaper:
    """A shaper on such a network."""
    found = shaper(profile, **options)
    found.nodes.answers[PING] = Network(found, bare, cost, loaded)
    return found
