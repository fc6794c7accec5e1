"""What the network of nodes is like, and of the machine that containers share their kernel with."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping

from overlaylab.machine.root import run_as_root
from overlaylab.nodes import netstate
from overlaylab.nodes.netstate import State, difference
from overlaylab.nodes.ssh import Nodes


async def of_nodes(nodes: Nodes) -> dict[str, State]:
    """{node: its state}. NodeError where a node does not answer."""
    printed = await nodes.sh(netstate.COLLECT, timeout=180)
    return {name: netstate.normalise(json.loads(done.stdout)) for name, done in printed.items()}


def differences(before: Mapping[str, State], after: Mapping[str, State]) -> dict[str, list[str]]:
    """{node: what differs, a sentence each}; empty where nothing does."""
    return {name: difference(before[name], after[name]) for name in before}


def of_machine() -> State | None:
    """This machine's own state; None where root may not be had. What belongs to the nodes comes and goes with them."""
    done = run_as_root(
        ["sh", "-c", netstate.COLLECT],
        "looking at this machine's own network",
        capture=True,
        stderr=subprocess.DEVNULL,
    )
    return netstate.normalise(json.loads(done.stdout)) if done.returncode == 0 else None


def of_its_own(differences: list[str]) -> list[str]:
    """Without what is of links to nodes, which get new ones with each boot."""
    return [one for one in differences if not any(word in one for word in ("veth", "ovlab"))]
