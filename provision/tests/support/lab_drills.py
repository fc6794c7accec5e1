"""A drill at hand on stand-ins for nodes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import lab_attempts
from lab_builders import inventory
from lab_fakes import FakeNode, FakeNodes

from overlaylab.core.model import Variant
from overlaylab.drills import attempt, scripts
from overlaylab.drills.attempt import AtHand
from overlaylab.drills.guards import Healthy
from overlaylab.drills.judge import Cycle, Window, window
from overlaylab.machine import services
from overlaylab.specs import drill as drills
from overlaylab.specs.inventory import write_inventory
from overlaylab.store.store import Store

NODES = inventory("a", "a")
ADDRESSES = {"node1": "10.244.1.2", "node2": "10.244.2.2"}
PLACES = scripts.places(NODES, ADDRESSES)
FLANNEL = Variant("flannel", "vxlan")


def line(values: dict[str, float | None], t: float = 1.0) -> str:
    """As the prober prints it."""
    reasons = lab_attempts.STOPPED if values["fetched"] == 0 else {}
    return json.dumps({"t": t, "values": values, "reasons": reasons})


HEALTHY, BROKEN = line(lab_attempts.HEALTHY), line(lab_attempts.BROKEN)


def of(printed: str) -> Window:
    return window([Cycle.parse(printed)])


class ProbedNode(FakeNode):
    """Prints these lines whatever is started on it, and raises `after`; without one it is silent then."""

    printed: tuple[str, ...] = (HEALTHY,) * 50
    after: Exception | None = None

    async def lines(self, command: str, stdin: str) -> AsyncGenerator[str, None]:
        self.log.append(command)
        for one in self.printed:
            await asyncio.sleep(0.005)
            yield one
        if self.after is not None:
            raise self.after
        await asyncio.sleep(3600)


class ProbedNodes(FakeNodes):
    def __init__(self, answers: dict) -> None:
        super().__init__(NODES, answers)
        self._nodes = {spec.name: ProbedNode(spec, answers) for spec in NODES.nodes}

    def print(self, *lines: str) -> None:
        for node in self.values():
            node.printed = lines


@dataclass
class Hand:
    """An attempt that runs, with its file, its row in a database, and its nodes."""

    folder: Path
    nodes: ProbedNodes = field(default_factory=lambda: ProbedNodes({}))

    def __post_init__(self) -> None:
        self.store = Store.open(self.folder / "lab.sqlite")
        self.drill = drills.load("large-downloads-hang")
        write_inventory(self.folder / "inventory.yml", NODES)
        attempt.write(
            AtHand(
                attempt_id=lab_attempts.begin(self.store, drill_digest=self.drill.digest),
                database=self.store.path,
                drill=self.drill.name,
                digest=self.drill.digest,
                cluster="pair",
                provider="lxc",
                inventory=self.folder / "inventory.yml",
                profile="none",
                variant=FLANNEL,
                endpoints=ADDRESSES,
                ticket=time.monotonic(),
                boot=services.boot_id(),
                baseline={"client": of(HEALTHY), "server": of(HEALTHY)},
                broken={"client": of(BROKEN), "server": of(HEALTHY)},
                healthy=Healthy(),
            )
        )

    @property
    def now(self) -> AtHand:
        found = attempt.read("pair")
        assert found is not None
        return found
