"""What one run of the lab has of a published pair: what `fidelity` judges, from its report and its trials' counters."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable

from overlaylab.core.model import HOST, Variant
from overlaylab.results.fidelity import Lab, Load, Verdict, judge, load_of
from overlaylab.results.precision import published_interval
from overlaylab.results.published import Pair, Published
from overlaylab.results.results import Report
from overlaylab.results.rows import Row, Table
from overlaylab.shaping import checks
from overlaylab.stats.inference import median_ratio
from overlaylab.store.store import Store
from overlaylab.tools import base as tools

# What is judged, of TCP.
METRICS = ("goodput", "latency_one_way")
# Checks of a profile without which a metric is not the tier's.
CHECKS = {"goodput": ("goodput",), "latency_one_way": ("rtt-baseline", "rtt-idle")}

Judged = Callable[[Table, Row, Published], Verdict | None]


def judged(store: Store, report: Report) -> Judged:
    """The verdict on what was published beside a row of the report; None where the two are not held together."""
    labs: dict[int, Lab] = {}

    def verdict(table: Table, row: Row, one: Published) -> Verdict | None:
        pair = one.pair
        measured = one.comparable and row.ratio and report.run.record.origin == "measured"
        if not measured or pair.metric not in METRICS or pair.protocol != "tcp" or not of_one_zone(report):
            return None
        if id(row) not in labs:
            labs[id(row)] = lab_of(store, report, table, row)
        return judge(labs[id(row)], pair.metric, published_interval(pair))

    return verdict


def of_one_zone(report: Report) -> bool:
    """Nothing was published between two zones."""
    return len(set(report.run.record.zones.values())) <= 1


def as_printed(report: Report, pair: Pair) -> bool:
    """Measured with the MTU that the publication says, or the overlay's own where it says none."""
    return pair.mtu is not None or "_mtu=" not in (report.run.record.arguments.get("arguments") or "")


def lab_of(store: Store, report: Report, table: Table, row: Row) -> Lab:
    """What is judged of a row that has a ratio."""
    if row.ratio is None:
        raise ValueError(f"{row.variant}: nothing was measured in the same block as the host")
    run = report.run
    load = _load(store, run.run_id, table.benchmark, row.variant)
    return Lab(
        accelerator=run.record.accelerator,
        ratio=row.ratio.median,
        n=row.ratio.n,
        interval=median_ratio(row.ratio.blocks, row.ratio.step),
        headers=row.theory,
        load=load,
        host_load=_load(store, run.run_id, table.benchmark, Variant(HOST)),
        not_in_force=_not_in_force(report, table.metric, load),
    )


def _load(store: Store, run_id: str, benchmark: str, variant: Variant) -> Load | None:
    """The busier node's, median over the trials; None where the counters were not kept."""
    rows = store.db.execute(
        "SELECT tool, parameters, node_state FROM trial WHERE run_id = ? AND benchmark = ? AND overlay = ?"
        " AND mode IS ? AND encrypted = ? AND status = 'ok' AND NOT warmup",
        (run_id, benchmark, variant.overlay, variant.mode, variant.encrypted),
    )
    busier = []
    for row in rows:
        seconds = tools.load(row["tool"]).duration(json.loads(row["parameters"]))
        loads = [load_of(s["before"], s["after"], seconds) for s in json.loads(row["node_state"]).values()]
        known = [load for load in loads if load]
        if known:
            busier.append(min(known, key=lambda load: load.share))
    if not busier:
        return None
    cpus = busier[0].cpus
    return Load(statistics.median(load.share for load in busier) * cpus, cpus)


def _not_in_force(report: Report, metric: str, load: Load | None) -> str | None:
    """What the accelerator could not carry of the tier, as the run's own checks say."""
    missed = [check for check in report.checks if check["verdict"] == "not-applicable"]
    for name in CHECKS[metric]:
        for check in missed:
            if check["name"] == name:
                measured = checks.show(check["measured"], check["unit"])
                return f"the tier is not in force: {name} {measured}, {check['reason']}"
    fewer = [check for check in missed if check["name"] == "vcpus"]
    if fewer and load and load.bound:
        return f"CPU-bound, and {fewer[0]['reason']}"
    return None
