"""Values of a run's trials, sorted into tables and variants: one pass, as a run may have a hundred thousand trials.

Reads the public views only.
"""

from __future__ import annotations

import json
import re
import statistics
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from overlaylab.core.model import JSON, Variant
from overlaylab.store.store import Store

# (placement, direction, client's node, server's node).
Place = tuple[str, str, str, str]


@dataclass(frozen=True)
class Cell:
    """Values of one variant in one table. values: (trial, block, value) in the order of the plan.

    steps: of the tools. mtus: (overlay's, underlay's) that were found.
    """

    values: list[tuple[int, int, float]]
    steps: frozenset[float]
    mtus: frozenset[tuple[int | None, int | None]]

    @cached_property
    def blocks(self) -> dict[int, list[float]]:
        """Block -> values of its repetitions."""
        found: dict[int, list[float]] = {}
        for _, block, value in self.values:
            found.setdefault(block, []).append(value)
        return dict(sorted(found.items()))

    @cached_property
    def medians(self) -> dict[int, float]:
        """Block -> value: the block is the unit of repetition, so repetitions within it become one."""
        return {b: own[0] if len(own) == 1 else statistics.median(own) for b, own in self.blocks.items()}

    @property
    def repetitions(self) -> tuple[tuple[int, float], ...]:
        """(block, value), block by block."""
        return tuple((block, value) for block, own in self.blocks.items() for value in own)


@dataclass(frozen=True)
class Values:
    """What one table is made from. parameters: of its first trial. tools: (name, version in its own words)."""

    benchmark: str
    metric: str
    unit: str
    better: str
    place: Place
    parameters: JSON
    tools: frozenset[tuple[str, str | None]]
    cells: dict[Variant, Cell]


# Everything that many trials have in common stands behind the values, so that it is one key.
QUERY = """
SELECT t.trial_id, t.block, s.value, s.resolution,
       s.metric, t.benchmark, t.placement, t.direction, t.client_node, t.server_node,
       t.overlay, t.mode, t.encrypted, t.overlay_mtu, t.underlay_mtu, t.tool, t.tool_version, t.parameters
FROM trial_summary AS s JOIN trial AS t USING (trial_id)
WHERE s.run_id = ? AND NOT t.warmup AND s.metric NOT IN (SELECT value FROM json_each(?))
"""
# Columns of QUERY that are a trial's own; the next six make a table.
OWN = 4
TABLE = 6

# (trial, block, value, resolution): the first columns.
Own = tuple[int, int, float, float | None]
# The columns behind them, or some of these.
Key = tuple[Any, ...]
# (first trial, key without the table, rows).
Group = tuple[int, Key, list[Own]]


def values_of(store: Store, run_id: str, without: Collection[str] = ()) -> list[Values]:
    """In the order of printing: by metric, benchmark, first trial. without: metrics that are left out."""
    metrics = {row["name"]: row for row in store.db.execute("SELECT * FROM metric")}
    cursor = store.db.cursor()
    cursor.row_factory = None  # plain tuples: nobody needs a name for each of so many
    groups: dict[Key, list[Own]] = defaultdict(list)
    for row in cursor.execute(QUERY, (run_id, json.dumps(sorted(without)))):
        groups[row[OWN:]].append(row[:OWN])
    tables: dict[Key, list[Group]] = defaultdict(list)
    for key, rows in groups.items():
        tables[key[:TABLE]].append((min(rows)[0], key[TABLE:], rows))

    def order(table: tuple[Key, list[Group]]) -> tuple[int, list[tuple[int, str]], int]:
        (metric, benchmark, *_), own = table
        return metrics[metric]["metric_id"], _by_number(benchmark), min(first for first, *_ in own)

    found = []
    for (metric, benchmark, *place), own in sorted(tables.items(), key=order):
        about = metrics[metric]
        found.append(
            Values(
                benchmark=benchmark,
                metric=metric,
                unit=about["unit"],
                better=about["better"],
                place=tuple(place),
                parameters=json.loads(min(own)[1][-1]),
                tools=frozenset((key[-3], key[-2]) for _, key, _ in own),
                cells=_cells(own),
            )
        )
    return found


def _by_number(name: str) -> list[tuple[int, str]]:
    """Orders ``udp-10`` behind ``udp-2``."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"([0-9]+)", name)]


def _cells(groups: list[Group]) -> dict[Variant, Cell]:
    """Of one group, unless versions or MTUs changed within the run."""
    of: dict[Variant, list[tuple[tuple[int | None, int | None], list[Own]]]] = defaultdict(list)
    for _, (overlay, mode, encrypted, overlay_mtu, underlay_mtu, *_), rows in groups:
        of[Variant(overlay, mode, bool(encrypted))].append(((overlay_mtu, underlay_mtu), rows))
    return {
        variant: Cell(
            values=sorted((trial, block, value) for _, rows in own for trial, block, value, _ in rows),
            steps=frozenset(step for _, rows in own for *_, step in rows if step is not None),
            mtus=frozenset(mtus for mtus, _ in own),
        )
        for variant, own in of.items()
    }
