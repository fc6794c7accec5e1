"""Rows of the results database from records, and back. The transaction is the caller's (``store``)."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence, Set

from overlaylab.core.model import JSON, Evidence, PlannedTrial, RunRecord, TrialResult, Variant
from overlaylab.store import database
from overlaylab.store.summary import QUANTILES, summarise
from overlaylab.tools import base as tools

# Fields of RunRecord that are columns of the same name.
SAME_NAME = (
    "cluster",
    "provider",
    "accelerator",
    "machine",
    "image",
    "profile",
    "profile_digest",
    "suite",
    "suite_digest",
    "scale",
    "seed",
    "blocks",
    "origin",
    "lab_version",
    "system",
    "kit",
)
# metric_id of the first metric that a tool declares; migrations give smaller ones.
OWN_METRICS = 1000


def insert(db: sqlite3.Connection, table: str, **values: object) -> None:
    """One row, columns by name."""
    names = ", ".join(values)
    db.execute(
        f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(values))})", tuple(values.values())
    )


def dump(value: JSON | Sequence[object]) -> str:
    """JSON text, keys sorted. Raises ValueError for NaN and infinity, which are no JSON."""
    return json.dumps(value, default=_plain, ensure_ascii=False, sort_keys=True, allow_nan=False)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON")


def text(raw: str) -> str:
    """Text that SQLite takes: bytes that were no UTF-8 (surrogates) are written as escapes."""
    return raw.encode("utf-8", "backslashreplace").decode()


def variant_id(db: sqlite3.Connection, variant: Variant) -> int:
    """The variant's row, made where it is new."""
    key = (variant.overlay, variant.mode, int(variant.encrypted))
    find = "SELECT variant_id FROM _variant WHERE overlay = ? AND mode IS ? AND encrypted = ?"
    row = db.execute(find, key).fetchone()
    if row is None:
        insert(db, "_variant", overlay=key[0], mode=key[1], encrypted=key[2])
        row = db.execute(find, key).fetchone()
    found: int = row["variant_id"]
    return found


def insert_run(db: sqlite3.Connection, run_id: str, run: RunRecord, trials: Sequence[PlannedTrial]) -> None:
    """The run, its variants, its nodes and its whole plan."""
    insert(
        db,
        "_run",
        run_id=run_id,
        state="planned",
        created_at=database.now(),
        stands_for=None if run.stands_for is None else dump(run.stands_for),
        role_digests=dump(run.role_digests),
        arguments=dump(run.arguments),
        **{name: getattr(run, name) for name in SAME_NAME},
    )
    for ordinal, variant in enumerate(run.variants):
        insert(db, "_run_variant", run_id=run_id, ordinal=ordinal, variant_id=variant_id(db, variant))
    nodes = {*run.nodes, *run.zones, *(n for t in trials for n in (t.client_node, t.server_node))}
    for name in sorted(nodes):
        details = dump(run.nodes[name]) if name in run.nodes else None
        insert(db, "_node", run_id=run_id, name=name, zone=run.zones.get(name), details=details)
    for trial in trials:
        insert(
            db,
            "_trial",
            run_id=run_id,
            variant_id=variant_id(db, trial.variant),
            block=trial.block,
            position=trial.position,
            repetition=trial.repetition,
            warmup=int(trial.warmup),
            benchmark=trial.benchmark,
            tool=trial.tool,
            parameters=dump(trial.parameters),
            placement=trial.placement,
            client_node=trial.client_node,
            server_node=trial.server_node,
            direction=trial.direction,
        )


def read_run(db: sqlite3.Connection, row: sqlite3.Row) -> RunRecord:
    """The record behind a row of the view ``run``."""
    stands_for = db.execute("SELECT stands_for FROM _run WHERE run_id = ?", (row["run_id"],)).fetchone()[0]
    nodes = json.loads(row["nodes"])
    variants = json.loads(row["variants"])
    return RunRecord(
        **{name: row[name] for name in SAME_NAME},
        stands_for=None if stands_for is None else json.loads(stands_for),
        variants=tuple(Variant(v["overlay"], v["mode"], bool(v["encrypted"])) for v in variants),
        role_digests=json.loads(row["role_digests"]),
        zones={name: n["zone"] for name, n in nodes.items() if n["zone"] is not None},
        nodes={name: n["details"] for name, n in nodes.items() if n["details"] is not None},
        arguments=json.loads(row["arguments"]),
    )


def read_trial(row: sqlite3.Row) -> PlannedTrial:
    """The plan behind a row of _trial joined with _variant."""
    names = (
        "block",
        "position",
        "benchmark",
        "tool",
        "repetition",
        "placement",
        "client_node",
        "server_node",
    )
    return PlannedTrial(
        **{name: row[name] for name in names},
        direction=row["direction"],
        variant=Variant(row["overlay"], row["mode"], bool(row["encrypted"])),
        parameters=json.loads(row["parameters"]),
        warmup=bool(row["warmup"]),
    )


def insert_result(db: sqlite3.Connection, trial_id: int, result: TrialResult) -> None:
    """The outcome of a trial that is not finished yet, with output, samples, summary and histogram.

    Raises ValueError for a finished trial, an unknown metric, a value that is no finite number.
    """
    done = db.execute(
        "UPDATE _trial SET status = ?, reason = ?, started_at = ?, duration = ?, argv = ?, exit_code = ?,"
        " tool_version = ?, overlay_version = ?, overlay_mtu = ?, underlay_mtu = ?"
        " WHERE trial_id = ? AND status IN ('planned', 'running')",
        (
            *(result.status, result.reason and text(result.reason), result.started_at, result.duration),
            *(json.dumps(list(result.argv)), result.exit_code, result.tool_version),
            *(result.overlay_version, result.overlay_mtu, result.underlay_mtu, trial_id),
        ),
    )
    if done.rowcount != 1:
        raise ValueError(f"trial {trial_id} is finished or does not exist")
    insert(
        db,
        "_output",
        trial_id=trial_id,
        stdout=text(result.stdout),
        stderr=text(result.stderr),
        node_state=dump(result.node_state),
    )
    samples = () if result.status == "failed" else result.samples
    metrics = _metric_ids(db, {sample.metric for sample in samples})
    for sample in samples:
        if not math.isfinite(sample.value):
            raise ValueError(f"{sample.metric} must be a finite number, not {sample.value}")
    db.executemany(
        "INSERT INTO _sample VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (trial_id, i, metrics[s.metric], s.quantile, s.t_start, s.t_end, s.value, s.resolution)
            for i, s in enumerate(samples)
        ),
    )
    for summary in summarise(samples):
        metric_id = metrics[summary.metric]
        insert(
            db,
            "_trial_summary",
            trial_id=trial_id,
            metric_id=metric_id,
            basis=summary.basis,
            n=summary.n,
            value=summary.value,
            mean=summary.mean,
            min=summary.low,
            max=summary.high,
            resolution=summary.resolution,
            **dict(zip(QUANTILES, summary.quantiles, strict=True)),
        )
        db.executemany(
            "INSERT INTO _histogram VALUES (?, ?, ?, ?, ?)",
            ((trial_id, metric_id, *one) for one in summary.bins),
        )


def _metric_ids(db: sqlite3.Connection, names: Set[str]) -> dict[str, int]:
    """{name: metric_id} of all; what a tool declares comes into the table with its first sample."""
    found = {row["name"]: row["metric_id"] for row in db.execute("SELECT name, metric_id FROM metric")}
    for name in sorted(names - found.keys()):
        metric = tools.metrics().get(name)
        if metric is None:
            raise ValueError(f"metric {name} is none of core.metrics, and no tool declares it")
        found[name] = max(OWN_METRICS, *(number + 1 for number in found.values()))
        insert(
            db, "metric", metric_id=found[name], name=name, unit=metric.unit, better=metric.better,
            description=metric.description,
        )  # fmt: skip
    return found


def insert_evidence(
    db: sqlite3.Connection, run_id: str, trial_id: int | None, variant_id: int, evidence: Evidence
) -> None:
    """One piece of evidence; trial_id None where it was taken outside a trial."""
    insert(
        db,
        "_evidence",
        run_id=run_id,
        trial_id=trial_id,
        variant_id=variant_id,
        recorded_at=database.now(),
        node=evidence.node,
        kind=evidence.kind,
        phase=evidence.phase,
        ok=int(evidence.ok),
        expected=dump(evidence.expected),
        observed=dump(evidence.observed),
        reason=evidence.reason,
    )
