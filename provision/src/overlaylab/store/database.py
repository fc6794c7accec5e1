"""The file behind the store: open, recognise, migrate and heal a results database.

What the tables mean is said in db/README.md; records go in and out through ``store``.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.store.database_errors import BUSY_SECONDS, DISK_FULL, explained, not_ours

# In the file's header (https://sqlite.org/fileformat.html#application_id); 0001_tables.sql sets it.
APPLICATION_ID = int.from_bytes(b"olab", "big")
MIGRATIONS = paths.DB / "migrations"
PUBLISHED = paths.DB / "published.csv"
# View (and, with an underscore, table) to the file in `db` that it holds.
BESIDE_PUBLISHED = {"published_flaw": "published_flaws.csv", "published_precision": "published_precision.csv"}


@dataclass(frozen=True)
class Migration:
    """One numbered file of SQL; sha256 in hex, of its bytes."""

    version: int
    name: str
    sql: str
    sha256: str


def now() -> str:
    """UTC in ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def migrations(folder: Path = MIGRATIONS) -> list[Migration]:
    """The migrations in folder, in order; their numbers have no gap."""
    found = []
    for file in sorted(folder.glob("[0-9]*.sql")):
        sql = file.read_bytes()
        digest = hashlib.sha256(sql).hexdigest()
        found.append(Migration(int(file.name.split("_")[0]), file.name, sql.decode(), digest))
    if [m.version for m in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"{folder}: migrations must be numbered 1, 2, 3 … without a gap")
    return found


def open_database(
    path: Path, *, create: bool, migrations_folder: Path = MIGRATIONS, published: Path = PUBLISHED
) -> sqlite3.Connection:
    """A connection in autocommit mode to the newest schema, foreign keys on.

    create: make the file where it is missing, and insist on being able to write. Without it, a database
    in a folder that cannot be written is opened for reading, if its schema is current.

    Raises UserError for a file that is missing, foreign, damaged, newer or not to be written.
    """
    path = Path(path).absolute()
    known = migrations(migrations_folder)
    writable = prepare_path(path, create)
    with explained(path):
        db = sqlite3.connect(
            f"{path.as_uri()}?mode={'rwc' if create else 'rw' if writable else 'ro'}",
            uri=True,
            isolation_level=None,
            timeout=BUSY_SECONDS,
        )
    try:
        with explained(path):
            db.row_factory = sqlite3.Row
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA synchronous = FULL")
            version = recognise(db, path, known, create)
            if version < len(known) and not writable:
                raise UserError(
                    f"{path}",
                    f"has schema {version} and must be brought to {len(known)}, but may not be written",
                    fix="Copy it to a folder of yours and set LAB_DB to the copy.",
                )
            if writable:
                heal(db, path)
                migrate(db, path, version, known)
                load_file(db, "published", published)
                for name, file in BESIDE_PUBLISHED.items():
                    load_file(db, name, paths.DB / file)
        return db
    except BaseException:
        db.close()
        raise


def prepare_path(path: Path, create: bool) -> bool:
    """Whether path can be written; makes its folder when create. Raises UserError."""
    if path.exists() and not path.is_file():
        raise not_ours(path, "a folder" if path.is_dir() else "no regular file")
    if not path.exists() and not create:
        raise UserError(
            f"{path}",
            "there is no results database yet",
            fix="Measure something first (./task lab:weave), or set LAB_DB to the file that you mean.",
        )
    try:
        if create:
            path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{path.parent}",
            "the results' folder must be a folder that you may write",
            seen=error.strerror,
            fix="Set LAB_DB to a file in a folder of yours.",
        ) from None
    # SQLite writes a journal beside the file, so the folder counts too.
    targets = [path, path.parent] if path.exists() else [path.parent]
    missing = [t for t in targets if not os.access(t, os.W_OK)]
    if create and missing:
        raise UserError(
            f"{path}",
            "results could not be stored: the file and its folder must be writable",
            seen=f"{missing[0]} is not",
            fix="Correct its permissions, or set LAB_DB to a file in a folder of yours.",
        )
    return not missing


def recognise(db: sqlite3.Connection, path: Path, known: list[Migration], create: bool) -> int:
    """The file's schema version, 0 for an empty file that may become one of ours; else UserError."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (objects,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if objects == 0 and version == 0:
        if not create:
            raise not_ours(path, "an empty file")
        return 0
    if application != APPLICATION_ID:
        raise not_ours(path, "a SQLite file of another program")
    if version > len(known):
        raise UserError(
            f"{path}",
            f"its schema must be at most {len(known)}, the newest that this checkout knows",
            seen=version,
            fix="Update the checkout (git pull), or set LAB_DB to another file.",
        )
    ours = {m.version: m for m in known}
    for row in db.execute("SELECT version, sha256 FROM migration ORDER BY version"):
        if row["version"] in ours and ours[row["version"]].sha256 != row["sha256"]:
            raise UserError(
                f"{path}",
                f"was made with another {ours[row['version']].name} than this checkout has",
                fix="Use the checkout that made it, or set LAB_DB to a new file.",
            )
    return int(version)


def heal(db: sqlite3.Connection, path: Path) -> None:
    """Back to one plain file after a writer was killed; nothing where a live one is at work."""
    if db.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        to_plain_file(db, patience=0)
    elif path.with_name(f"{path.name}-journal").exists():
        # One that SQLite has no need of: killed before its first page. Any write takes it away.
        with without_waiting(db):
            db.execute("BEGIN IMMEDIATE")
            db.execute(f"PRAGMA user_version = {db.execute('PRAGMA user_version').fetchone()[0]}")
            db.execute("COMMIT")


def to_plain_file(db: sqlite3.Connection, *, patience: float) -> bool:
    """Checkpoint and leave WAL mode; False where somebody else has the file open, or the disk is full.

    patience: seconds to wait for that other one. The file then stays in WAL mode, which loses nothing and
    can be read; the next opening tries again.
    """
    deadline = time.monotonic() + patience
    while True:
        # SQLite never waits for this lock, whatever its busy_timeout.
        with without_waiting(db):
            if db.execute("PRAGMA journal_mode = DELETE").fetchone()[0] == "delete":
                return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)


@contextlib.contextmanager
def without_waiting(db: sqlite3.Connection) -> Iterator[None]:
    """Drop what cannot be done now: somebody else is at work, or the disk is full."""
    db.execute("PRAGMA busy_timeout = 0")
    try:
        yield
    except sqlite3.OperationalError as error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        if not error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", *DISK_FULL)):
            raise
    finally:
        db.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")


@contextlib.contextmanager
def transaction(db: sqlite3.Connection, path: Path) -> Iterator[sqlite3.Connection]:
    """All or nothing; the write lock is taken at once, so that nothing read inside can change."""
    with explained(path):
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
            db.execute("COMMIT")
        except BaseException:
            # A full disk may have rolled back already.
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


@contextlib.contextmanager
def soon(db: sqlite3.Connection) -> Iterator[None]:
    """Commit without waiting for the disk, in WAL mode: the next commit that waits brings this one along.

    The log is one file, written in order, so a power cut may lose the end of it and never what lies before
    (https://www.sqlite.org/pragma.html#pragma_synchronous).
    """
    (full,) = db.execute("SELECT synchronous = 2 FROM pragma_synchronous").fetchone()
    if not full or db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        yield
        return
    db.execute("PRAGMA synchronous = NORMAL")
    try:
        yield
    finally:
        db.execute("PRAGMA synchronous = FULL")


def migrate(db: sqlite3.Connection, path: Path, version: int, known: list[Migration]) -> None:
    """Apply what is missing, each in one transaction; a file that holds something is copied first."""
    if version == len(known):
        return
    if version > 0 and _holds_something(db):
        backup(db, path, version)
    for migration in known[version:]:
        with transaction(db, path):
            if db.execute("PRAGMA user_version").fetchone()[0] >= migration.version:
                continue  # another process was faster
            for statement in statements(migration.sql):
                db.execute(statement)
            db.execute(
                "INSERT INTO migration (version, sha256, applied_at) VALUES (?, ?, ?)",
                (migration.version, migration.sha256, now()),
            )
            db.execute(f"PRAGMA user_version = {migration.version}")


def _holds_something(db: sqlite3.Connection) -> bool:
    """Not where whoever made the file was killed before it had its schema."""
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    return any(
        db.execute(f"SELECT EXISTS (SELECT 1 FROM {name})").fetchone()[0]
        for name in ("_run", "_attempt")
        if name in tables
    )


def statements(sql: str) -> Iterator[str]:
    """Single statements: executescript would commit the transaction that they belong to."""
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if any(line.strip() and not line.lstrip().startswith("--") for line in pending.splitlines()):
        raise ValueError(f"a migration ends inside a statement: {pending.strip()[:60]}")


def backup(db: sqlite3.Connection, path: Path, version: int) -> Path:
    """A copy beside the file, named after its schema; an older copy is never overwritten."""
    number = 1
    while (copy := path.with_name(f"{path.name}.v{version}-{number}.bak")).exists():
        number += 1
    unfinished = copy.with_name(copy.name + ".part")
    try:
        target = sqlite3.connect(unfinished)
        try:
            db.backup(target)
        finally:
            target.close()
        unfinished.replace(copy)
    finally:
        unfinished.unlink(missing_ok=True)
    return copy


def load_file(db: sqlite3.Connection, name: str, file: Path) -> None:
    """Bring a table of published numbers, or of what is known of them, to its file's state, where that changed."""
    columns = [row["name"] for row in db.execute(f"PRAGMA table_info(_{name})")]
    if not columns:
        return  # a schema of before it
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    known = db.execute("SELECT sha256 FROM _loaded WHERE name = ?", (name,)).fetchone()
    if known and known["sha256"] == digest:
        return
    rows = list(csv.DictReader(content.decode().splitlines()))
    with transaction(db, file):
        db.execute(f"DELETE FROM _{name}")
        db.executemany(
            f"INSERT INTO _{name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
            # An empty cell is unknown, not an empty text.
            ([line, *(row[c] or None for c in columns[1:])] for line, row in enumerate(rows, start=2)),
        )
        db.execute("INSERT OR REPLACE INTO _loaded VALUES (?, ?, ?)", (name, digest, now()))
