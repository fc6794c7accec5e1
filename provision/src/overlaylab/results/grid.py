"""What several tiers say beside each other: a grid of tier × overlay for each metric of each benchmark.

Pure: from the reports of runs to rows. Values of different runs stand beside each other and are never pooled.
See ``report.grid_table`` for what a person reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from overlaylab.core.model import RunRecord, Variant
from overlaylab.results.results import Report
from overlaylab.results.rows import Row, Table

Item = TypeVar("Item")


@dataclass(frozen=True)
class Tier:
    """One row's tier. report: of its run; None where none was begun."""

    profile: str
    report: Report | None

    @property
    def is_done(self) -> bool:
        """Measured to its end."""
        return self.report is not None and self.report.run.state == "done"

    @property
    def failed_checks(self) -> tuple[str, ...]:
        """Names of the profile's checks that failed, each once: the usual reason for a run that has no trial."""
        if self.report is None:
            return ()
        return tuple(dict.fromkeys(c["name"] for c in self.report.checks if c["verdict"] == "fail"))


@dataclass(frozen=True)
class Line:
    """One tier in a grid. table: what its run has of this metric; None where it has no value of it."""

    tier: Tier
    table: Table | None

    def row(self, variant: Variant) -> Row | None:
        """The variant's row; None where the tier has nothing to say of it. ratio and published are in it."""
        if self.table is None:
            return None
        return next((row for row in self.table.rows if row.variant == variant), None)


@dataclass(frozen=True)
class Grid:
    """One metric of one benchmark between one pair of endpoints (where), tier by tier, in the order asked for.

    variants: without the host. compared: whether overlays are told as ratios to the host of the same block.
    """

    benchmark: str
    where: str | None
    metric: str
    unit: str
    better: str
    tools: tuple[str, ...]
    host: Variant | None
    variants: tuple[Variant, ...]
    compared: bool
    lines: tuple[Line, ...]


def grids(tiers: Sequence[Tier]) -> tuple[Grid, ...]:
    """One grid for each metric, benchmark and pair of endpoints that any tier has a value of."""
    tables: dict[tuple[str, str, str | None], dict[str, Table]] = {}
    for tier in tiers:
        for table in tier.report.tables if tier.report else ():
            key = (table.benchmark, table.metric, table.where)
            tables.setdefault(key, {})[tier.profile] = table
    return tuple(_grid(tiers, of_tier) for of_tier in tables.values())


def _grid(tiers: Sequence[Tier], of_tier: dict[str, Table]) -> Grid:
    found = list(of_tier.values())
    variants = _distinct(row.variant for table in found for row in table.rows)
    overlays = tuple(variant for variant in variants if not variant.is_baseline)
    first = found[0]
    return Grid(
        benchmark=first.benchmark,
        where=first.where,
        metric=first.metric,
        unit=first.unit,
        better=first.better,
        tools=_distinct(tool for table in found for tool in table.tools),
        host=next((variant for variant in variants if variant.is_baseline), None),
        variants=overlays,
        compared=any(row.ratio for table in found for row in table.rows if row.variant in overlays),
        lines=tuple(Line(tier, of_tier.get(tier.profile)) for tier in tiers),
    )


def _distinct(items: Iterable[Item]) -> tuple[Item, ...]:
    return tuple(dict.fromkeys(items))


def differences(tiers: Sequence[Tier]) -> tuple[tuple[str, str], ...]:
    """(profile, what differs from the first tier that has a run), where rows are not to be compared as they are."""
    runs = [(tier.profile, tier.report.run.record) for tier in tiers if tier.report]
    return tuple(
        (profile, f"{words} than {runs[0][0]}")
        for profile, record in runs[1:]
        for words in _differs(runs[0][1], record)
    )


def _differs(first: RunRecord, other: RunRecord) -> list[str]:
    found = [
        f"another {name} ({getattr(other, name)}, not {getattr(first, name)})"
        for name in ("accelerator", "machine", "provider", "system", "image")
        if getattr(other, name) != getattr(first, name)
    ]
    if other.suite_digest != first.suite_digest:
        found.append(f"another {other.suite} (the suite has changed)")
    found += [
        f"another role of {overlay} (it has changed)"
        for overlay, digest in other.role_digests.items()
        if overlay in first.role_digests and digest != first.role_digests[overlay]
    ]
    return found
