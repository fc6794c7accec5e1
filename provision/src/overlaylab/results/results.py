"""What a run says: medians over blocks, ratios to the host of the same block, theory and published beside them.

Reads the public views only. Nothing here formats: see ``report.table`` for what a person reads.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

from overlaylab.core.errors import UserError
from overlaylab.core.metrics import COMPARED_UNITS, COSTS, is_latency
from overlaylab.core.model import JSON, Variant
from overlaylab.results.published import mtu_typed, published_ratio
from overlaylab.results.rows import Ratio, Row, Table, Tail
from overlaylab.results.tails import tails_of
from overlaylab.results.values import Cell, Place, Values, values_of
from overlaylab.results.verdicts import judged
from overlaylab.run.design import Rules, rules_of
from overlaylab.run.plan import REMOTE
from overlaylab.shaping.theory import ratio_theory
from overlaylab.store.database_errors import explained
from overlaylab.store.store import Store, StoredRun
from overlaylab.tools import base as tools

# A tool's step is not exact: qperf divides whole messages by a time a little off the nominal one.
STEP_TOLERANCE = 1.05

# Costs that are stored and exported, and would make a table of their own under each benchmark.
UNPRINTED = tuple(sorted(name for name in COSTS if not name.startswith("cpu_")))

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
    # The newest of each kind, as columns of the view profile_check.
    checks: tuple[JSON, ...]
    # What was settled before the run: verdicts are by these.
    rules: Rules
    # Benchmarks that the run was asked for, whether or not one gave a value.
    planned: frozenset[str]


def header_bytes(variant: Variant) -> int | None:
    """What the overlay's role says its encapsulation adds; None where it does not say."""
    from overlaylab.specs import overlays  # not needed by those who only store

    try:
        mode = overlays.load(variant.overlay).modes.get(variant.key)
    except UserError:
        return None  # measured by a checkout that had this role
    return None if mode is None else mode.header_bytes


def report(store: Store, run_id: str, headers: HeaderBytes = header_bytes) -> Report:
    """Everything that results:show prints about a run. Raises UserError for an unknown run."""
    run = store.run(run_id)
    rules = rules_of(run.record.arguments)
    with explained(store.path):
        unfinished, blocks_done = _unfinished_blocks(store, run_id)
        return Report(
            run=run,
            blocks_done=blocks_done,
            tables=judged(_tables(store, run, headers, unfinished), rules),
            failed=_reasons(store, run_id, "failed"),
            void=_reasons(store, run_id, "void"),
            evidence=_evidence(store, run_id),
            checks=_checks(store, run_id),
            rules=rules,
            planned=_planned(store, run_id),
        )


def _tables(store: Store, run: StoredRun, headers: HeaderBytes, unfinished: Set[int]) -> tuple[Table, ...]:
    wheres, tails = _wheres(store, run), tails_of(store, run.run_id)
    return tuple(
        _table(store, run, values, headers, unfinished, wheres[values.place], tails)
        for values in values_of(store, run.run_id, UNPRINTED)
    )


def _wheres(store: Store, run: StoredRun) -> dict[Place, str | None]:
    """Words for each (placement, direction, client, server) of the plan: of what differs within it, no more.

    A pair of nodes is told by their zones where these tell all pairs apart; within a node, the placement is enough.
    None where nothing differs.
    """
    rows = store.db.execute(
        "SELECT DISTINCT placement, direction, client_node, server_node FROM trial WHERE run_id = ?",
        (run.run_id,),
    )
    places: list[Place] = [tuple(row) for row in rows]
    nodes = {place[2:] for place in places if place[0] == REMOTE}
    zones = {(a, b): (run.record.zones.get(a), run.record.zones.get(b)) for a, b in nodes}
    by_zone = len(set(zones.values())) == len(nodes) and all(a and b and a != b for a, b in zones.values())
    found = {}
    for placement, direction, client, server in places:
        ends = zones.get((client, server), (client, server)) if by_zone else (client, server)
        parts = [placement] if len({p[0] for p in places}) > 1 else []
        parts += [direction] if len({p[1] for p in places}) > 1 else []
        parts += [f"{ends[0]} to {ends[1]}"] if len(nodes) > 1 and placement == REMOTE else []
        found[placement, direction, client, server] = ", ".join(parts) or None
    return found


def _table(
    store: Store,
    run: StoredRun,
    values: Values,
    headers: HeaderBytes,
    unfinished: Set[int],
    where: str | None,
    tails: Mapping[tuple[str, str, Place, Variant], Tail],
) -> Table:
    cells = values.cells
    protocol = tools.protocol(values.benchmark, values.parameters)
    host = next((cells[v] for v in run.record.variants if v.is_baseline and v in cells), None)
    has_host = any(variant.is_baseline for variant in run.record.variants)
    compared = values.unit in COMPARED_UNITS
    # Within a node no header is on a wire, and nobody published it by numbers.
    remote = values.place[0] == REMOTE
    by_headers = remote and values.metric == "goodput" and protocol == "tcp"
    table = []
    for variant in sorted(run.record.variants, key=lambda v: not v.is_baseline):
        cell = cells.get(variant)
        medians = list(cell.medians.values()) if cell else []
        overlay_mtu, underlay_mtu = next(iter(cell.mtus)) if cell and len(cell.mtus) == 1 else (None, None)
        table.append(
            Row(
                variant=variant,
                n=len(medians),
                median=statistics.median(medians) if medians else None,
                low=min(medians, default=None),
                high=max(medians, default=None),
                ratio=_ratio(cell, host) if compared and cell else None,
                left_out=_left_out(cell, host, unfinished) if compared and cell and has_host else 0,
                theory=_theory(variant, underlay_mtu, overlay_mtu, headers) if by_headers else None,
                published=published_ratio(
                    store,
                    run.record.stands_for,
                    variant,
                    values.metric,
                    protocol,
                    {overlay_mtu, mtu_typed(run.record.arguments.get("arguments"), variant.overlay)},
                )
                if compared and remote
                else (),
                repetitions=cell.repetitions if cell else (),
                tail=tails.get((values.benchmark, values.metric, values.place, variant)),
            )
        )
    return Table(
        benchmark=values.benchmark,
        metric=values.metric,
        unit=values.unit,
        better=values.better,
        tools=tuple(sorted(_tool(*tool, values.metric) for tool in values.tools)),
        where=where,
        step=max((s for c in cells.values() for s in c.steps), default=None),
        rows=tuple(table),
        ends=values.place,
    )


def _tool(name: str, version: str | None, metric: str) -> str:
    """The tool's own words on its version where they name it already: ``iperf 3.12 (cJSON 1.7.15)``.

    A latency says whether it is of a closed loop, in which a stall is one slow answer, and whether it is a mean.
    """
    known = version is not None and version.lower().startswith(name.rstrip("0123456789"))
    words = " ".join(([] if known else [name]) + ([version] if version else []))
    if name not in tools.names() or not is_latency(metric):
        return words
    tool = tools.load(name)
    loop = ", closed loop" if tool.closed_loop else ""
    return f"{words}{loop}, {tool.latency_is} of each trial"


def _left_out(cell: Cell, host: Cell | None, unfinished: Set[int]) -> int:
    """Blocks that will never have a host value to divide by, which zero is not; one that still runs may yet get it."""
    divided = {block for block, value in host.medians.items() if value} if host else set()
    return len(cell.medians.keys() - unfinished - divided)


def _ratio(cell: Cell, host: Cell | None) -> Ratio | None:
    """None where no block has both, or the host's value is zero."""
    if host is None:
        return None
    own, base = cell.medians, host.medians
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
        numbers=tuple(blocks),
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


def _unfinished_blocks(store: Store, run_id: str) -> tuple[set[int], int]:
    """(those with a trial still to come, how many are finished)"""
    rows = store.db.execute(
        "SELECT DISTINCT block FROM trial WHERE run_id = ? AND status NOT IN ('ok', 'failed', 'void')",
        (run_id,),
    )
    unfinished = {row["block"] for row in rows}
    (planned,) = store.db.execute(
        "SELECT count(DISTINCT block) FROM trial WHERE run_id = ?", (run_id,)
    ).fetchone()
    return unfinished, planned - len(unfinished)


def _planned(store: Store, run_id: str) -> frozenset[str]:
    rows = store.db.execute("SELECT DISTINCT benchmark FROM trial WHERE run_id = ?", (run_id,))
    return frozenset(row["benchmark"] for row in rows)


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
