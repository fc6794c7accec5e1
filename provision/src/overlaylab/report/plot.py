"""A table as a drawing: where each repetition stands, and what it is held against. Pure; the template draws.

One strip for each variant. On the left its values, on the right, where the table has them, the ratios to the host with
their interval, what headers alone would leave, and what was published. Within a strip the first block is at the top
and the last at the bottom, so that a drift of the machine shows as a slope.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from overlaylab.core.progress import visible
from overlaylab.report.axis import Axis, axis
from overlaylab.report.table import numbers, unit_of
from overlaylab.report.verdicts_table import MISSING, confidence, digits, verdict_cell
from overlaylab.results.rows import Ratio, Row, Table, name_of

# Of the drawing, of the verdict, between the two panels, and of the right margin, in pixels.
WIDTH, WORD, SPACE, RIGHT = 960, 96, 48, 30
# The left panel's part of the two.
SHARE = 0.56
# Height of the panels' titles, between two strips, and of the numbers.
TOP, GAP, AXIS = 26, 6, 26
# Characters of a name that fit beside a strip, and pixels of one.
LABEL, LETTER = 30, 7.4
# As axis.DECADE, of ratios, of which 2 is as far from 1 as 0.5 is.
RATIOS = 3.0
# Dots in one drawing from which on they are no shapes of their own that say their value.
MANY = 1000


@dataclass(frozen=True)
class Dot:
    """One trial, or one block's ratio. title: its block and value in words."""

    x: float
    y: float
    title: str


@dataclass(frozen=True)
class Marks:
    """What stands in one panel of one strip. path: the dots as one SVG path, where they are many.

    span: from and to, and whether that is an interval (else min–max). theory, published: x.
    """

    dots: tuple[Dot, ...] = ()
    path: str = ""
    median: float | None = None
    span: tuple[float, float, bool] | None = None
    theory: float | None = None
    published: tuple[float, ...] = ()


@dataclass(frozen=True)
class Strip:
    """One variant. ratio: None where it has none. word: the verdict."""

    label: str
    y: float
    bottom: float
    values: Marks
    ratio: Marks | None
    word: str

    @property
    def middle(self) -> float:
        """Where a line of text has its centre."""
        return (self.y + self.bottom) / 2


@dataclass(frozen=True)
class Panel:
    """One axis with its title. one: x of the ratio 1."""

    title: str
    axis: Axis
    one: float | None = None


@dataclass(frozen=True)
class Plot:
    """A drawing. title: what it shows, in which unit, how many repetitions; bottom: y of the axes.

    legend: (kind of mark, words), of marks that are in it.
    """

    title: str
    width: int
    height: float
    bottom: float
    panels: tuple[Panel, ...]
    strips: tuple[Strip, ...]
    legend: tuple[tuple[str, str], ...]


def plot(table: Table, final: bool = True) -> Plot | None:
    """None where the table has fewer than two values: nothing is to be compared. final: see `table.grid_of`."""
    values = [value for row in table.rows for _, value in row.repetitions]
    if len(values) < 2:
        return None
    unit, factor = unit_of(table)
    left = 16 + LETTER * max(len(shortened(name_of(row.variant, False))) for row in table.rows)
    held = {row.variant: row.ratio for row in table.rows if row.ratio and not row.variant.is_baseline}
    whole = WIDTH - left - (WORD + SPACE if held else RIGHT)
    edge = left + (whole * SHARE if held else whole)
    own = axis([value / factor for value in values], left, edge, whole=table.unit == "1")
    title = (
        f"{table.metric}, {unit}"
        if unit
        else f"{table.metric}, a count"
        if table.unit == "1"
        else table.metric
    )
    panels = [Panel(shortened(title) + (", log axis" if own.log else ""), own)]
    ratios = None
    if held:
        ratios = axis([1.0, *_shown(table, final)], edge + SPACE, WIDTH - WORD, decade=RATIOS)
        panels.append(
            Panel("ratio to host" + (", log axis" if ratios.log else ""), ratios, ratios.place(1.0))
        )
    blocks = max(len({block for block, _ in row.repetitions}) for row in table.rows)
    height = max(18, min(40, 12 + 4 * blocks))
    many = len(values) > MANY
    strips = tuple(
        _strip(row, table, final, TOP + i * (height + GAP), height, many, own, ratios)
        for i, row in enumerate(table.rows)
    )
    where = "" if table.where is None else f" ({shortened(table.where)})"
    bottom = TOP + len(strips) * (height + GAP)
    return Plot(
        title=f"{shortened(table.benchmark)}{where}: {shortened(title)}: {_counted(table.rows)}",
        width=WIDTH,
        height=bottom + AXIS,
        bottom=bottom,
        panels=tuple(panels),
        strips=strips,
        legend=tuple(_legend(strips)),
    )


def _shown(table: Table, final: bool) -> list[float]:
    """Every ratio that the right panel shows."""
    found: list[float] = []
    for row in table.rows:
        if row.ratio is None or row.variant.is_baseline:
            continue
        found += [row.ratio.median, row.ratio.low, row.ratio.high]
        if final and row.ratio.interval:
            found += [row.ratio.interval.low, row.ratio.interval.high]
        found += [row.theory] if row.theory else []
        found += [one.ratio for one in row.published if one.comparable]
    return found


def _counted(rows: Sequence[Row]) -> str:
    """``3 overlay modes and the host, 7 blocks each``"""
    most, least = max(row.n for row in rows), min(row.n for row in rows)
    modes = sum(not row.variant.is_baseline for row in rows)
    parts = [f"{modes} overlay {'mode' if modes == 1 else 'modes'}"] if modes else []
    parts += ["the host"] if modes < len(rows) else []
    blocks = f"{most} {'block' if most == 1 else 'blocks'}" if least == most else f"{least} to {most} blocks"
    return f"{' and '.join(parts)}, {blocks}{' each' if len(rows) > 1 else ''}"


def _strip(
    row: Row, table: Table, final: bool, top: float, height: float, many: bool, own: Axis, ratios: Axis | None
) -> Strip:
    blocks = sorted({block for block, _ in row.repetitions})
    down = {block: round(top + (i + 0.5) / len(blocks) * height, 1) for i, block in enumerate(blocks)}
    factor = unit_of(table)[1]
    unit, number = numbers(table)

    def words(value: float) -> str:
        return f"{number(value)} {unit}".rstrip()

    values = _marks(row.repetitions, down, lambda value: own.place(value / factor), words, many)
    middle = None if row.median is None or len(blocks) < 2 else own.place(row.median / factor)
    compared = ratios is not None and row.ratio is not None and not row.variant.is_baseline
    word = verdict_cell(row, table) if compared and final else ""
    return Strip(
        label=shortened(name_of(row.variant, False)),
        y=top,
        bottom=top + height,
        values=Marks(values.dots, values.path, middle),
        ratio=_ratio(row, row.ratio, down, final, many, ratios)
        if compared and ratios and row.ratio
        else None,
        word="" if word == MISSING else word,
    )


def _ratio(row: Row, ratio: Ratio, down: Mapping[int, float], final: bool, many: bool, at: Axis) -> Marks:
    each = [(block, own / host) for block, (own, host) in zip(ratio.numbers, ratio.blocks, strict=True)]
    dots = _marks(each, down, at.place, digits, many)
    interval = ratio.interval if final else None
    low, high = (interval.low, interval.high) if interval else (ratio.low, ratio.high)
    return Marks(
        dots.dots,
        dots.path,
        median=at.place(ratio.median) if ratio.n > 1 else None,
        span=(at.place(low), at.place(high), interval is not None) if ratio.n > 1 else None,
        theory=at.place(row.theory) if row.theory else None,
        published=tuple(at.place(one.ratio) for one in row.published if one.comparable),
    )


def _marks(
    each: Sequence[tuple[int, float]],
    down: Mapping[int, float],
    place: Callable[[float], float],
    words: Callable[[float], str],
    many: bool,
) -> Marks:
    at = [(place(value), down[block]) for block, value in each]
    if many:
        return Marks(path="".join(f"M{x:g} {y:g}h0" for x, y in at))
    return Marks(
        tuple(
            Dot(x, y, f"block {block}: {words(value)}")
            for (x, y), (block, value) in zip(at, each, strict=True)
        )
    )


def _legend(strips: Sequence[Strip]) -> list[tuple[str, str]]:
    every = [strip.values for strip in strips] + [strip.ratio for strip in strips if strip.ratio]
    ratios = [strip.ratio for strip in strips if strip.ratio]
    kinds = {marks.span[2] for marks in ratios if marks.span}
    found = [
        ("dot", "one trial; on the right, one block" if ratios else "one trial", True),
        ("median", "median over blocks", any(marks.median is not None for marks in every)),
        ("interval", f"where the median lies with {confidence()} or more", True in kinds),
        ("range", "min–max of the blocks: nothing is claimed", False in kinds),
        ("theory", "headers: if they were the only cost", any(marks.theory is not None for marks in ratios)),
        ("published", "published", any(marks.published for marks in ratios)),
        ("one", "as the host", bool(ratios)),
    ]
    return [(kind, text) for kind, text, there in found if there]


def shortened(name: str) -> str:
    """A name that fits beside its strip, or above a panel."""
    name = visible(name)
    return name if len(name) <= LABEL else f"{name[: LABEL - 1]}…"
