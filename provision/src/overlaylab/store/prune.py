"""Taking runs out of the database, and giving the disk back what they took."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from overlaylab.core import lock
from overlaylab.core.errors import UserError
from overlaylab.store import database
from overlaylab.store.database_errors import DISK_FULL, explained
from overlaylab.store.store import UNFINISHED, Store

# Columns by which a row belongs to a run; a new table with one of them is found by it.
OF_RUN = ("run_id", "trial_id")

# Days.
LONGEST = 36500


@dataclass(frozen=True)
class Removal:
    """What goes. freed: bytes that the file can then give back, in whole pages."""

    runs: tuple[str, ...]
    trials: int
    samples: int
    freed: int


def choose(store: Store, runs: Sequence[str], keep: int | None, older: float | None) -> list[str]:
    """Ids of the runs that are named, or of all but the `keep` newest and of those planned `older` days ago.

    Both together: runs of which both hold. A run that may be running is taken only where it is named. UserError.
    """
    # No comparison holds for NaN; and a date has an end.
    if older is not None and not 0 <= older <= LONGEST:
        raise UserError(
            "OLDER", f"must lie between 0 and {LONGEST} days", seen=f"{older:g}", fix="OLDER=90, for example"
        )
    if runs:
        return list(dict.fromkeys(store.find_run(run) for run in runs))
    if keep is None and older is None:
        raise UserError(
            "results:prune",
            "must be told which runs to remove",
            fix="RUN=id (several with commas), KEEP=20 for all but the 20 newest, OLDER=90 for all older than 90 days",
        )
    with explained(store.path):
        rows = store.db.execute(
            "SELECT run_id, state, created_at FROM run ORDER BY created_at DESC, run_id DESC"
        ).fetchall()
    before = "9" if older is None else f"{datetime.now(UTC) - timedelta(days=older):%Y-%m-%dT%H:%M:%S}"
    chosen = [row for row in rows[keep or 0 :] if row["created_at"] < before]
    return [row["run_id"] for row in chosen if row["state"] != "running"]


@contextlib.contextmanager
def untouched(store: Store, run_ids: Sequence[str], purpose: str = "results:prune") -> Iterator[None]:
    """Hold the clusters of those that are not at their end: whoever carries one on must not lose it. UserError."""
    records = [store.run(run_id) for run_id in run_ids]
    with contextlib.ExitStack() as held:
        for cluster in sorted({one.record.cluster for one in records if one.state in UNFINISHED}):
            held.enter_context(lock.cluster_lock(cluster, purpose))
        yield


def preview(store: Store, run_ids: Sequence[str]) -> Removal:
    """What removing them would do: it is done, looked at, and taken back. Raises UserError."""
    return _removed(store, run_ids, keep=True)


def remove(store: Store, run_ids: Sequence[str]) -> tuple[Removal, str | None]:
    """Take them out, all or none, and make the file smaller; (what went, why it could not be made smaller)."""
    removal = _removed(store, run_ids, keep=False)
    try:
        store.db.execute("VACUUM")
    except sqlite3.OperationalError as error:
        if not error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", *DISK_FULL)):
            raise
        return removal, str(error)
    return removal, None


class _TakenBack(Exception):
    """Ends the transaction of a preview."""


def _removed(store: Store, run_ids: Sequence[str], keep: bool) -> Removal:
    db = store.db
    # SQLite would look for children of every trial in tables that have no index for it; all is checked at once below.
    db.execute("PRAGMA foreign_keys = OFF")
    try:
        with database.transaction(db, store.path):
            free = _free(db)
            db.execute("CREATE TEMP TABLE _gone (run_id TEXT PRIMARY KEY) STRICT")
            db.executemany("INSERT INTO _gone VALUES (?)", ((run_id,) for run_id in run_ids))
            trials, samples = (
                db.execute(f"SELECT count(*) FROM {tables} WHERE run_id IN _gone").fetchone()[0]
                for tables in ("_trial", "_trial JOIN _sample USING (trial_id)")
            )
            for table, column in _tables(db):
                which = (
                    "_gone" if column == "run_id" else "(SELECT trial_id FROM _trial WHERE run_id IN _gone)"
                )
                db.execute(f"DELETE FROM {table} WHERE {column} IN {which}")
            broken = db.execute("PRAGMA foreign_key_check").fetchall()
            if broken:
                raise AssertionError(f"rows of {broken[0]['table']} would refer to nothing")
            removal = Removal(tuple(run_ids), trials, samples, _free(db) - free)
            db.execute("DROP TABLE _gone")
            if keep:
                raise _TakenBack
    except _TakenBack:
        pass
    finally:
        db.execute("PRAGMA foreign_keys = ON")
    return removal


def _tables(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """(table, column) of all that belongs to runs, trials and runs themselves last: the others are found by them."""
    found = []
    for (table,) in db.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'").fetchall():
        columns = [row["name"] for row in db.execute(f"PRAGMA main.table_info({table})")]
        column = next((name for name in OF_RUN if name in columns), None)
        if column:
            found.append((table, column))
    return sorted(found, key=lambda one: (one[0] in ("_trial", "_run"), one[0] == "_run", one))


def _free(db: sqlite3.Connection) -> int:
    """Bytes of the file's pages that hold nothing."""
    (pages,) = db.execute("PRAGMA freelist_count").fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    return int(pages * size)
