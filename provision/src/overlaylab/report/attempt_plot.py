"""What the prober felt during one attempt, as a drawing: a strip for each measure from each end. Pure; the template draws."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from overlaylab.report.axis import Axis, axis
from overlaylab.report.checks import value

# Of the drawing, of the names and of the largest values beside the strips, in pixels.
WIDTH, LEFT, RIGHT = 960, 170, 110
# Above the strips, of one, between two, and for the axis, in pixels.
TOP, HEIGHT, GAP, BELOW = 22, 14, 4, 40
# s before the ticket that are drawn: the baseline may be ten minutes old.
BEFORE = 120.0
# s between two cycles from which on nothing is drawn: anywhere, and from the baseline to what follows it.
SILENCE, HANDOVER = 60.0, 5.0
# Of one strip at most: several cycles are drawn as one then.
SLICES = 300
# Pixels between two names of events: of nearer ones the last is shown.
APART = 55.0
MINUTE = 60.0


@dataclass(frozen=True)
class Felt:
    """One measure of one cycle, which ended at t: s since the ticket. value: None where nothing could be measured."""

    t: float
    role: str
    phase: str
    measure: str
    unit: str
    value: float | None


@dataclass(frozen=True)
class Mark:
    """An event. short: above its line, empty for none."""

    t: float
    short: str
    words: str


@dataclass(frozen=True)
class Span:
    """A part of a strip in which as much came through. kind: whole, part, none."""

    x: float
    width: float
    kind: str
    title: str


@dataclass(frozen=True)
class Strip:
    """spans: of a share. path, healthy: of all else, the latter's y. note: the largest value."""

    label: str
    y: float
    spans: tuple[Span, ...] = ()
    path: str = ""
    healthy: float | None = None
    note: str = ""

    @property
    def bottom(self) -> float:
        """Where it ends."""
        return self.y + HEIGHT


@dataclass(frozen=True)
class AttemptPlot:
    """marks: (x, short, words). axis: minutes since the ticket."""

    title: str
    height: float
    bottom: float
    axis: Axis
    strips: tuple[Strip, ...]
    marks: tuple[tuple[float, str, str], ...]
    width: int = WIDTH


def plot(felt: Sequence[Felt], marks: Sequence[Mark]) -> AttemptPlot | None:
    """felt: in the order of the measures, then of time. None where nothing was measured."""
    drawn = [one for one in felt if one.t >= -BEFORE]
    if not drawn:
        return None
    times = [one.t for one in drawn] + [mark.t for mark in marks if mark.t >= -BEFORE]
    minutes = axis([min(0.0, *times) / MINUTE, max(1.0, *times) / MINUTE], LEFT, WIDTH - RIGHT)
    strips: list[Strip] = []
    for label in dict.fromkeys(_label(one) for one in felt):
        its = [one for one in felt if _label(one) == label]
        shown = _sliced([one for one in its if one.t >= -BEFORE])
        y = TOP + len(strips) * (HEIGHT + GAP)
        draw = _share if its[0].unit == "ratio" else _curve
        strips.append(draw(label, y, shown, minutes, _healthy(its)))
    bottom = TOP + len(strips) * (HEIGHT + GAP)
    return AttemptPlot(
        title="What was felt from client and server, over the minutes since the ticket",
        height=bottom + BELOW,
        bottom=bottom,
        axis=minutes,
        strips=tuple(strips),
        marks=tuple(
            _named(
                [
                    (minutes.place(mark.t / MINUTE), mark.short, mark.words)
                    for mark in marks
                    if mark.t >= -BEFORE
                ]
            )
        ),
    )


def _named(marks: Sequence[tuple[float, str, str]]) -> list[tuple[float, str, str]]:
    """No name lies over the next."""
    found: list[tuple[float, str, str]] = []
    free = math.inf
    for x, short, words in reversed(marks):
        name = short if x <= free else ""
        free = x - APART if name else free
        found.insert(0, (x, name, words))
    return found


def _label(felt: Felt) -> str:
    return f"{felt.measure}, {felt.role}"


def _healthy(felt: Sequence[Felt]) -> float | None:
    values = [one.value for one in felt if one.phase == "healthy" and one.value is not None]
    return statistics.median(values) if values else None


def _sliced(felt: Sequence[Felt]) -> list[Felt]:
    """Several cycles as one where there are many: shares as mean, all else as median."""
    if len(felt) <= SLICES:
        return list(felt)
    first = felt[0].t
    width = (felt[-1].t - first) / SLICES or 1.0
    found: dict[tuple[int, str], list[Felt]] = {}
    for one in felt:
        found.setdefault((int((one.t - first) / width), one.phase), []).append(one)
    sliced = []
    for group in found.values():
        values = [one.value for one in group if one.value is not None]
        middle = statistics.fmean if group[0].unit == "ratio" else statistics.median
        last = group[-1]
        sliced.append(
            Felt(last.t, last.role, last.phase, last.measure, last.unit, middle(values) if values else None)
        )
    return sliced


def _begun(before: Felt | None, one: Felt) -> float | None:
    """When the cycle before ended, where this one followed at once."""
    if before is None:
        return None
    handed = before.phase == "healthy" and one.phase != "healthy"
    return before.t if one.t - before.t <= (HANDOVER if handed else SILENCE) else None


def _share(label: str, y: float, felt: Sequence[Felt], minutes: Axis, healthy: float | None) -> Strip:
    spans: list[Span] = []
    for before, one in zip([None, *felt], felt, strict=False):
        if one.value is None:
            continue
        begun = _begun(before, one)
        kind = "whole" if one.value == 1 else "none" if one.value == 0 else "part"
        x = minutes.place((one.t - 1 if begun is None else begun) / MINUTE)
        end = minutes.place(one.t / MINUTE)
        last = spans[-1] if spans else None
        if last and last.kind == kind and abs(last.x + last.width - x) < 0.2:
            spans[-1] = Span(last.x, round(end - last.x, 1), kind, last.title)
        else:
            spans.append(Span(x, round(end - x, 1), kind, f"{label}: {KINDS[kind]}"))
    return Strip(label, y, tuple(spans))


KINDS = {"whole": "all came through", "part": "some came through", "none": "nothing came through"}


def _curve(label: str, y: float, felt: Sequence[Felt], minutes: Axis, healthy: float | None) -> Strip:
    values = [one.value for one in felt if one.value is not None]
    largest = max([*values, healthy or 0.0], default=0.0)
    if not values or largest <= 0:
        return Strip(label, y, note="not measured" if not values else value(largest, felt[0].unit))

    def place(number: float) -> float:
        return round(y + HEIGHT * (1 - number / largest), 1)

    path, drawing = [], False
    for before, one in zip([None, *felt], felt, strict=False):
        if one.value is None:
            drawing = False
            continue
        drawing = drawing and _begun(before, one) is not None
        path.append(f"{'L' if drawing else 'M'}{minutes.place(one.t / MINUTE):g} {place(one.value):g}")
        drawing = True
    return Strip(
        label,
        y,
        path="".join(path),
        healthy=None if healthy is None else place(healthy),
        note=f"≤ {value(largest, felt[0].unit)}",
    )
