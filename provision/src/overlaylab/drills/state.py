"""What the network of nodes is like, and of the machine that containers share their kernel with."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping

from overlaylab.machine.root import run_as_root
from overlaylab.nodes import netstate
from overlaylab.nodes.netstate import State, difference
from overlaylab.nodes.ssh import Nodes

# Seconds until nodes that have just booted know that their IPv6 addresses are their own (RFC 4862).
SETTLES = 5

_SETTLE = f"""
tries=0
while [ $tries -lt {SETTLES * 5} ] && [ -n "$(ip -6 -o address show tentative)" ]; do tries=$((tries + 1)); sleep 0.2; done
"""

# Devices and chains that come and go with nodes, of this lab or of anybody's libvirt; modules stay once they are loaded.
OF_NODES = ("veth", "ovlab", "vnet", "virbr", "LIBVIRT")
MODULE = "module "


async def of_nodes(nodes: Nodes) -> dict[str, State]:
    """{node: its state}. NodeError where a node does not answer."""
    printed = await nodes.sh(_SETTLE + netstate.COLLECT, timeout=180)
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
    """Those of a machine that have nothing to do with which nodes run on it."""
    return [
        one for one in differences if not one.startswith(MODULE) and not any(word in one for word in OF_NODES)
    ]
