"""Whether the lab reproduces a published ratio: a verdict by the two intervals, and by what the accelerator can give.

Pure. What is judged comes from `fidelity_lab`, and what people read of it is in `fidelity_table`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.metrics import is_latency
from overlaylab.shaping.checks import BUSY, GOODPUT_TOLERANCE
from overlaylab.shaping.node_state import idle_share
from overlaylab.stats.inference import Interval

REPRODUCED, DIFFERS, CANNOT_TELL = "reproduced", "differs", "cannot tell"
# On this accelerator, that is; its reason says why.
NOT_REPRODUCIBLE = "not reproducible"
NOT_MEASURED = "not measured"

# Ratios that overlap but may, by their intervals, be further apart than this have not been shown to agree.
APART = 1.25
# An interval that holds 1 and reaches further than this from it leaves open whether the overlay costs anything.
OPEN = 0.1
# Ticks of /proc/stat in a second: a constant towards user space (proc(5)).
USER_HZ = 100
# How far runs of one and the same pair were apart in the one publication that printed its repetitions (ukti-2016,
# the host of t2.small): where a publication gives no spread, a smaller gap is not held to be a difference.
SPREAD_ELSEWHERE = 934 / 832


@dataclass(frozen=True)
class Verdict:
    """reason: None where the intervals say it all."""

    word: str
    reason: str | None = None


@dataclass(frozen=True)
class Load:
    """A node's CPU while a trial ran. idle: CPUs' worth of time without work, from 0 to cpus."""

    idle: float
    cpus: int

    @property
    def share(self) -> float:
        return self.idle / self.cpus

    @property
    def bound(self) -> bool:
        """The CPU may be what limits: it is busy, or as busy as one of several is when a single thread fills it."""
        return self.share < BUSY or (self.cpus > 1 and self.cpus - self.idle >= 1 - BUSY)


def load_of(before: dict[str, Any], after: dict[str, Any], seconds: float) -> Load | None:
    """From a node's counters around a trial; None where they are not there or say nothing.

    seconds: how long the trial sent. What passes around it, while the tool starts and the counters are read,
    is taken to have been idle: for a trial of 6 s between counters 6.4 s apart that is 6 % of the time.
    """
    try:
        share = idle_share(before, after)
        ticks = sum(after["cpu"].values()) - sum(before["cpu"].values())
        wall = after["uptime"] - before["uptime"]
    except KeyError:
        return None
    if share is None or wall <= 0 or seconds <= 0:
        return None
    # Emulated CPUs lose ticks while the machine runs something else, so that they count less than the time.
    cpus = max(1, math.ceil(ticks / USER_HZ / wall - 0.1))
    sent = min(wall, seconds)
    return Load(max(0.0, share * wall - (wall - sent)) / sent * cpus, cpus)


@dataclass(frozen=True)
class Lab:
    """What the lab measured of a pair, on one accelerator. n: blocks with both values.

    interval: of the median over blocks; None below six. headers: the ratio if only headers cost.
    load, host_load: the busier node's CPU while overlay and host were measured, median over trials.
    not_in_force: why the tier itself did not hold here (latency exceeded, rate not carried), else None.
    """

    accelerator: str
    ratio: float
    n: int
    interval: Interval | None
    headers: float | None
    load: Load | None
    host_load: Load | None
    not_in_force: str | None


def hindrance(lab: Lab, metric: str, published: Interval | None) -> str | None:
    """Why this accelerator cannot give the published ratio, whatever it measured; None where it can."""
    if lab.not_in_force:
        return lab.not_in_force
    accelerator = ACCELERATORS[lab.accelerator]
    if accelerator.is_emulated:
        if is_latency(metric):
            return "CPU-bound: what an overlay adds to latency is CPU time, and this CPU is emulated"
        for whose, load in (("", lab.load), ("the host network itself is ", lab.host_load)):
            if load and load.bound:
                return f"{whose}CPU-bound: {_idle(load)}, on emulated CPU"
        # Neither headers nor the tier's rate explain it.
        if lab.interval and lab.headers and lab.interval.high < lab.headers * (1 - GOODPUT_TOLERANCE):
            idle = f", {_idle(lab.load)}" if lab.load else ""
            return f"CPU-bound: below what headers leave, on emulated CPU{idle}"
    if not accelerator.has_own_kernel and lab.load and lab.load.bound:
        in_publication = is_latency(metric) or (published and lab.headers and published.high < lab.headers)
        if in_publication:
            return f"CPU-bound there and here ({_idle(lab.load)}), on two different CPUs"
    return None


def _idle(load: Load) -> str:
    if load.cpus == 1:
        return f"{load.share:.0%} idle"
    full = "" if load.share < BUSY else ", so one may be full"
    return f"{load.share:.0%} of {load.cpus} CPUs idle{full}"


def judge(lab: Lab, metric: str, published: Interval | None) -> Verdict:
    """The verdict on a pair; see docs/tiers.md for how to read it.

    Intervals that do not meet differ, unless the publication gives no spread and the gap is within
    SPREAD_ELSEWHERE. Intervals that meet agree, unless one of them is too wide to mean that (OPEN, APART).
    What the accelerator hinders turns a difference into "not reproducible" and agreement into "cannot tell".
    """
    if lab.interval is None:
        return Verdict(CANNOT_TELL, f"{lab.n} {'block' if lab.n == 1 else 'blocks'}: an interval takes six")
    if published is None:
        return Verdict(CANNOT_TELL, "how exactly the publication's figures are known was not said")
    verdict = _by_intervals(lab.interval, published)
    reason = hindrance(lab, metric, published)
    if reason and verdict.word == DIFFERS:
        return Verdict(NOT_REPRODUCIBLE, reason)
    if reason and verdict.word == REPRODUCED:
        return Verdict(CANNOT_TELL, f"agrees, but that is luck here: {reason}")
    return verdict


def _by_intervals(lab: Interval, published: Interval) -> Verdict:
    gap = max(lab.low / published.high, published.low / lab.high)
    if gap > 1:
        if published.coverage is None and gap <= SPREAD_ELSEWHERE:
            return Verdict(
                CANNOT_TELL,
                f"published without its spread: {_percent(gap)} apart, where repeated runs elsewhere are"
                f" up to {_percent(SPREAD_ELSEWHERE)} apart",
            )
        return Verdict(DIFFERS)
    for whose, interval in (("published", published), ("lab's", lab)):
        if interval.holds(1.0) and (interval.low < 1 - OPEN or interval.high > 1 + OPEN):
            return Verdict(
                CANNOT_TELL, f"the {whose} interval leaves open whether the overlay costs anything"
            )
    apart = max(lab.high / published.low, published.high / lab.low)
    if apart > APART:
        return Verdict(CANNOT_TELL, f"the intervals meet, but allow for a difference of {_percent(apart)}")
    return Verdict(REPRODUCED)


def _percent(factor: float) -> str:
    return f"{factor - 1:.0%}" if factor >= 1.01 else f"{factor - 1:.1%}"
