"""Nodes that answer from a list instead of over SSH, and what tools on them would print."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from lab_builders import cpu

from overlaylab.core.errors import NodeError
from overlaylab.core.model import JSON
from overlaylab.nodes.ssh import Completed
from overlaylab.specs.inventory import Inventory, InventoryNode

FIXTURES = Path(__file__).parents[1] / "fixtures"

# What a script gets: its output, the whole outcome, an error, or a function of the script that says.
Answer = str | Completed | Exception | Callable[[str], "Answer"]


def failed(exit_code: int, stderr: str = "", stdout: str = "") -> Completed:
    """A command that did not end well."""
    return Completed(exit_code, stdout, stderr, 0.5)


class FakeNode:
    """Answers a script with the first of `answers` whose key is in it; the node's own before the common ones."""

    def __init__(self, spec: InventoryNode, common: dict[str, Answer]) -> None:
        self.spec, self.name = spec, spec.name
        self.answers: dict[str, Answer] = {}
        self.common = common
        self.log: list[str] = []
        self.stdin: list[str | bytes | None] = []
        self.connected = True
        # What the open shell itself prints; as if it were busy, until a test says otherwise.
        self.looked: Callable[[str], str | None] = lambda script: None

    async def connect(self, timeout: float = 60) -> None:
        self.connected = True

    def drop(self) -> None:
        self.connected = False

    async def sh(
        self, script: str, *, timeout: float = 60, check: bool = True, stdin: str | bytes | None = None
    ) -> Completed:
        self.log.append(script)
        self.stdin.append(stdin)
        known = [*self.answers.items(), *self.common.items()]
        answer = next((answer for key, answer in known if key in script), None)
        assert answer is not None, f"{self.name} has no answer to: {script}"
        while callable(answer):
            answer = answer(script)
        if isinstance(answer, Exception):
            raise answer
        done = answer if isinstance(answer, Completed) else Completed(0, answer, "", 0.5)
        if check and done.exit_code != 0:
            raise NodeError(f"{self.name}: ended with {done.exit_code}: {done.stderr}")
        return done

    async def look(self, script: str, *, timeout: float = 5) -> str | None:
        return self.looked(script)


class FakeNodes(Mapping[str, FakeNode]):
    """As `overlaylab.nodes.ssh.Nodes`. `answers` are common to all nodes."""

    def __init__(self, inventory: Inventory, answers: dict[str, Answer]) -> None:
        self.inventory = inventory
        self.answers = answers
        self._nodes = {spec.name: FakeNode(spec, answers) for spec in inventory.nodes}
        self.dropped = 0

    def __getitem__(self, name: str) -> FakeNode:
        return self._nodes[name]

    def __iter__(self):
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    async def connect(self, timeout: float = 60) -> None:
        for node in self.values():
            await node.connect(timeout)

    def drop(self) -> None:
        self.dropped += 1
        for node in self.values():
            node.drop()

    async def sh(self, script: str, *, only: Iterable[str] | None = None, **options) -> dict[str, Completed]:
        return {name: await self[name].sh(script, **options) for name in (only or self)}


# -- what tools print -------------------------------------------------------------------------------


def ping(rtts: Iterable[float], script: str = "") -> str:
    """`ping -n -D` with these round-trip times, in s; where `script` asks for more pings, these are lost."""
    rtts = list(rtts)
    asked = re.search(r"ping .*-c (\d+)", script)
    sent = max(len(rtts), int(asked[1]) if asked else 0)
    lines = [
        f"[{1795181239 + n * 0.01:.6f}] 64 bytes from 192.168.77.12: icmp_seq={n} ttl=64 time={rtt * 1e3:.3f} ms"
        for n, rtt in enumerate(rtts, 1)
    ]
    end = f"{sent} packets transmitted, {len(rtts)} received, 0% packet loss, time 10ms"
    return "\n".join(["PING", *lines, "", end, ""])


def iperf3(bits_per_second: float) -> str:
    """A recorded report of iperf3 with another goodput, for as long as a suite asks."""
    report = json.loads((FIXTURES / "iperf3" / "3.12-tcp.out").read_text())
    whole = {"seconds": 5, "bytes": round(bits_per_second * 5 / 8), "bits_per_second": bits_per_second}
    report["end"]["sum_received"] |= whole
    report["end"]["sum_sent"] |= whole
    return json.dumps(report)


def qperf(latency_ns: int = 395_000) -> str:
    """A recorded result of qperf tcp_lat with another latency, of 2 s."""
    text = (FIXTURES / "qperf" / "0.4.11-tcp_lat.out").read_text()
    other = {"latency": f"{latency_ns:,} ns"} | dict.fromkeys(
        ("loc_send_msgs", "rem_recv_msgs"), str(round(1e9 / latency_ns))
    )
    lines = [
        f"    {name}  =  {other[name]}" if (name := line.partition("=")[0].strip()) in other else line
        for line in text.splitlines()
    ]
    return "\n".join(lines) + "\n"


UNIT = "overlaylab-weave.service"
# A process as `health.sample_script` lists it: number, state, start.
DAEMON = [412, "S", 1041]


class Counters:
    """What `node_state.state_script` prints, call after call: `busy` of 100 ticks and `step` bytes each time.

    rx: bytes that the NIC has received for each byte that the peer's qdisc has sent. The units' daemon is process 412
    and uses 0.1 s of CPU time from call to call, until `daemons` holds what a call shall find in its place.
    """

    def __init__(
        self, *, busy: int = 50, step: int = 1_000_000, rx: float = 1.0, shaped: bool = True, unit: str = UNIT
    ) -> None:
        self.busy, self.step, self.rx, self.shaped, self.unit = busy, step, rx, shaped, unit
        self.calls = 0
        self.daemons: dict[int, list] = {}
        # The sample that was kept while the last trial ran.
        self.kept: JSON | None = None

    def _units(self, n: int) -> JSON:
        alive = self.daemons.get(n, [DAEMON])
        return {self.unit: {"cpu_usec": n * 100_000, "processes": alive} if alive else None}

    def __call__(self, script: str) -> str:
        self.calls += 1
        n = self.calls
        units = {"units": self._units(n), "units_during": self.kept} if '"units"' in script else {}
        root = {
            "kind": "htb" if self.shaped else "noqueue",
            "handle": "1:",
            "root": True,
            "bytes": n * self.step,
        }
        return json.dumps(
            {
                "cpu": cpu(self.busy * n, (100 - self.busy) * n),
                "uptime": 10.0 * n,
                "rx_bytes": round(n * self.step * self.rx),
                "tx_bytes": n * self.step,
                "rx_packets": n,
                "tx_packets": n,
                "rx_dropped": 0,
                "qdisc": [root],
                **units,
            }
        )
