"""What a run says: medians over blocks, ratios to the host of the same block, theory and published beside them.

Reads the public views only. Nothing here formats: see ``results_table`` for what a person reads.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

from overlaylab import cost, database
from overlaylab.benchmarks import base as benchmarks
from overlaylab.design import Rules, rules_of
from overlaylab.errors import UserError
from overlaylab.model import JSON, Variant
from overlaylab.plan import REMOTE
from overlaylab.results_published import mtu_told, published_ratio
from overlaylab.results_rows import Ratio, Row, Table
from overlaylab.results_verdicts import judged
from overlaylab.store import Store, StoredRun
from overlaylab.theory import ratio_theory

STEP_TOLERANCE = 1.05
"""A tool's step is not exact: qperf divides whole messages by a time a little off the nominal one."""
COMPARED_UNITS = ("bit/s", "s", "1/s")
"""Units whose ratio to the host means something; a count or a loss may be zero on the host."""

UNPRINTED = tuple(sorted(name for name in cost.METRICS if not name.startswith("cpu_")))
"""Costs that are stored and exported, and would make a table of their own under each benchmark."""

HeaderBytes = Callable[[Variant], int | None]


@dataclass(frozen=True)
class Report:
    """A run in one piece. failed, void: (reason, trials). evidence: {(variant, kind): (held, taken)}."""

    run: StoredRun
    blocks_done: int
    tables: tuple[Table, ...]
    failed: tuple[tuple[str, int], ...]
    void: tuple[tuple[str, int], ...]
    evidence: Mapping[tuple[Variant, str], tuple[int, int]]
    checks: tuple[JSON, ...]
    """The newest of each kind, as columns of the view profile_check."""
    rules: Rules
    """What was settled before the run: verdicts are by these."""


def header_bytes(variant: Variant) -> int | None:
    """What the overlay's role says its encapsulation adds; None where it does not say."""
    from overlaylab import overlays  # not needed by those who only store

    try:
        mode = overlays.load(variant.overlay).modes.get(variant.key)
    except UserError:
        return None  # measured by a checkout that had this role
    return None if mode is None else mode.header_bytes


def report(store: Store, run_id: str, headers: HeaderBytes = header_bytes) -> Report:
    """Everything that results:show prints about a run. Raises UserError for an unknown run."""
    run = store.run(run_id)
    rules = rules_of(run.record.arguments)
    with database.explained(store.path):
        return Report(
            run=run,
            blocks_done=len(finished := _finished_blocks(store, run_id)),
            tables=judged(_tables(store, run, headers, finished), rules),
            failed=_reasons(store, run_id, "failed"),
            void=_reasons(store, run_id, "void"),
            evidence=_evidence(store, run_id),
            checks=_checks(store, run_id),
            rules=rules,
        )


@dataclass
class _Cell:
    """Values of one variant in one table: block -> values of its repetitions."""

    blocks: dict[int, list[float]]
    steps: list[float]
    mtus: set[tuple[int | None, int | None]]

    def medians(self) -> dict[int, float]:
        """The block is the unit of repetition, so repetitions within it become one value."""
        return {block: statistics.median(values) for block, values in sorted(self.blocks.items())}


def _tables(store: Store, run: StoredRun, headers: HeaderBytes, finished: Set[int]) -> tuple[Table, ...]:
    rows = store.db.execute(
        "SELECT t.block, t.overlay, t.mode, t.encrypted, t.benchmark, t.tool, t.tool_version, t.parameters,"
        " t.placement, t.direction, t.client_node, t.server_node, t.overlay_mtu, t.underlay_mtu,"
        " m.metric_id, s.metric, s.unit, s.better, s.value, s.resolution"
        " FROM trial_summary AS s JOIN trial AS t USING (trial_id) JOIN metric AS m ON m.name = s.metric"
        f" WHERE s.run_id = ? AND NOT t.warmup AND s.metric NOT IN ({', '.join('?' * len(UNPRINTED))})"
        " ORDER BY m.metric_id, t.benchmark, t.trial_id",
        (run.run_id, *UNPRINTED),
    ).fetchall()
    grouped: dict[tuple, list] = defaultdict(list)
    for row in rows:
        place = (row["placement"], row["direction"], row["client_node"], row["server_node"])
        grouped[row["metric_id"], row["benchmark"], place].append(row)
    wheres = _wheres(store, run)
    return tuple(
        _table(store, run, own, headers, finished, wheres[place]) for (_, _, place), own in grouped.items()
    )


def _wheres(store: Store, run: StoredRun) -> dict[tuple, str | None]:
    """Words for each (placement, direction, client, server) of the plan: of what differs within it, no more.

    A pair of nodes is told by their zones where these tell all pairs apart; within a node, the placement is enough.
    None where nothing differs.
    """
    rows = store.db.execute(
        "SELECT DISTINCT placement, direction, client_node, server_node FROM trial WHERE run_id = ?",
        (run.run_id,),
    )
    places = [tuple(row) for row in rows]
    nodes = {place[2:] for place in places if place[0] == REMOTE}
    zones = {pair: tuple(run.record.zones.get(node) for node in pair) for pair in nodes}
    by_zone = len(set(zones.values())) == len(nodes) and all(a and b and a != b for a, b in zones.values())
    found = {}
    for placement, direction, *pair in places:
        ends = zones.get(tuple(pair), pair) if by_zone else pair
        parts = [placement] if len({p[0] for p in places}) > 1 else []
        parts += [direction] if len({p[1] for p in places}) > 1 else []
        parts += [f"{ends[0]} to {ends[1]}"] if len(nodes) > 1 and placement == REMOTE else []
        found[placement, direction, *pair] = ", ".join(parts) or None
    return found


def _table(
    store: Store, run: StoredRun, rows: list, headers: HeaderBytes, finished: Set[int], where: str | None
) -> Table:
    first = rows[0]
    cells: dict[Variant, _Cell] = defaultdict(lambda: _Cell(defaultdict(list), [], set()))
    for row in rows:
        cell = cells[Variant(row["overlay"], row["mode"], bool(row["encrypted"]))]
        cell.blocks[row["block"]].append(row["value"])
        cell.mtus.add((row["overlay_mtu"], row["underlay_mtu"]))
        if row["resolution"] is not None:
            cell.steps.append(row["resolution"])
    protocol = protocol_of(first["benchmark"], json.loads(first["parameters"]))
    host = next((cells[v] for v in run.record.variants if v.is_baseline and v in cells), None)
    has_host = any(variant.is_baseline for variant in run.record.variants)
    compared = first["unit"] in COMPARED_UNITS
    # Within a node no header is on a wire, and nobody published it by numbers.
    remote = first["placement"] == REMOTE
    by_headers = remote and first["metric"] == "goodput" and protocol == "tcp"
    table = []
    for variant in sorted(run.record.variants, key=lambda v: not v.is_baseline):
        cell = cells.get(variant)
        medians = cell.medians() if cell else {}
        values = list(medians.values())
        overlay_mtu, underlay_mtu = next(iter(cell.mtus)) if cell and len(cell.mtus) == 1 else (None, None)
        table.append(
            Row(
                variant=variant,
                n=len(values),
                median=statistics.median(values) if values else None,
                low=min(values, default=None),
                high=max(values, default=None),
                ratio=_ratio(cell, host) if compared and cell else None,
                left_out=_left_out(cell, host, finished) if compared and cell and has_host else 0,
                theory=_theory(variant, underlay_mtu, overlay_mtu, headers) if by_headers else None,
                published=published_ratio(
                    store,
                    run.record.stands_for,
                    variant,
                    first["metric"],
                    protocol,
                    {overlay_mtu, mtu_told(run.record.arguments.get("arguments"), variant.overlay)},
                )
                if compared and remote
                else (),
                repetitions=tuple((b, v) for b, values in sorted(cell.blocks.items()) for v in values)
                if cell
                else (),
            )
        )
    tools = sorted({_tool(row["tool"], row["tool_version"], row["metric"]) for row in rows})
    step = max((s for c in cells.values() for s in c.steps), default=None)
    names = ("benchmark", "metric", "unit", "better")
    return Table(
        **{n: first[n] for n in names}, tools=tuple(tools), where=where, step=step, rows=tuple(table)
    )


def _tool(name: str, version: str | None, metric: str) -> str:
    """The tool's own words on its version where they name it already: ``iperf 3.12 (cJSON 1.7.15)``.

    A latency says whether it is of a closed loop, in which a stall is one slow answer.
    """
    known = version is not None and version.lower().startswith(name.rstrip("0123456789"))
    words = " ".join(([] if known else [name]) + ([version] if version else []))
    waits = name in benchmarks.tools() and benchmarks.load(name).closed_loop
    return f"{words}, closed loop" if waits and metric.startswith("latency") else words


def protocol_of(benchmark: str, parameters: JSON) -> str:
    """``udp`` or ``tcp``, as the benchmark's parameters say, else as its name does."""
    said = parameters.get("protocol")
    if said:
        return str(said)
    names = f"{benchmark} {parameters.get('test', '')}"
    return "udp" if parameters.get("udp") or "udp" in names else "tcp"


def _left_out(cell: _Cell, host: _Cell | None, finished: Set[int]) -> int:
    """Blocks that will never have a host value to divide by; one that still runs may yet get it."""
    return len(set(cell.blocks) & finished - (set(host.blocks) if host else set()))


def _ratio(cell: _Cell, host: _Cell | None) -> Ratio | None:
    """None where no block has both, or the host's value is zero."""
    if host is None:
        return None
    own, base = cell.medians(), host.medians()
    blocks = [b for b in own if base.get(b)]
    if not blocks:
        return None
    ratios = [own[b] / base[b] for b in blocks]
    step = max([*cell.steps, *host.steps], default=0.0)
    difference = abs(statistics.median(own[b] for b in blocks) - statistics.median(base[b] for b in blocks))
    return Ratio(
        median=statistics.median(ratios),
        low=min(ratios),
        high=max(ratios),
        n=len(blocks),
        same=cell is not host and step > 0 and difference <= step * STEP_TOLERANCE,
        blocks=tuple((own[b], base[b]) for b in blocks),
        step=step,
    )


def _theory(
    variant: Variant, underlay_mtu: int | None, overlay_mtu: int | None, headers: HeaderBytes
) -> float | None:
    """Ratio if only headers cost; None where an MTU is unknown or packets would be fragmented."""
    if variant.is_baseline:
        return 1.0
    added = headers(variant)
    if added is None or underlay_mtu is None or overlay_mtu is None:
        return None
    try:
        return ratio_theory(underlay_mtu, added, overlay_mtu)
    except ValueError:
        return None


def _finished_blocks(store: Store, run_id: str) -> set[int]:
    rows = store.db.execute(
        "SELECT block FROM trial WHERE run_id = ?"
        " GROUP BY block HAVING min(status IN ('ok', 'failed', 'void'))",
        (run_id,),
    )
    return {row["block"] for row in rows}


def _reasons(store: Store, run_id: str, status: str) -> tuple[tuple[str, int], ...]:
    rows = store.db.execute("SELECT reason FROM trial WHERE run_id = ? AND status = ?", (run_id, status))
    return tuple(Counter(row["reason"] for row in rows).most_common())


def _evidence(store: Store, run_id: str) -> dict[tuple[Variant, str], tuple[int, int]]:
    rows = store.db.execute(
        "SELECT overlay, mode, encrypted, kind, sum(ok) AS held, count(*) AS taken FROM evidence"
        " WHERE run_id = ? GROUP BY overlay, mode, encrypted, kind ORDER BY overlay, mode, encrypted, kind",
        (run_id,),
    )
    return {
        (Variant(r["overlay"], r["mode"], bool(r["encrypted"])), r["kind"]): (r["held"], r["taken"])
        for r in rows
    }


def _checks(store: Store, run_id: str) -> tuple[JSON, ...]:
    rows = store.db.execute(
        "SELECT * FROM profile_check WHERE run_id = ? AND check_id IN"
        " (SELECT max(check_id) FROM profile_check GROUP BY run_id, name, client_node, server_node)"
        " ORDER BY check_id",
        (run_id,),
    )
    return tuple(dict(row) for row in rows)
