"""The records that a run's results are told in: ratios, rows, tables."""

from __future__ import annotations

from dataclasses import dataclass

from overlaylab.core.model import Variant
from overlaylab.results.published import Published
from overlaylab.stats.inference import Interval, Verdict


@dataclass(frozen=True)
class Ratio:
    """Overlay over host of the same block, over all blocks that have both.

    same: overlay and host differ by no more than the tool's step, so the ratio says nothing.
    blocks: (overlay's value, host's) of each such block, in the metric's unit; step: the tool's largest among them.
    numbers: which blocks these are.
    """

    median: float
    low: float
    high: float
    n: int
    same: bool
    blocks: tuple[tuple[float, float], ...] = ()
    step: float = 0.0
    # Of the median; None below six blocks, and where so few could not hold at all of the run's looks.
    interval: Interval | None = None
    # None for the host itself.
    verdict: Verdict | None = None
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Tail:
    """The least and the largest of so many trials' 99th percentiles: the mean of ten p99 is the p99 of nothing."""

    low: float
    high: float
    trials: int


@dataclass(frozen=True)
class Row:
    """One variant under one benchmark; None where there is nothing to say.

    n: blocks with a value. left_out: finished blocks with a value of its own but none of the host.
    """

    variant: Variant
    n: int
    median: float | None
    low: float | None
    high: float | None
    ratio: Ratio | None
    left_out: int
    theory: float | None
    published: tuple[Published, ...]
    # (block, value) of every trial that holds, in the metric's unit.
    repetitions: tuple[tuple[int, float], ...] = ()
    # Of latencies, where the tool tells it.
    tail: Tail | None = None


@dataclass(frozen=True)
class Table:
    """One metric of one benchmark between one pair of endpoints. step: the tool's largest, in unit."""

    benchmark: str
    tools: tuple[str, ...]
    where: str | None
    metric: str
    unit: str
    better: str
    step: float | None
    rows: tuple[Row, ...]
    # Its verdicts hold together; those of any other table each for itself.
    primary: bool = False
    # (placement, direction, client's node, server's node): what `where` tells apart in words.
    ends: tuple[str, ...] = ()


def name_of(variant: Variant, short: bool) -> str:
    """``weave fastdp encrypted``; short: without the overlay's name."""
    parts = [variant.mode or variant.overlay, "encrypted" if variant.encrypted else ""]
    if variant.mode is not None and not short:
        parts.insert(0, variant.overlay)
    return " ".join(filter(None, parts))
