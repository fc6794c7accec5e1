"""The prober on the ends of a drill: cycle after cycle, for as long as somebody asks for them."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing
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


async def cycles(node: Node, place: Place, server: str, limit: float) -> AsyncIterator[Cycle]:
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


async def window(
    nodes: Nodes, places: Sequence[Place], roles: Collection[str], count: int, limits: Mapping[str, float]
) -> dict[str, tuple[Cycle, ...]]:
    """{role: so many cycles}, of all ends at once. NodeError where a node does not answer."""
    server = scripts.at(places, scripts.SERVER).endpoint

    async def of(role: str) -> tuple[Cycle, ...]:
        place = scripts.at(places, role)
        found: list[Cycle] = []
        async with aclosing(cycles(nodes[place.node], place, server, limits[role])) as running:
            async for cycle in running:
                found.append(cycle)
                if len(found) == count:
                    break
        return tuple(found)

    found = await asyncio.gather(*map(of, roles))
    return dict(zip(roles, found, strict=True))
