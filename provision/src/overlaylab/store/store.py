"""Keeps runs, trials and their proof in the results database, so that a kill at any moment loses no trial."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from overlaylab.core.errors import UserError
from overlaylab.core.model import Evidence, PlannedTrial, ProfileCheck, RunRecord, TrialResult, Variant
from overlaylab.store import database
from overlaylab.store.database_errors import explained
from overlaylab.store.rows import (
    insert,
    insert_evidence,
    insert_result,
    insert_run,
    read_run,
    read_trial,
    variant_id,
)

RUN_STATES = ("planned", "running", "interrupted", "done", "failed")
UNFINISHED = ("planned", "running", "interrupted")
FINISHED_TRIAL = ("ok", "failed", "void")


@dataclass(frozen=True)
class StoredRun:
    """A run as the database has it. Times are UTC in ISO 8601; trials are counted over the whole plan."""

    run_id: str
    record: RunRecord
    state: str
    created_at: str
    started_at: str | None
    ended_at: str | None
    trials_planned: int
    trials_done: int


def new_run_id(db: sqlite3.Connection) -> str:
    """UTC and a random tail that no run has: sorts by time. Many may be imported in one second."""
    while True:
        run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
        if not db.execute("SELECT 1 FROM _run WHERE run_id = ?", (run_id,)).fetchone():
            return run_id


class Store:
    """One open results database. Not to be shared between threads.

    The file is in WAL mode while a run is ``running`` and a plain file otherwise. Every method is one
    transaction; each raises UserError when the disk is full, the file damaged or locked by another.
    """

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self.db, self.path = db, path

    @classmethod
    def open(cls, path: Path | str, create: bool = True) -> Store:
        """Open, migrate and heal; see database.open_database for create and the errors."""
        path = Path(path).absolute()
        return cls(database.open_database(path, create=create), path)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Back to one plain file where nobody else has it open, then let go of it."""
        try:
            if self._journal_mode() == "wal":
                database.to_plain_file(self.db, patience=2)
        except sqlite3.Error:
            pass  # A full disk: the next opening heals it.
        finally:
            self.db.close()

    # Runs

    def begin_run(self, run: RunRecord, trials: Sequence[PlannedTrial]) -> str:
        """Store the whole plan at once; the run is then ``planned``. Returns its id."""
        with database.transaction(self.db, self.path) as db:
            run_id = new_run_id(db)
            insert_run(db, run_id, run, trials)
        return run_id

    def add_finished_runs(
        self, runs: Sequence[tuple[RunRecord, Sequence[tuple[PlannedTrial, TrialResult]]]]
    ) -> list[str]:
        """Store runs that ended elsewhere, all of them or none; their ids. Raises as finish_trial does."""
        run_ids = []
        with database.transaction(self.db, self.path) as db:
            for record, trials in runs:
                run_id = new_run_id(db)
                insert_run(db, run_id, record, [planned for planned, _ in trials])
                rows = db.execute("SELECT trial_id FROM _trial WHERE run_id = ? ORDER BY trial_id", (run_id,))
                for (trial_id,), (_, result) in zip(rows.fetchall(), trials, strict=True):
                    insert_result(db, trial_id, result)
                begun = min(result.started_at for _, result in trials)
                db.execute(
                    "UPDATE _run SET state = 'done', started_at = ?, ended_at = ? WHERE run_id = ?",
                    (begun, database.now(), run_id),
                )
                run_ids.append(run_id)
        return run_ids

    def run(self, run_id: str) -> StoredRun:
        """The run and its state. Raises UserError where there is none of that id."""
        with explained(self.path):
            row = self.db.execute("SELECT * FROM run WHERE run_id = ?", (run_id,)).fetchone()
            if row is None:
                raise UserError(
                    f"{self.path}: run",
                    "must be the id of a run in it",
                    seen=run_id,
                    fix="See ./task results:list.",
                )
            record = read_run(self.db, row)
        times = {k: row[k] for k in ("state", "created_at", "started_at", "ended_at")}
        counts = {k: row[k] for k in ("trials_planned", "trials_done")}
        return StoredRun(run_id=run_id, record=record, **times, **counts)

    def find_run(self, run: str | None) -> str:
        """The id that run means: itself, its unique beginning or end, or for None the newest. UserError."""
        with explained(self.path):
            ids: list[str] = [
                row[0] for row in self.db.execute("SELECT run_id FROM _run ORDER BY created_at, run_id")
            ]
        if not ids:
            raise UserError(
                f"{self.path}", "holds no run yet", fix="Measure something first: ./task lab:weave."
            )
        if run is None:
            return ids[-1]
        found = [i for i in ids if i == run] or [i for i in ids if i.startswith(run) or i.endswith(run)]
        if len(found) == 1:
            return found[0]
        raise UserError(
            "RUN",
            "must be the id of one run, or its unique beginning or end",
            seen=f"{run}, which fits {len(found) or 'none'}",
            fix="See ./task results:list.",
        )

    def set_run_state(self, run_id: str, state: str) -> None:
        """``running`` puts the file in WAL mode and stamps the first start; an end makes it plain again."""
        if state not in RUN_STATES:
            raise ValueError(f"unknown run state {state}")
        if state == "running":
            self._write_ahead()
        with database.transaction(self.db, self.path) as db:
            done = db.execute(
                "UPDATE _run SET state = :state,"
                " started_at = iif(:state = 'running', coalesce(started_at, :now), started_at),"
                " ended_at = iif(:state IN ('planned', 'running'), NULL, :now)"
                " WHERE run_id = :run_id",
                {"state": state, "now": database.now(), "run_id": run_id},
            )
            if done.rowcount != 1:
                raise ValueError(f"no run {run_id}")
            if state == "done":
                # Said of fewer trials than there are now, nothing would be said of the whole.
                db.execute(
                    "DELETE FROM _comparison_made WHERE run_id = ?1 AND trials_done <>"
                    " (SELECT trials_done FROM run WHERE run_id = ?1)",
                    (run_id,),
                )
        if state in ("interrupted", "done", "failed"):
            with explained(self.path):
                database.to_plain_file(self.db, patience=2)

    # Trials

    def pending_trials(self, run_id: str) -> list[tuple[int, PlannedTrial]]:
        """(trial id, plan) of what is still to be done, in order; what a kill left running is taken again."""
        with explained(self.path):
            rows = self.db.execute(
                "SELECT * FROM _trial JOIN _variant USING (variant_id)"
                " WHERE run_id = ? AND status IN ('planned', 'running') ORDER BY trial_id",
                (run_id,),
            ).fetchall()
        return [(row["trial_id"], read_trial(row)) for row in rows]

    def trial_ids(self, run_id: str, status: str | None = None, after: int | None = None) -> list[int]:
        """Ids in the order of the plan; only those of that status, only those after that trial."""
        with explained(self.path):
            rows = self.db.execute(
                "SELECT trial_id FROM _trial WHERE run_id = ? AND (?2 IS NULL OR status = ?2)"
                " AND (?3 IS NULL OR trial_id > ?3) ORDER BY trial_id",
                (run_id, status, after),
            )
            return [row["trial_id"] for row in rows]

    def start_trial(self, trial_id: int, started_at: str) -> None:
        """Mark it as running. Raises ValueError for a trial that is finished: none is counted twice.

        Survives a kill at once, and a power cut with the next transaction: without the mark it is taken again alike.
        """
        with database.soon(self.db), database.transaction(self.db, self.path) as db:
            done = db.execute(
                "UPDATE _trial SET status = 'running', started_at = ?"
                " WHERE trial_id = ? AND status IN ('planned', 'running')",
                (started_at, trial_id),
            )
            if done.rowcount != 1:
                raise ValueError(f"trial {trial_id} is finished or does not exist")

    def finish_trial(self, trial_id: int, result: TrialResult, evidence: Sequence[Evidence] = ()) -> None:
        """Store the outcome, its raw output, samples, summary, histogram and evidence together.

        A failed trial keeps its raw output but no samples: what it measured does not hold.
        Raises ValueError for a trial that is finished, and for a sample of an unknown metric or with a
        value that is no finite number.
        """
        if result.status not in FINISHED_TRIAL:
            raise ValueError(f"a trial ends ok, failed or void, not {result.status}")
        with database.transaction(self.db, self.path) as db:
            insert_result(db, trial_id, result)
            row = db.execute(
                "SELECT run_id, variant_id FROM _trial WHERE trial_id = ?", (trial_id,)
            ).fetchone()
            for one in evidence:
                insert_evidence(db, row["run_id"], trial_id, row["variant_id"], one)

    def void_trials(self, trial_ids: Iterable[int], reason: str) -> int:
        """Withdraw results; returns how many. A failed trial keeps its own reason, a void one its first.

        What `comparison` says of their runs goes too: nothing is better than what no longer holds.
        """
        if not reason:
            raise ValueError("a void trial needs a reason")
        with database.transaction(self.db, self.path) as db:
            withdrawn = [
                row["run_id"]
                for i in trial_ids
                for row in db.execute(
                    "UPDATE _trial SET status = 'void', reason = ? WHERE trial_id = ? AND status = 'ok'"
                    " RETURNING run_id",
                    (reason, i),
                ).fetchall()
            ]
            for run_id in set(withdrawn):
                db.execute("DELETE FROM _comparison_made WHERE run_id = ?", (run_id,))
            return len(withdrawn)

    # Proof

    def add_evidence(self, run_id: str, trial_id: int | None, variant: Variant, evidence: Evidence) -> None:
        """Store one piece of evidence; trial_id None where it was taken outside a trial."""
        with database.transaction(self.db, self.path) as db:
            insert_evidence(db, run_id, trial_id, variant_id(db, variant), evidence)

    def add_profile_check(self, run_id: str, check: ProfileCheck) -> None:
        """Store one check, with the last trial that was finished before it."""
        with database.transaction(self.db, self.path) as db:
            (after,) = db.execute(
                "SELECT max(trial_id) FROM _trial WHERE run_id = ? AND status IN (?, ?, ?)",
                (run_id, *FINISHED_TRIAL),
            ).fetchone()
            insert(
                db,
                "_profile_check",
                run_id=run_id,
                recorded_at=database.now(),
                after_trial_id=after,
                **{name: getattr(check, name) for name in ProfileCheck.__dataclass_fields__},
            )

    # The file

    def _journal_mode(self) -> str:
        (mode,) = self.db.execute("PRAGMA journal_mode").fetchone()
        return str(mode)

    def _write_ahead(self) -> None:
        with explained(self.path):
            self.db.execute("PRAGMA journal_mode = WAL")
