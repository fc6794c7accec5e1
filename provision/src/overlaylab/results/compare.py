"""Two runs against each other: how far each variant's ratio to the host moved, and whether anything got worse.

Pure: from two reports to rows. Blocks of two runs are two independent samples of ratios; they are never pooled.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from overlaylab.core.model import RunRecord, Variant
from overlaylab.results.results import Report
from overlaylab.results.rows import Row, Table, name_of
from overlaylab.stats.inference import (
    ALPHA,
    CANNOT_TELL,
    HIGHER,
    LOWER,
    SAME,
    Interval,
    bounds,
    holm,
)
from overlaylab.stats.samples import Known, Series, Shift, p_above, shift

RATIO, DIFFERENCE = "ratio", "difference"


@dataclass(frozen=True)
class Side:
    """One run's part of a row. median: of the ratio to the host, or of the value. n: blocks."""

    n: int
    median: float | None


@dataclass(frozen=True)
class Change:
    """One variant's metric in two runs, the second against the first.

    kind: RATIO, of the ratios to the host; DIFFERENCE, of the values themselves, where a ratio means nothing.
    estimate, interval: of that; None without values, and without six blocks on either side.
    word: LOWER, HIGHER, SAME (within the margin) or CANNOT_TELL, for itself alone.
    judged: whether FAIL_OVER is about it. worse: it got worse by more than that, together with all others at 95 %.
    p_worse: of that alone. open: by its interval it may have.
    """

    variant: Variant
    kind: str
    first: Side
    second: Side
    estimate: float | None
    interval: Interval | None
    word: str
    judged: bool = False
    p_worse: float = 1.0
    worse: bool = False
    open: bool = False


@dataclass(frozen=True)
class Compared:
    """One metric of one benchmark between one pair of endpoints, also where only the first run has it."""

    first: Table
    # The host's medians in both runs.
    host: tuple[float | None, float | None]
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Comparison:
    """margin, fail_over: ratios; fail_over None where nobody asks. absent: what only one of the runs was asked for, in words."""

    tables: tuple[Compared, ...]
    margin: float
    fail_over: float | None
    shares: int
    absent: tuple[str, ...]

    @property
    def judged(self) -> tuple[Change, ...]:
        return tuple(change for table in self.tables for change in table.changes if change.judged)

    @property
    def exit_code(self) -> int:
        """1: something got worse by more than FAIL_OVER. 3: nothing is shown to have, but something may have."""
        if self.fail_over is None:
            return 0
        if any(change.worse for change in self.judged):
            return 1
        return 3 if any(change.open for change in self.judged) or not self.judged else 0


def hindrances(first: RunRecord, second: RunRecord) -> list[str]:
    """What forbids to hold one run against the other: a difference between them would be that, not the overlay's."""
    found = [
        f"another {name}: {getattr(first, name)}, then {getattr(second, name)}"
        for name in ("accelerator", "machine", "profile", "provider", "origin")
        if getattr(first, name) != getattr(second, name)
    ]
    if first.profile == second.profile and first.profile_digest != second.profile_digest:
        found.append(f"the profile {first.profile} says something else since")
    return found


def changed(first: RunRecord, second: RunRecord) -> list[str]:
    """What else differs: often just what is to be compared."""
    found = [
        f"another {name}: {getattr(first, name)}, then {getattr(second, name)}"
        for name in ("suite", "scale", "system", "image", "cluster")
        if getattr(first, name) != getattr(second, name)
    ]
    if first.suite == second.suite and first.suite_digest != second.suite_digest:
        found.append(f"the suite {first.suite} has changed")
    return found + [
        f"the role of {overlay} has changed"
        for overlay, digest in second.role_digests.items()
        if overlay in first.role_digests and digest != first.role_digests[overlay]
    ]


def compare(first: Report, second: Report, margin: float, fail_over: float | None) -> Comparison:
    """The second run against the first, table by table in the order of the first."""
    shares = first.rules.shares * second.rules.shares
    others = {_key(table): table for table in second.tables}
    tables = [
        _compared(table, others.get(_key(table)), (first, second), margin, fail_over, ALPHA / shares)
        for table in first.tables
        if _key(table) in others or table.benchmark in second.planned
    ]
    return Comparison(
        tables=_failing(tables, shares),
        margin=margin,
        fail_over=fail_over,
        shares=shares,
        absent=tuple(_absent(first, second)),
    )


def _key(table: Table) -> tuple[str, str, str | None]:
    return table.benchmark, table.metric, table.where


def _absent(first: Report, second: Report) -> list[str]:
    found = []
    for one, other, name in ((first, second, "first"), (second, first, "second")):
        known = {_key(table) for table in other.tables}
        told = other.planned if one is first else frozenset()  # those have a table
        missing = [
            f"{t.benchmark}: {t.metric}"
            for t in one.tables
            if _key(t) not in known and t.benchmark not in told
        ]
        if missing:
            found.append(f"only the {name} run has {', '.join(dict.fromkeys(missing))}")
        alone = [v for v in one.run.record.variants if v not in other.run.record.variants]
        if alone:
            found.append(
                f"only the {name} run has the overlay mode {', '.join(name_of(v, False) for v in alone)}"
            )
    return found


def _compared(
    first: Table,
    second: Table | None,
    runs: tuple[Report, Report],
    margin: float,
    over: float | None,
    alpha: float,
) -> Compared:
    tables = [table for table in (first, second) if table]
    rows = [{row.variant: row for row in table.rows} if table else {} for table in (first, second)]
    both = [v for v in runs[0].run.record.variants if v in runs[1].run.record.variants]
    of_host = next((v for v in both if v.is_baseline), None)
    host = [of[of_host].median if of_host in of else None for of in rows]
    is_ratio = any(row.ratio for table in tables for row in table.rows if not row.variant.is_baseline)
    changes = tuple(
        _change(variant, rows[0].get(variant), rows[1].get(variant), first, is_ratio, margin, over, alpha)
        for variant in both
        if not variant.is_baseline
    )
    return Compared(first, (host[0], host[1]), changes)


def _change(
    variant: Variant, first: Row | None, second: Row | None, table: Table, is_ratio: bool,
    margin: float, over: float | None, alpha: float,
) -> Change:  # fmt: skip
    kind = RATIO if is_ratio else DIFFERENCE
    series = [_series(row, is_ratio) for row in (first, second)]
    sides = [_side(row, is_ratio) for row in (first, second)]
    judged = over is not None and (is_ratio or table.unit == "ratio")
    none = Change(variant, kind, sides[0], sides[1], None, None, CANNOT_TELL, judged, open=judged)
    if not series[0] or not series[1]:
        return none
    moved = shift(series[0], series[1], alpha)
    scale = math.exp if is_ratio else float
    interval = moved.interval
    found = replace(
        none,
        estimate=scale(moved.estimate),
        interval=interval and Interval(scale(interval.low), scale(interval.high), interval.coverage),
        word=_word(moved, is_ratio, table.unit, margin),
    )
    if judged and over is not None and interval:
        up, down = _amounts(is_ratio, over)
        reaches = interval.low < -down if table.better == "higher" else interval.high > up
        p = _p_worse(series[0], series[1], is_ratio, table.better, over)
        found = replace(found, open=reaches, p_worse=p)
    return found


def _amounts(is_ratio: bool, over: float) -> tuple[float, float]:
    """(up, down): by how much a series has to move to have grown, shrunk by `over`; logarithms of ratios."""
    return (math.log(1 + over), -math.log(1 - over)) if is_ratio else (over, over)


def _word(moved: Shift, is_ratio: bool, unit: str, margin: float) -> str:
    """What the interval shows. A margin is one of ratios, or points of what is a ratio itself; counts have none."""
    if moved.interval is None:
        return CANNOT_TELL
    up, down = _amounts(is_ratio, margin) if is_ratio or unit == "ratio" else (0.0, 0.0)
    if -down <= moved.interval.low and moved.interval.high <= up:
        return SAME
    if moved.interval.high < 0:
        return LOWER
    return HIGHER if moved.interval.low > 0 else CANNOT_TELL


def _series(row: Row | None, is_ratio: bool) -> Series:
    """Of each block: of the logarithm of its ratio to the host, or of its value."""
    if row is None:
        return ()
    if not is_ratio:
        return [Known(value, value, value) for value in _values(row)]
    each = bounds(row.ratio.blocks, row.ratio.step) if row.ratio else None
    if not row.ratio or not each:
        return ()
    return [
        Known(_log(low), _log(own / base), _log(high))
        for (own, base), (low, high) in zip(row.ratio.blocks, each, strict=True)
    ]


def _log(value: float) -> float:
    """-inf of zero: nothing arrived, which is less than anything that did. Ranks need no more."""
    return math.log(value) if value > 0 else -math.inf


def _values(row: Row) -> list[float]:
    of: dict[int, list[float]] = {}
    for block, value in row.repetitions:
        of.setdefault(block, []).append(value)
    return [statistics.median(values) for values in of.values()]


def _side(row: Row | None, is_ratio: bool) -> Side:
    if row is None:
        return Side(0, None)
    if is_ratio:
        return Side(row.ratio.n, row.ratio.median) if row.ratio else Side(0, None)
    return Side(row.n, row.median)


def _p_worse(first: Series, second: Series, is_ratio: bool, better: str, over: float) -> float:
    """One-sided p of: the second is worse than the first by more than `over`."""
    up, down = _amounts(is_ratio, over)
    return p_above(second, first, down) if better == "higher" else p_above(first, second, up)


def _failing(tables: Sequence[Compared], shares: int) -> tuple[Compared, ...]:
    """With what got worse marked: one-sided tests under Holm over everything that is judged, in all tables."""
    family = [(i, j) for i, t in enumerate(tables) for j, c in enumerate(t.changes) if c.judged]
    corrected = holm([min(1.0, tables[i].changes[j].p_worse * shares) for i, j in family])
    worse = {place for place, p in zip(family, corrected, strict=True) if p <= ALPHA}
    return tuple(
        replace(
            table,
            changes=tuple(
                replace(c, worse=True, open=False) if (i, j) in worse else c
                for j, c in enumerate(table.changes)
            ),
        )
        for i, table in enumerate(tables)
    )
