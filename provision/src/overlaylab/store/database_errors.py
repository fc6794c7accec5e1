"""What SQLite says about a file or a disk, as errors that a user can act on."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from overlaylab.core.errors import UserError

# ENOSPC is the first; a limit on file size (EFBIG) is reported as a failed write.
DISK_FULL = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE")
# How long to wait for another process's transaction; ours take milliseconds.
BUSY_SECONDS = 10.0


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite says about the file or the disk into a UserError; a mistake in SQL stays one."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(path, error) or error from error


def explain(path: Path, error: sqlite3.Error) -> UserError | None:
    """The UserError for an error whose cause lies outside the program, else None."""
    code = getattr(error, "sqlite_errorname", "")
    if code in DISK_FULL:
        return UserError(
            f"{path}",
            "the disk is full or the file may not grow; what was stored before is intact",
            seen=error,
            fix="Free some space on that disk, then type the command again; ./task lab:resume completes a run.",
        )
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return UserError(
            f"{path}",
            f"another process kept it locked for {BUSY_SECONDS:.0f} s",
            fix="Let that process finish or end it, then type the command again.",
        )
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return UserError(
            f"{path}",
            "must be readable, and it and its folder writable, for what was asked",
            seen=error,
            fix="Correct the permissions, or copy the file (with its -wal, where there is one) "
            "to a folder of yours and set LAB_DB to the copy.",
        )
    if code.startswith("SQLITE_NOTADB"):
        return not_ours(path, "no SQLite file")
    if code.startswith("SQLITE_IOERR") and code != "SQLITE_IOERR_SHORT_READ":
        return UserError(
            f"{path}",
            "the disk could not read or write it",
            seen=error,
            fix="See the kernel's log (dmesg) for that disk, then type the command again.",
        )
    if code.startswith(("SQLITE_CORRUPT", "SQLITE_IOERR")):
        return UserError(
            f"{path}",
            "must be a whole database",
            seen=error,
            fix="It is damaged or cut short: put a copy back, or save what is readable with "
            f"'sqlite3 {path.name} .recover', and set LAB_DB to another file meanwhile.",
        )
    return None


def not_ours(path: Path, seen: str) -> UserError:
    """The error for a file that is something else than a results database."""
    return UserError(
        f"{path}",
        "must be a results database of overlaylab",
        seen=seen,
        fix="Set LAB_DB to the right file, or to a new name to start an empty one.",
    )
