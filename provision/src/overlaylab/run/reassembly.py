"""IP fragments that a trial left behind: the next one would suffer from them, so it waits until they are gone.

A datagram that is larger than the MTU goes in fragments, and under a flood some of each are lost. Linux keeps those of
incomplete datagrams for `ipfrag_time` (30 s), in at most `ipfrag_high_thresh` (4 MiB) of each network namespace, and takes
no fragment of a new datagram while that is full (Documentation/networking/ip-sysctl). Seen between emulated nodes: after
8 KiB datagrams offered at 3000 Mbit/s not one 8 KiB datagram arrived at 1 Mbit/s, for half a minute.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from overlaylab.core.errors import NodeError
from overlaylab.core.model import JSON, PlannedTrial
from overlaylab.run.evidence_local import FIRST, SECOND
from overlaylab.run.proof import Ends
from overlaylab.specs.profile import Profile
from overlaylab.tools import base as tools

# What may be left: a sixteenth of the room there is.
FEW_BYTES = 256 * 1024
# Seconds; what is there longer is somebody else's traffic, or a setting that is not the kernel's own.
PATIENCE = 45.0
_PAUSE = 1.0
# Seconds that Linux keeps the fragments of an incomplete datagram (`ipfrag_time`).
KEPT = 30.0
# bit/s: more than that is a flood where no profile caps the rate.
CARRIED = 1e9
ETHERNET_MTU = 1500

# Each namespace has its own store: the node's for the host network and the underlay, the endpoints' for overlays.
SCRIPT = (
    "cat /proc/net/sockstat; "
    f"for name in {FIRST} {SECOND}; do "
    '[ ! -e "/run/netns/$name" ] || nsenter --net="/run/netns/$name" cat /proc/net/sockstat; done'
)


@dataclass(frozen=True)
class Waited:
    """seconds: 0 where nothing was in the way. left: bytes in the fullest store at the end; above FEW_BYTES: given up."""

    seconds: float
    left: int


def held(sockstat: str) -> int:
    """Bytes of the fullest store among the namespaces whose /proc/net/sockstat is given, one after the other.

    NodeError where none tells: a kernel that has no line FRAG is not one that holds nothing.
    """
    found = [int(memory) for memory in re.findall(r"^FRAG: inuse \d+ memory (\d+)$", sockstat, re.MULTILINE)]
    if not found:
        raise NodeError(f"no line FRAG in /proc/net/sockstat: {sockstat[:200]!r}")
    return max(found)


async def emptied(ends: Ends, patience: float = PATIENCE) -> Waited:
    """Wait until both nodes have let go of fragments, or for `patience` seconds."""
    began = time.monotonic()
    looked = 0
    while True:
        printed = await asyncio.gather(*(node.sh(SCRIPT) for node in ends.nodes))
        waited, left = time.monotonic() - began, max(held(each.stdout) for each in printed)
        if left <= FEW_BYTES or waited > patience:
            return Waited(waited if looked else 0.0, left)
        looked += 1
        await asyncio.sleep(_PAUSE)


def expected(trials: Sequence[PlannedTrial], profile: Profile) -> float:
    """Seconds that the trials of one cell, in their order, will wait for the fragments of those before them."""
    waits, kept = 0.0, 0.0
    for trial in trials:
        if tools.protocol(trial.benchmark, trial.parameters) != "udp":
            kept = max(0.0, kept - tools.load(trial.tool).duration(trial.parameters))
            continue
        waits += kept
        kept = KEPT if _floods(trial.parameters, profile) else 0.0
    return waits


def _floods(parameters: JSON, profile: Profile) -> bool:
    """Whether it offers datagrams in fragments at more than the tier carries."""
    datagram, offered = parameters.get("datagram"), parameters.get("offered")
    if datagram in (None, tools.PATH) or offered is None:
        return False
    fragmented = datagram + tools.UDP_HEADERS > (profile.mtu or ETHERNET_MTU)
    return bool(fragmented and offered > (profile.rate or CARRIED))
