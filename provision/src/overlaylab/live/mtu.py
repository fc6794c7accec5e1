"""The MTU doctor's judgement: whether an overlay's MTU suits the underlay. Numbers in, words out.

How the numbers come about is in `mtu_probe`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from overlaylab.shaping import theory

RIGHT, WASTED, BLACK_HOLE, FRAGMENTED = "right", "wasted", "black hole", "fragmented"
UNDERLAY, UNREACHABLE = "underlay", "unreachable"
# Verdicts under which every packet that an application may send arrives in one piece.
SOUND = (RIGHT, WASTED)

# Share of goodput from which on a smaller MTU counts as wasted: Weave's 1376 in 1500 leaves 0.4 %, and room for a
# cloud that carries less than it says.
WORTH = 0.01


@dataclass(frozen=True)
class Direction:
    """What packets with DF found from one node to another; None where not even the smallest came through.

    passes: the largest between the endpoints, bytes. sender_learns: whether who sends more learns of it (by ICMP, or because
    the kernel knows). fragments: whether packets of that size leave the node's underlay in pieces.
    underlay: the largest between the nodes themselves.
    """

    client: str
    server: str
    passes: int | None
    sender_learns: bool
    fragments: bool
    underlay: int | None


@dataclass(frozen=True)
class Facts:
    """All that the verdict rests on. MTUs in bytes, the smallest of all nodes; header_bytes: of encapsulation.

    set_by: what somebody types to set the MTU, such as ``ARGUMENTS=overlay_weave_mtu``; None where nothing does.
    set_of_underlay: what is typed is the underlay's MTU, from which the overlay takes its headers off.
    """

    overlay: str
    mode: str
    encapsulation: str | None
    header_bytes: int
    underlay_mtu: int
    device: str
    device_mtu: int
    directions: tuple[Direction, ...]
    set_by: str | None
    set_of_underlay: bool = False

    @property
    def passes(self) -> int | None:
        """What passes in every direction; None where one carries nothing."""
        return _smallest(direction.passes for direction in self.directions)

    @property
    def underlay_passes(self) -> int | None:
        return _smallest(direction.underlay for direction in self.directions)

    @property
    def fits(self) -> int:
        """The largest packet of the endpoints that the underlay carries in one piece, by arithmetic."""
        return self.underlay_mtu - self.header_bytes


@dataclass(frozen=True)
class Finding:
    """verdict: one of the constants above; says: why, in a sentence or two; advice: what to do, None if nothing."""

    verdict: str
    says: str
    advice: str | None = None


def _smallest(sizes: Iterable[int | None]) -> int | None:
    found = list(sizes)
    return None if None in found or not found else min(size for size in found if size is not None)


def judge(facts: Facts) -> Finding:
    """One verdict: the first of what makes an overlay useless, slow, or smaller than it could be."""
    silent = [d for d in facts.directions if d.passes is None]
    passes, underlay = facts.passes, facts.underlay_passes
    if passes is None:
        where = ", ".join(f"{d.client} to {d.server}" for d in silent)
        return Finding(
            UNREACHABLE,
            f"nothing passes from {where}, whatever its size: that is no question of MTU",
            "See what the overlay says of itself: ./task lab:explain",
        )
    if underlay is None or underlay < facts.underlay_mtu:
        carried = "nothing" if underlay is None else f"no more than {underlay} bytes"
        return Finding(
            UNDERLAY,
            f"the underlay itself is the trouble: its devices say {facts.underlay_mtu}, and {carried} with DF passes "
            "between the nodes",
            None
            if underlay is None
            else f"Set the MTU of the nodes' underlay devices to {underlay}, or repair the "
            "path; then converge the overlay again",
        )
    if any(d.fragments for d in facts.directions):
        return Finding(
            FRAGMENTED,
            f"{passes} bytes pass, but not in one piece: with {facts.header_bytes} of headers they exceed the "
            f"underlay's {facts.underlay_mtu}, so every full packet crosses it as two",
            _advice(facts, facts.fits),
        )
    senders_learn = all(
        d.sender_learns for d in facts.directions if d.passes is not None and d.passes < facts.device_mtu
    )
    if passes < facts.device_mtu and not senders_learn:
        return Finding(
            BLACK_HOLE,
            f"packets of {passes + 1} to {facts.device_mtu} bytes vanish, and nobody tells the sender: {facts.device} "
            "promises more than passes, so small requests work and large answers hang",
            _advice(facts, min(passes, facts.fits)),
        )
    learns = "" if passes >= facts.device_mtu else (
        f"; {facts.device} says {facts.device_mtu}, and senders learn of the {passes} by path MTU discovery"
    )  # fmt: skip
    unused = max(0, facts.fits - passes)
    lost = _lost(facts, passes) if unused else 0.0
    if lost >= WORTH:
        more = (facts.fits - theory.INNER_HEADERS) / (passes - theory.INNER_HEADERS)
        return Finding(
            WASTED,
            f"the underlay would carry {facts.fits} bytes, {unused} more than the {passes} that pass: that costs "
            f"{lost:.1%} of goodput in headers alone, and {more:.1f} times the packets, which is what a CPU pays "
            f"for{learns}",
            _advice(facts, facts.fits),
        )
    rest = f"; {unused} bytes stay unused, {lost:.1%} of goodput" if unused else ""
    return Finding(RIGHT, f"{passes} bytes pass in both directions and in one piece{rest}{learns}")


def _lost(facts: Facts, passes: int) -> float:
    """Share of the goodput of full packets that these smaller ones lack, by header arithmetic."""
    best = theory.goodput_theory(1.0, facts.underlay_mtu, facts.header_bytes)
    return 1 - theory.goodput_theory(1.0, facts.underlay_mtu, facts.header_bytes, passes) / best


def _advice(facts: Facts, mtu: int) -> str:
    if facts.set_by is None:
        return (
            f"Set {mtu}: the role of {facts.overlay} has no argument for it and follows the underlay's MTU when it is "
            "converged, so converge it again"
        )
    return f"Set {facts.set_by}={mtu + facts.header_bytes if facts.set_of_underlay else mtu}"


def rows(facts: Facts) -> list[tuple[str, str, str]]:
    """(what, bytes, remark) for people, in the order in which one follows from the other."""
    passes = "" if facts.underlay_passes == facts.underlay_mtu else f"; {_bytes(facts.underlay_passes)} pass"
    found = [
        ("underlay MTU", str(facts.underlay_mtu), f"of the nodes' devices{passes}"),
        ("headers", str(facts.header_bytes), facts.encapsulation or ""),
        ("fits", str(facts.fits), f"{facts.underlay_mtu} - {facts.header_bytes}"),
        ("device MTU", str(facts.device_mtu), f"of {facts.device} in the endpoints"),
    ]
    for direction in facts.directions:
        remark = f"{direction.client} to {direction.server}, with DF"
        if direction.fragments:
            remark += "; in pieces"
        elif direction.passes is not None and direction.passes < facts.device_mtu:
            remark += "; more is refused" if direction.sender_learns else "; more vanishes"
        found.append(("passes", _bytes(direction.passes), remark))
    return found


def _bytes(size: int | None) -> str:
    return "nothing" if size is None else str(size)
