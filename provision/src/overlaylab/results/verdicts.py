"""Intervals and verdicts on a run's tables: which metric is primary, what margin was given, how often one looked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from overlaylab.core.metrics import GOODPUT, LATENCY
from overlaylab.core.model import Variant
from overlaylab.results.rows import Row, Table
from overlaylab.run.design import Rules
from overlaylab.stats.inference import ALPHA, Verdict, fewest_blocks, median_ratio, precise, verdicts


def primary_of(tables: Sequence[Table], rules: Rules) -> tuple[str, str] | None:
    """(benchmark, metric): the suite's word, else goodput, else latency, of the first benchmark, by name, that has it."""
    if rules.primary:
        return rules.primary
    compared = [t for t in tables if any(r.ratio for r in t.rows if not r.variant.is_baseline)]
    for name in (GOODPUT, LATENCY):
        if found := next((t for t in compared if t.metric.startswith(name)), None):
            return found.benchmark, found.metric
    return None


def judged(tables: Sequence[Table], rules: Rules) -> tuple[Table, ...]:
    """The tables with intervals and verdicts. Those of the primary metric, between all endpoints, are one family."""
    primary = primary_of(tables, rules)
    first = [table for table in tables if (table.benchmark, table.metric) == primary]
    # A variant without a value counts among the comparisons: it was one of those that were begun.
    family = [(table, row) for table in first for row in _compared(table)]
    found = verdicts([_series(row) for _, row in family], rules.margin, rules.shares)
    of = {(id(table), row.variant): v for (table, row), v in zip(family, found, strict=True)}
    return tuple(_judged(table, rules, of, (table.benchmark, table.metric) == primary) for table in tables)


def _compared(table: Table) -> list[Row]:
    return [row for row in table.rows if not row.variant.is_baseline]


def _series(row: Row) -> tuple[Sequence[tuple[float, float]], float]:
    return (row.ratio.blocks, row.ratio.step) if row.ratio else ((), 0.0)


def _judged(table: Table, rules: Rules, of: dict[tuple[int, Variant], Verdict], primary: bool) -> Table:
    rows = []
    for row in table.rows:
        if row.ratio and not row.variant.is_baseline:
            verdict: Verdict = (
                of.get((id(table), row.variant)) or (verdicts([_series(row)], rules.margin, rules.shares)[0])
            )
            interval = median_ratio(row.ratio.blocks, row.ratio.step, ALPHA / rules.shares)
            row = replace(row, ratio=replace(row.ratio, interval=interval, verdict=verdict))
        rows.append(row)
    return replace(table, rows=tuple(rows), primary=primary)


def comparisons(tables: Sequence[Table]) -> int:
    """How many ratios of the primary metric are judged together."""
    return sum(len(_compared(table)) for table in tables if table.primary)


def fewest(tables: Sequence[Table], rules: Rules) -> int:
    """Blocks below which no verdict on the primary metric can stand."""
    return fewest_blocks(comparisons(tables), rules.shares)


def enough(tables: Sequence[Table], rules: Rules, block: int) -> bool:
    """Whether the run stops after that block: it is one of its looks, and the primary metric is known precisely.

    Judged by the tables alone, so that a run that was killed between look and end decides again, and alike.
    """
    if rules.precision is None or block not in rules.looks:
        return False
    family = [_series(row)[0] for table in tables if table.primary for row in _compared(table)]
    return bool(family) and precise(family, rules.precision, rules.shares)
