"""Finds the largest packet that passes with DF set, by pinging; and whether it leaves the node in one piece."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from overlaylab.nodes.ssh import Node
from overlaylab.run.evidence import HEADERS

# Every network must carry that much in one piece (RFC 791).
SMALLEST = 68
# The most that an IPv4 packet's length can say.
LARGEST = 65535
# Asks the other node itself; `evidence.asking` its endpoint.
ON_NODE = "ping"

_CUT = "=====overlaylab====="


@dataclass(frozen=True)
class Try:
    """What became of pings of one size. refused: by a device, the kernel or a router; mtu: what they named."""

    passed: bool
    refused: bool = False
    mtu: int | None = None


def ping_script(ask: str, address: str, size: int) -> str:
    """POSIX sh for root: two pings of that many bytes with DF; `read_ping` reads it. ask: what takes ping's options."""
    # Not quiet: what was refused is told in lines of their own. LC_ALL: those are translated.
    return f"LC_ALL=C {ask} -n -c 2 -i 0.2 -W 1 -M do -s {size - HEADERS} {address} 2>&1"


def read_ping(printed: str) -> Try:
    """ping's lines: "Frag needed and DF set (mtu = 1438)" from a router, "message too long, mtu=1400" from here."""
    answered = re.search(r"(\d+) received", printed)
    if answered and int(answered[1]) > 0:
        return Try(True)
    said = re.findall(r"(?:Frag needed and DF set|[Mm]essage too long)(?:[^\n]*?mtu ?[=:] ?(\d+))?", printed)
    named = [int(mtu) for mtu in said if mtu]
    return Try(False, bool(said), min(named) if named else None)


async def largest(
    attempt: Callable[[int], Awaitable[Try]], limit: int, hints: Iterable[int] = ()
) -> tuple[int | None, bool]:
    """(the largest size up to `limit` that passes, whether senders of more are told); None: not even the smallest.

    hints: sizes that it may well be; with the right one it takes three tries, else a bisection.
    """
    senders_learn = True
    guesses = sorted(hints, reverse=True)
    low, high = 0, limit + 1  # the first passes or is none, the second does not

    async def narrow(size: int) -> bool:
        nonlocal senders_learn, low, high
        tried = await attempt(size)
        if tried.passed:
            low = size
        else:
            high, senders_learn = size, senders_learn and tried.refused
            guesses.extend([tried.mtu] if tried.mtu else [])
        return tried.passed

    if await narrow(limit):
        return limit, True
    for guess in guesses:  # grows meanwhile by what refusals name
        for size in (guess, guess + 1):
            if not max(low, SMALLEST - 1) < size < high or not await narrow(size):
                break
    while high - low > 1 and high > SMALLEST:
        await narrow(max((low + high) // 2, SMALLEST))
    return low or None, senders_learn


async def from_node(
    node: Node, ask: str, address: str, limit: int, hints: Iterable[int]
) -> tuple[int | None, bool]:
    """`largest` from a node, between endpoints or on the underlay."""

    async def attempt(size: int) -> Try:
        return read_ping((await node.sh(ping_script(ask, address, size), check=False)).stdout)

    return await largest(attempt, min(limit, LARGEST), hints)


def fragments_script(ask: str, address: str, size: int) -> str:
    """POSIX sh for root: pings of that size between endpoints, with the node's IP counters before and after."""
    look = "cat /proc/net/snmp"
    return f"{look}; echo '{_CUT}'; {{ {ping_script(ask, address, size)}; }} >/dev/null; {look}"


def read_fragments(printed: str) -> int:
    """How many fragments the node's own network made meanwhile (FragCreates, proc_net(5)). ValueError if cut short."""
    before, cut, after = printed.partition(_CUT)
    if not cut:
        raise ValueError(f"the counters stopped early: {printed.strip()[-200:]!r}")
    return _frag_creates(after) - _frag_creates(before)


def _frag_creates(text: str) -> int:
    names, values = (line.split() for line in text.splitlines() if line.startswith("Ip:"))
    return int(values[names.index("FragCreates")])
