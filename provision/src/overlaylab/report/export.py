"""The view ``result`` as a file for other programs: CSV or JSON."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.store.database_errors import explained
from overlaylab.store.store import Store

# What makes a spreadsheet run a cell (https://owasp.org/www-community/attacks/CSV_Injection), also behind white space
# and control characters, which one may drop. As in viewer/src/renderer/csv.ts.
FORMULA = re.compile(r"[\t\r\n]|[\s\x00-\x1f\x7f-\x9f\ufeff]*[=+\-@]")


def export(store: Store, kind: str, out: str, run_id: str | None = None) -> int:
    """Write all rows of the view, or a run's, to the file out (``-``: standard output); returns how many.

    kind: ``csv`` (a missing value is an empty cell) or ``json`` (an array of objects, null where missing).
    Raises UserError where out exists already or cannot be written.
    """
    where = "" if run_id is None else " WHERE run_id = ?"
    order = " ORDER BY run_id, trial_id"
    with explained(store.path), new_file(out) as stream:
        rows = store.db.execute(f"SELECT * FROM result{where}{order}", () if run_id is None else (run_id,))
        return WRITERS[kind](rows, stream)


def _csv(rows: sqlite3.Cursor, stream: TextIO) -> int:
    writer = csv.writer(stream)
    writer.writerow(column[0] for column in rows.description)
    count = 0
    for row in rows:
        writer.writerow(["" if v is None else harmless(v) for v in row])
        count += 1
    return count


def harmless(value: object) -> object:
    """A text that a spreadsheet would take for a formula gets a quote before it; numbers stay as they are."""
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def _json(rows: sqlite3.Cursor, stream: TextIO) -> int:
    count = 0
    for row in rows:
        stream.write(",\n" if count else "[\n")
        record = dict(row)
        record["parameters"] = json.loads(record["parameters"])
        json.dump(record, stream, ensure_ascii=False)
        count += 1
    stream.write("\n]\n" if count else "[]\n")
    return count


WRITERS: dict[str, Callable[[sqlite3.Cursor, TextIO], int]] = {"csv": _csv, "json": _json}


@contextlib.contextmanager
def new_file(out: str) -> Iterator[TextIO]:
    """Standard output (``-``), or a new file that is there only once it is whole. Raises UserError."""
    if out == "-":
        yield sys.stdout
        return
    path = paths.typed(out)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists():  # it may be the database itself
            raise UserError(
                f"OUT: {path}", "must not exist yet", fix="Name another file, or remove it first."
            )
        with unfinished.open("x", encoding="utf-8", newline="") as stream:
            yield stream
        unfinished.rename(path)
    except OSError as error:
        raise UserError(
            f"OUT: {path}",
            "must be a file that can be written",
            seen=error.strerror,
            fix="Name another file.",
        ) from None
    finally:
        unfinished.unlink(missing_ok=True)
