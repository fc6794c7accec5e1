"""Attempts at drills in the results database: written while they run, read for history and for what comes next."""

from __future__ import annotations

import re
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from overlaylab.core.errors import UserError
from overlaylab.core.measures import OF_CYCLE
from overlaylab.core.model import JSON, Variant
from overlaylab.store import database
from overlaylab.store.database_errors import explained
from overlaylab.store.rows import dump, insert, text, variant_id
from overlaylab.store.store import Store

RUNNING = "running"
# How an attempt ends; its last judged event is of the same kind.
REPAIRED, GIVEN_UP, ABANDONED = ENDS = ("repaired", "given-up", "abandoned")

# Fields of AttemptRecord that are columns of the same name.
SAME_NAME = (
    "drill", "drill_digest", "title", "level", "minutes", "gameday", "trainee", "machine", "provider", "accelerator",
    "image", "cluster", "profile", "profile_digest", "role_digest", "lab_version",
)  # fmt: skip


@dataclass(frozen=True)
class AttemptRecord:
    """What an attempt is about; every digest is a SHA-256 in hex."""

    drill: str
    drill_digest: str
    title: str
    level: int
    minutes: int
    # As RunRecord has them.
    machine: str
    provider: str
    accelerator: str
    image: str | None
    cluster: str
    profile: str
    profile_digest: str
    variant: Variant
    # Of the overlay's role.
    role_digest: str
    lab_version: str | None
    # Free text, and nothing else about a person.
    trainee: str | None = None
    # The id of the first attempt of its series; None for one by itself.
    gameday: str | None = None


@dataclass(frozen=True)
class AttemptCycle:
    """One pass of the prober. t: s since the ticket, below zero before it; phase: healthy, broken, running, check."""

    t: float
    node: str
    role: str
    phase: str
    # {measure of a cycle: value, None where it could not be measured}.
    values: Mapping[str, float | None]
    # {measure: why it failed}.
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredAttempt:
    """An attempt as the database has it. Times are UTC in ISO 8601."""

    attempt_id: str
    record: AttemptRecord
    # RUNNING or one of ENDS.
    state: str
    started_at: str
    ended_at: str | None
    # s from the ticket to its end; None while it runs and where it was abandoned.
    duration: float | None
    score: int | None
    hints: int
    failed_checks: int
    # In the trainee's words.
    cause: str | None


def begin_attempt(store: Store, record: AttemptRecord) -> str:
    """Store it as running, its ticket given now. Returns its id."""
    with database.transaction(store.db, store.path) as db:
        attempt_id = _new_id(db)
        words = {name: getattr(record, name) for name in SAME_NAME}
        insert(
            db, "_attempt", attempt_id=attempt_id, state=RUNNING, started_at=database.now(),
            variant_id=variant_id(db, record.variant),
            **{name: text(value) if isinstance(value, str) else value for name, value in words.items()},
        )  # fmt: skip
    return attempt_id


def _new_id(db: sqlite3.Connection) -> str:
    while True:
        attempt_id = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
        if not db.execute("SELECT 1 FROM _attempt WHERE attempt_id = ?", (attempt_id,)).fetchone():
            return attempt_id


def add_event(
    store: Store, attempt_id: str, kind: str, t: float, detail: JSON, at: str | None = None
) -> None:
    """t: s since the ticket, below zero before it; at: UTC where it was earlier than now.

    A check's detail has ``passes``, by which failed ones are counted. Ends have a function of their own.
    """
    if kind in ENDS:
        raise ValueError(f"{kind} is told by end_attempt")
    if kind == "check" and not isinstance(detail.get("passes"), bool):
        raise ValueError("a check passes or does not")
    with database.transaction(store.db, store.path) as db:
        _insert_event(db, attempt_id, kind, t, detail, at)


def _insert_event(
    db: sqlite3.Connection, attempt_id: str, kind: str, t: float, detail: JSON, at: str | None
) -> None:
    insert(
        db, "_attempt_event", attempt_id=attempt_id, ordinal=_next(db, "_attempt_event", attempt_id), t=t,
        at=at or database.now(), kind=kind, detail=_json(detail),
    )  # fmt: skip


def _json(value: JSON) -> str:
    """JSON text; halves of surrogate pairs, as bytes that were no UTF-8 become, are written as escapes, see `text`."""
    return re.sub("[\ud800-\udfff]", lambda half: rf"\\u{ord(half[0]):04x}", dump(value))


def _next(db: sqlite3.Connection, table: str, attempt_id: str) -> int:
    (ordinal,) = db.execute(
        f"SELECT coalesce(max(ordinal) + 1, 0) FROM {table} WHERE attempt_id = ?", (attempt_id,)
    ).fetchone()
    return int(ordinal)


def add_cycles(store: Store, attempt_id: str, cycles: Sequence[AttemptCycle]) -> None:
    """Store passes of the prober, in the order given."""
    with database.transaction(store.db, store.path) as db:
        first = _next(db, "_attempt_cycle", attempt_id)
        for ordinal, cycle in enumerate(cycles, first):
            insert(
                db, "_attempt_cycle", attempt_id=attempt_id, ordinal=ordinal, t=cycle.t, node=cycle.node,
                role=cycle.role, phase=cycle.phase, reasons=_json(cycle.reasons),
                **{name: cycle.values[name] for name in OF_CYCLE},
            )  # fmt: skip


def end_attempt(
    store: Store,
    attempt_id: str,
    state: str,
    t: float,
    detail: JSON,
    score: int | None = None,
    cause: str | None = None,
) -> bool:
    """Store its end with the event of that kind; False where it had ended already.

    t: s since the ticket. An end that is no abandonment tells the cause: ``debrief`` and ``topics`` in detail.
    """
    if state not in ENDS:
        raise ValueError(f"an attempt ends {', '.join(ENDS)}, not {state}")
    with database.transaction(store.db, store.path) as db:
        done = db.execute(
            "UPDATE _attempt SET state = ?, ended_at = ?, duration = ?, score = ?, cause = coalesce(?, cause)"
            " WHERE attempt_id = ? AND state = ?",
            (
                *(state, database.now(), None if state == ABANDONED else t, score),
                *(cause and text(cause), attempt_id, RUNNING),
            ),
        )
        if done.rowcount:
            _insert_event(db, attempt_id, state, t, detail, None)
    return bool(done.rowcount)


def attempts(store: Store, drill: str | None = None) -> list[StoredAttempt]:
    """All, or those at one drill, oldest first."""
    return _found(store, "?1 IS NULL OR drill = ?1", drill)


def open_attempt(store: Store, cluster: str) -> StoredAttempt | None:
    """The one that is running on a cluster, the newest where a kill left others."""
    return next(reversed(_found(store, "state = 'running' AND cluster = ?", cluster)), None)


def attempt(store: Store, attempt_id: str) -> StoredAttempt:
    """The attempt of that id. Raises UserError where there is none."""
    found = _found(store, "attempt_id = ?", attempt_id)
    if not found:
        raise UserError(
            f"{store.path}: attempt",
            "must be the id of an attempt in it",
            seen=attempt_id,
            fix="See ./task drill:history.",
        )
    return found[0]


def best(store: Store) -> dict[str, int]:
    """{drill: the highest score}, of those that were repaired."""
    with explained(store.path):
        rows = store.db.execute(
            "SELECT drill, max(score) FROM _attempt WHERE score IS NOT NULL GROUP BY drill"
        ).fetchall()
    return dict(rows)


def _found(store: Store, where: str, value: str | None) -> list[StoredAttempt]:
    with explained(store.path):
        rows = store.db.execute(
            f"SELECT * FROM attempt WHERE {where} ORDER BY started_at, attempt_id", (value,)
        ).fetchall()
    return [_read(row) for row in rows]


def _read(row: sqlite3.Row) -> StoredAttempt:
    record = AttemptRecord(
        **{name: row[name] for name in SAME_NAME},
        variant=Variant(row["overlay"], row["mode"], bool(row["encrypted"])),
    )
    names = (
        "attempt_id",
        "state",
        "started_at",
        "ended_at",
        "duration",
        "score",
        "hints",
        "failed_checks",
        "cause",
    )
    return StoredAttempt(record=record, **{name: row[name] for name in names})


def events(store: Store, attempt_id: str) -> list[sqlite3.Row]:
    """Rows of the view `attempt_event`, in their order."""
    with explained(store.path):
        return store.db.execute(
            "SELECT * FROM attempt_event WHERE attempt_id = ? ORDER BY ordinal", (attempt_id,)
        ).fetchall()
