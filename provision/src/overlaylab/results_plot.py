"""A table's repetitions as dots: where each stands in the drawing. Pure; the template draws.

One strip for each variant, its value from left to right. Within a strip the first block is at the top and the last
at the bottom, so that a drift of the machine shows as a slope.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from overlaylab.results_rows import Row, Table, name_of
from overlaylab.results_table import numbers, unit_of

WIDTH, LEFT, RIGHT = 860, 210, 30
"""Of the drawing and of its margins, in pixels."""
STRIP, GAP, AXIS = 40, 10, 44
"""Height of a strip, between two, and of the axis with its unit."""
LABEL = 30
"""Characters of a name that fit beside a strip."""
TICKS = 6
MANY = 1000
"""Dots in one drawing from which on they are no shapes of their own that say their value."""


@dataclass(frozen=True)
class Dot:
    """One trial. title: its block and value in words."""

    x: float
    y: float
    title: str


@dataclass(frozen=True)
class Strip:
    """One variant's dots. path: all of them as one SVG path, where they are many; median: x, or None."""

    label: str
    y: float
    bottom: float
    median: float | None
    dots: tuple[Dot, ...]
    path: str


@dataclass(frozen=True)
class Plot:
    """A drawing. ticks: (x, text); axis: y of its line; what: the metric with its unit."""

    what: str
    width: int
    height: float
    left: int
    right: int
    axis: float
    ticks: tuple[tuple[float, str], ...]
    strips: tuple[Strip, ...]


def plot(table: Table) -> Plot | None:
    """None where no trial of the table has a value."""
    rows = [row for row in table.rows if row.repetitions]
    if not rows:
        return None
    unit, factor = unit_of(table)
    values = [value / factor for row in rows for _, value in row.repetitions]
    first, step, count = ticks(min(values), max(values))
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    per_unit = (WIDTH - LEFT - RIGHT) / (step * (count - 1))

    def place(value: float) -> float:
        return round(LEFT + (value / factor - first) * per_unit, 1)

    many = len(values) > MANY
    axis = GAP + len(rows) * (STRIP + GAP)
    return Plot(
        what=f"{table.metric}, {unit}" if unit else table.metric,
        width=WIDTH,
        height=axis + AXIS,
        left=LEFT,
        right=WIDTH - RIGHT,
        axis=axis,
        ticks=tuple(
            (place((first + i * step) * factor), f"{first + i * step:.{decimals}f}") for i in range(count)
        ),
        strips=tuple(
            _strip(row, GAP + i * (STRIP + GAP), place, numbers(table), many) for i, row in enumerate(rows)
        ),
    )


def _strip(
    row: Row,
    top: float,
    place: Callable[[float], float],
    number: tuple[str, Callable[[float], str]],
    many: bool,
) -> Strip:
    blocks = sorted({block for block, _ in row.repetitions})
    down = {block: (i + 0.5) / len(blocks) * STRIP for i, block in enumerate(blocks)}
    at = [(place(value), round(top + down[block], 1)) for block, value in row.repetitions]
    unit, text = number
    return Strip(
        label=shortened(name_of(row.variant, False)),
        y=top,
        bottom=top + STRIP,
        median=None if row.median is None else place(row.median),
        dots=()
        if many
        else tuple(
            Dot(x, y, f"block {block}: {text(value)} {unit}".rstrip())
            for (x, y), (block, value) in zip(at, row.repetitions, strict=True)
        ),
        path="".join(f"M{x:g} {y:g}h0" for x, y in at) if many else "",
    )


def shortened(name: str) -> str:
    """A name that fits beside its strip."""
    return name if len(name) <= LABEL else f"{name[: LABEL - 1]}…"


def ticks(low: float, high: float) -> tuple[float, float, int]:
    """(first, step, how many) of round numbers, 1, 2 or 5 times a power of ten apart, that hold low to high.

    Steps as P. Heckbert has them, Graphics Gems (1990), 61–63.
    """
    span = high - low
    if span <= abs(high) * 1e-9:  # one value, or as good as one: leave room beside it
        low, high = (low - abs(low) * 0.01, high + abs(high) * 0.01) if high else (-1.0, 1.0)
        span = high - low
    power = 10.0 ** math.floor(math.log10(span / (TICKS - 1)))
    step = next(f * power for f in (1, 2, 5, 10) if f * power >= span / (TICKS - 1))
    first = math.floor(low / step) * step
    return first, step, math.ceil((high - first) / step - 1e-9) + 1
