"""What results:show says of each run, kept in the database: rows of the public view `comparison`.

Whoever reads them (the viewer, a SQLite shell) repeats no statistics. Written when a block of a run has ended, and
when something is imported; a withdrawn trial takes its run's rows along, and `refresh` makes what is missing or old.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from overlaylab.core import lock, paths
from overlaylab.core.model import JSON
from overlaylab.report.verdicts_table import verdict_of, verdict_words
from overlaylab.results.precision import flaws_of, published_interval
from overlaylab.results.published import Published
from overlaylab.results.results import HeaderBytes, Report, header_bytes, report
from overlaylab.results.rows import Row, Table
from overlaylab.store import database
from overlaylab.store.database_errors import explained
from overlaylab.store.rows import dump, insert, variant_id
from overlaylab.store.store import Store

if TYPE_CHECKING:
    from overlaylab.results.fidelity import Verdict

# Raise it with every change of what is computed or said here: rows of before are then made again.
MADE_BY = 3
PUBLISHED_FILES = ("published.csv", "published_precision.csv", "published_flaws.csv")


@dataclass(frozen=True)
class Refreshed:
    """Ids of runs: made: whose rows were made; measured: left alone, because they are being measured right now."""

    made: tuple[str, ...]
    measured: tuple[str, ...]


def write(store: Store, whole: Report) -> None:
    """Put what the report says in the place of what was said of its run, in one transaction."""
    with database.transaction(store.db, store.path) as db:
        _replace(store, db, whole)


def refresh(
    store: Store, run_ids: Sequence[str] | None = None, headers: HeaderBytes = header_bytes
) -> Refreshed:
    """Make the rows of these runs, by default of all that lack them or whose rows are of something older.

    One transaction each. A run that is being measured gets its own with its next block.
    """
    with explained(store.path):
        chosen = _stale(store.db) if run_ids is None else list(run_ids)
    made, measured = [], []
    for run_id in chosen:
        run = store.run(run_id)
        if run.state == "running" and lock.is_held(run.record.cluster):
            measured.append(run_id)
            continue
        # Read inside too: what another process withdraws meanwhile would be told of after all.
        with database.transaction(store.db, store.path) as db:
            _replace(store, db, report(store, run_id, headers))
        made.append(run_id)
    return Refreshed(tuple(made), tuple(measured))


def _stale(db: sqlite3.Connection) -> list[str]:
    """Runs with trials, oldest first, whose rows are missing, of other statistics or publications, or too few.

    What is done changes by being withdrawn only, which leaves no rows: its trials need not be counted.
    """
    rows = db.execute(
        "SELECT r.run_id FROM _run AS r LEFT JOIN _comparison_made AS d USING (run_id)"
        " WHERE EXISTS (SELECT 1 FROM _trial AS t WHERE t.run_id = r.run_id)"
        " AND (d.made_by IS NOT ? OR d.published IS NOT ? OR r.state <> 'done' AND d.trials_done <>"
        " (SELECT count(*) FROM _trial AS t WHERE t.run_id = r.run_id AND t.status IN ('ok', 'failed', 'void')))"
        " ORDER BY r.created_at, r.run_id",
        (MADE_BY, _published_digest()),
    )
    return [row["run_id"] for row in rows]


def _published_digest() -> str:
    whole = b"".join((paths.DB / name).read_bytes() for name in PUBLISHED_FILES)
    return hashlib.sha256(whole).hexdigest()


def _replace(store: Store, db: sqlite3.Connection, whole: Report) -> None:
    from overlaylab.results import fidelity_run  # takes half a second, which finding nothing to do should not

    run_id = whole.run.run_id
    db.execute("DELETE FROM _comparison_made WHERE run_id = ?", (run_id,))  # and with it the rows
    insert(
        db,
        "_comparison_made",
        run_id=run_id,
        made_by=MADE_BY,
        made_at=database.now(),
        published=_published_digest(),
        trials_done=whole.run.trials_done,
        blocks_done=whole.blocks_done,
        margin=whole.rules.margin,
    )
    metrics = {row["name"]: row["metric_id"] for row in db.execute("SELECT name, metric_id FROM metric")}
    judged = fidelity_run.judged(store, whole)
    rows = [(table, row) for table in whole.tables for row in table.rows]
    for ordinal, (table, row) in enumerate(rows):
        insert(
            db,
            "_comparison",
            run_id=run_id,
            ordinal=ordinal,
            variant_id=variant_id(db, row.variant),
            metric_id=metrics[table.metric],
            **_of_table(table),
            **_of_row(table, row),
            published=dump([_published(one, judged(table, row, one), whole) for one in row.published]),
        )


def _of_table(table: Table) -> dict[str, object]:
    placement, direction, client_node, server_node = table.ends
    return {
        "benchmark": table.benchmark,
        "placement": placement,
        "direction": direction,
        "client_node": client_node,
        "server_node": server_node,
        "place": table.where,
        "tools": dump(list(table.tools)),
        "step": table.step,
        "is_primary": int(table.primary),
    }


def _of_row(table: Table, row: Row) -> dict[str, object]:
    ratio, verdict = row.ratio, verdict_of(row)
    interval = ratio and ratio.interval
    return {
        "blocks": row.n,
        "median": row.median,
        "low": row.low,
        "high": row.high,
        "ratio_blocks": ratio.n if ratio else 0,
        "ratio": ratio and ratio.median,
        "ratio_low": ratio and ratio.low,
        "ratio_high": ratio and ratio.high,
        "ratio_same_step": ratio and int(ratio.same),
        "interval_low": interval and interval.low,
        "interval_high": interval and interval.high,
        "coverage": interval and interval.coverage,
        "verdict": verdict and verdict.word,
        "verdict_words": verdict and verdict_words(verdict.word, table),
        "p": verdict and verdict.p,
        "verdict_alone": verdict and verdict.alone,
        "verdict_alone_words": verdict and verdict_words(verdict.alone, table),
        "left_out": 0 if row.variant.is_baseline else row.left_out,
        "theory": row.theory,
    }


def _published(one: Published, verdict: Verdict | None, whole: Report) -> JSON:
    """A published ratio with all that results:show, and bench:fidelity, say beside it and of it."""
    from overlaylab.results import fidelity_run

    pair, interval = one.pair, published_interval(one.pair)
    return {
        "publication": pair.publication,
        "cloud": pair.cloud,
        "instance": pair.instance,
        "source": pair.source,
        "overlay_version": pair.version,
        "overlay_mtu": pair.mtu,
        "tool": pair.tool,
        "protocol": pair.protocol,
        "parameters": pair.parameters,
        "host_values": list(pair.host_values),
        "overlay_values": list(pair.overlay_values),
        "ratio": pair.ratio,
        "low": interval and interval.low,
        "high": interval and interval.high,
        "coverage": interval and interval.coverage,
        "same_step": pair.same,
        "comparable": one.comparable,
        "notes": list(pair.notes),
        "flaws": list(flaws_of(pair)),
        "as_printed": fidelity_run.as_printed(whole, pair),
        "verdict": verdict and verdict.word,
        "reason": verdict and verdict.reason,
    }
