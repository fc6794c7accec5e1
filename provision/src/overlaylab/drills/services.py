"""The service under test on every node's endpoint: started before a drill, and taken away where nothing else would."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import resources

from overlaylab.core.errors import UserError
from overlaylab.drills import scripts
from overlaylab.drills.scripts import Place
from overlaylab.nodes.ssh import Nodes

UNITS = ("web.service", "resolver.service")

# EX_UNAVAILABLE of sysexits(3).
NOT_INSTALLED = 69


def _text(name: str) -> str:
    return (resources.files("overlaylab.drills") / "on_node" / name).read_text()


async def start(nodes: Nodes, places: Sequence[Place]) -> None:
    """Start the service on all nodes, anew where it runs. UserError where one cannot have it."""
    server = scripts.at(places, scripts.SERVER).endpoint
    text = _text("services.sh")

    async def on(place: Place) -> None:
        told = f"NODE={place.node} ENDPOINT={place.endpoint} SERVER={server}\n"
        done = await nodes[place.node].sh(told + text, check=False, timeout=120)
        if done.exit_code == NOT_INSTALLED:
            raise UserError(
                place.node, "must have what drills are about", seen=done.stderr.strip(),
                fix="Install nginx and dnsmasq there; nodes that the lab makes have them",
            )  # fmt: skip
        if done.exit_code != 0:
            raise UserError(
                f"{place.node}: web, resolver", "could not be started", seen=done.stderr.strip()[-500:],
                fix="See `journalctl -u web -u resolver` on the node",
            )  # fmt: skip

    await asyncio.gather(*map(on, places))


async def remove(nodes: Nodes) -> None:
    """Take it away from nodes that are not put back by a snapshot or a boot."""
    await nodes.sh(_text("services_remove.sh"), check=False, timeout=60)
