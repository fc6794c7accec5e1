"""The prober on the ends of a drill: cycle after cycle, for as long as somebody asks for them."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from importlib import resources

from overlaylab.core.measures import OF_CYCLE
from overlaylab.drills import scripts
from overlaylab.drills.judge import Cycle
from overlaylab.drills.on_node.prober import ANEW
from overlaylab.drills.scripts import Place
from overlaylab.nodes.ssh import Ended, Node, Nodes

# Seconds from one cycle to the next, at least.
EVERY = 1.0


def unmeasured(reason: str) -> Cycle:
    """A cycle of an endpoint in which nobody could use anything."""
    return Cycle(0.0, dict.fromkeys(OF_CYCLE), dict.fromkeys(OF_CYCLE, reason))


def said(stderr: str) -> str:
    """The last words of a prober that could not run."""
    return (stderr.strip().splitlines() or ["the endpoint cannot be entered"])[-1]


async def cycles(node: Node, place: Place, server: str, limit: float) -> AsyncGenerator[Cycle, None]:
    """What users at that end feel, without end. server: the address that the service's name stands for.

    Where the prober cannot run (the endpoint is gone), a cycle in which nothing could be measured. NodeError where the
    node does not answer.
    """
    text = (resources.files("overlaylab.drills") / "on_node" / "prober.py").read_text()
    arguments = shlex.join([place.peer_endpoint, server, f"{limit:g}", f"{EVERY:g}"])
    command = f"ip netns exec endpoint python3 -u - {arguments}"
    while True:
        try:
            async with aclosing(node.lines(command, text)) as lines:
                async for line in lines:
                    yield Cycle.parse(line)
        except Ended as ended:
            if ended.exit_code != ANEW:
                yield unmeasured(said(ended.stderr))
                await asyncio.sleep(EVERY)


@dataclass(frozen=True)
class Seen:
    """A cycle, and when it was told here: s on this machine's monotonic clock."""

    role: str
    at: float
    cycle: Cycle


async def window(
    nodes: Nodes, places: Sequence[Place], count: int, limits: Mapping[str, float]
) -> tuple[Seen, ...]:
    """So many cycles of every end that `limits` names, both at once. limits: {role: seconds that a fetch may take}.

    NodeError where a node does not answer.
    """

    async def of(role: str) -> list[Seen]:
        place = scripts.at(places, role)
        found: list[Seen] = []
        running = cycles(nodes[place.node], place, server_of(places), limits[role])
        async with aclosing(running):
            async for cycle in running:
                found.append(Seen(role, time.monotonic(), cycle))
                if len(found) == count:
                    break
        return found

    found = await asyncio.gather(*map(of, limits))
    return tuple(sorted((one for of_role in found for one in of_role), key=lambda one: one.at))


def server_of(places: Sequence[Place]) -> str:
    """The address that the service's name stands for."""
    return scripts.at(places, scripts.SERVER).endpoint
