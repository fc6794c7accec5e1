"""A stored plan, nodes that answer from a list, and what carries the one out on the others."""

from __future__ import annotations

import json

from lab_builders import inventory
from lab_captures import echo, pinged_back, printed, udp
from lab_fakes import Counters, FakeNodes, iperf3, qperf

from overlaylab.core.model import ProfileCheck, RunRecord, Variant
from overlaylab.providers import Entered, registry
from overlaylab.run.plan import plan_trials
from overlaylab.run.runner import Runner
from overlaylab.specs import overlays
from overlaylab.specs.profile import load_profile
from overlaylab.specs.suite import load_suite
from overlaylab.store.store import Store

A1 = load_profile("azure-a1")
HOST, FASTDP, SLEEVE = Variant("host"), *overlays.select("weave", "fastdp,sleeve")
QUICK = load_suite("quick")
LAB = inventory("a", "a")
PROBE, STATUS, COUNTERS = "tcpdump -i", "overlay-status", "</proc/stat"
PING_BACK = "ping -n -q"
IPERF3, QPERF = "endpoint iperf3 --client", "endpoint qperf --listen_port 19765 --ip_port"
PASSED = ProfileCheck("goodput", "node1", "node2", 95.6e6, 95.6e6, 0.956e6, "bit/s", "pass")
FAILED = ProfileCheck("goodput", "node1", "node2", 95.6e6, 80e6, 0.956e6, "bit/s", "fail", "busy")


def status(variant: Variant, **changes) -> dict:
    """What the overlay says of itself where all is well, but for `changes`."""
    right = {
        "mode": variant.mode,
        "encrypted": variant.encrypted,
        "healthy": True,
        "reason": None,
        "version": "2.6.5",
        "endpoint_address": "10.32.0.2",
        "overlay_mtu": None if variant == HOST else 1376,
    }
    return right | changes


def probe(variant: Variant, *, received: int = 3, path: str = "a flow", **changes) -> str:
    """What a probe prints where all is well, but for `changes` in the status."""
    # Both nodes say that they have the same endpoint.
    frame = echo(ends=(bytes([10, 32, 0, 2]),) * 2) if variant == HOST else udp(bytes(50) + echo())
    return printed(*[frame] * 6, received=received, path=path, status=json.dumps(status(variant, **changes)))


class Lab:
    """A provider of two nodes on which everything goes right, until a test says otherwise."""

    name, accelerator, image, cluster = "libvirt", "tcg", "image", "pair"
    system, kit = "debian", "d1"
    capabilities = registry.capabilities(name)

    def __init__(self) -> None:
        self.current = HOST
        self.entered: list[Variant] = []
        self.booted: list[bool] = []
        self.renewed = 0
        self.nodes = FakeNodes(
            LAB,
            {
                PROBE: lambda _: probe(self.current),
                STATUS: lambda _: json.dumps(status(self.current)),
                PING_BACK: pinged_back(),
                COUNTERS: Counters(),
                IPERF3: lambda _: iperf3(95e6),
                QPERF: lambda _: qperf(395_000),
                "--version": "tool 1.2\n",
                "cat /sys/class/net/eth1/mtu": "9001\n",
                "systemctl stop": "",
            },
        )
        for node in self.nodes.values():
            node.answers[COUNTERS] = Counters()

    @property
    def client(self):
        return self.nodes["node1"]

    async def enter(self, variant: Variant, fresh: bool = False) -> Entered:
        self.entered.append(variant)
        self.booted.append(fresh)
        self.current = variant
        await self.nodes.connect()
        return Entered(revert=2.0, converge=0.0, booted=fresh)

    async def cpu_seconds(self) -> dict[str, float]:
        return {}

    async def renew(self) -> None:
        self.renewed += 1


class Shaper:
    """A profile that is always in force, until a test says otherwise."""

    def __init__(self, profile=A1) -> None:
        self.profile = profile
        self.checks = [PASSED]
        self.filled = 0
        self.endpoints: dict[str, str] = {}
        self.problems: dict[str, list[str]] = {"node1": [], "node2": []}

    async def fill_bucket(self) -> None:
        self.filled += 1

    async def prove(self, say) -> list[ProfileCheck]:
        return self.checks

    async def apply_and_read_back(self) -> dict[str, list[str]]:
        return self.problems


class Bench:
    """A stored plan and what carries it out."""

    def __init__(self, store: Store, *, variants=(HOST, FASTDP), blocks: int = 2, suite=QUICK) -> None:
        record = RunRecord(
            cluster="pair", provider="libvirt", accelerator="tcg", machine="2 cores", image="image",
            profile=A1.name, profile_digest=A1.digest, stands_for=A1.stands_for, suite=suite.name,
            suite_digest=suite.digest, scale=1.0, seed=7, blocks=blocks, variants=variants, role_digests={},
            zones={"node1": "a", "node2": "a"}, nodes={},
        )  # fmt: skip
        self.plan = plan_trials(suite, variants, blocks, 7, LAB)
        self.store, self.lab, self.shaper = store, Lab(), Shaper()
        self.run_id = store.begin_run(record, self.plan)
        self.said: list[str] = []
        self.blocks: list[int] = []

    async def run(self, **how) -> Runner:
        runner = Runner(
            self.store,
            self.run_id,
            self.lab,
            self.shaper,
            self.said.append,
            self.blocks.append,
            **how,  # type: ignore[arg-type]
        )
        await runner.run()
        return runner

    def rows(self, sql: str) -> list[tuple]:
        return [tuple(row) for row in self.store.db.execute(sql).fetchall()]

    def outcomes(self) -> list[tuple]:
        return self.rows("SELECT status, reason FROM _trial ORDER BY trial_id")

    def evidence(self, where: str = "1") -> list[tuple]:
        return self.rows(f"SELECT kind, phase, ok, reason FROM _evidence WHERE {where} ORDER BY evidence_id")
