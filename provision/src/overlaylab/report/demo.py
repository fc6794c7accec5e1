"""The real recorded results that come with the viewer: kept at the newest schema, and as small as they can be."""

from __future__ import annotations

import gzip
import sqlite3
import tempfile
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.report import comparison
from overlaylab.store import attempts, database
from overlaylab.store.store import Store

DEMO = paths.VIEWER / "demo" / "demo.sqlite.gz"


def unpacked(packed: Path, folder: Path) -> Path:
    """The database that is in `packed`, as a file of that folder."""
    found = folder / packed.stem
    found.write_bytes(gzip.decompress(packed.read_bytes()))
    return found


# Tables that hold a run, each after those it refers to; what is said of it is made anew.
OF_A_RUN = (
    *("_run", "_run_variant", "_node", "_trial", "_output", "_sample", "_trial_summary", "_histogram"),
    *("_evidence", "_profile_check"),
)
OF_AN_ATTEMPT = ("_attempt", "_attempt_event", "_attempt_cycle")


def make_current(packed: Path = DEMO) -> bool:
    """Migrate the database in `packed` and make what is said of its runs anew; whether it was not current before."""
    with tempfile.TemporaryDirectory() as folder:
        file = unpacked(packed, Path(folder))
        with Store.open(file, create=False) as store:
            made = comparison.refresh(store).made
            migrated = list(Path(folder).glob("*.bak"))
            if not made and not migrated:
                return False
            store.db.execute("VACUUM")
        packed.write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))
    return True


def add(results: Path, wanted: str, packed: Path = DEMO) -> None:
    """Copy a finished run, or an attempt at a drill that has ended, of the database `results` into the one in `packed`.

    wanted: its id. UserError where it cannot be.
    """
    with Store.open(results, create=False) as source:
        attempt = next((one for one in attempts.attempts(source) if one.attempt_id == wanted), None)
        # A run says what to do where there is none, or it is not whole.
        state, whole = (attempt.state, attempts.ENDS) if attempt else (source.run(wanted).state, ("done",))
    if state not in whole:
        raise UserError(
            "the demo",
            "shows what has ended",
            seen=f"{wanted} is {state}",
            fix="./task drill:stop" if attempt else "./task lab:resume",
        )
    with tempfile.TemporaryDirectory() as folder:
        file = unpacked(packed, Path(folder))
        with Store.open(file, create=False) as store:
            store.db.execute("ATTACH ? AS source", (str(results),))
            with database.transaction(store.db, store.path) as db:
                _copy(db, wanted, "attempt" if attempt else "run")
            store.db.execute("DETACH source")
            comparison.refresh(store)
            store.db.execute("VACUUM")
        packed.write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))


def _copy(db: sqlite3.Connection, wanted: str, what: str) -> None:
    """The run or the attempt (what) of the attached database `source`, under numbers that are free here."""
    if db.execute(f"SELECT 1 FROM _{what} WHERE {what}_id = ?", (wanted,)).fetchone():
        raise UserError(
            "the demo", f"has each {what} once", seen=f"{wanted} is in it", fix=f"Choose another {what}"
        )
    of_variants = {"run": "_run_variant", "attempt": "_attempt"}[what]
    variant = "overlay, coalesce(mode, ''), encrypted"
    db.execute(
        f"INSERT INTO _variant (overlay, mode, encrypted) SELECT overlay, mode, encrypted FROM source._variant"
        f" WHERE variant_id IN (SELECT variant_id FROM source.{of_variants} WHERE {what}_id = ?)"
        f" AND ({variant}) NOT IN (SELECT {variant} FROM main._variant)",
        (wanted,),
    )
    db.execute(
        "INSERT INTO metric (name, unit, better, description)"
        " SELECT name, unit, better, description FROM source.metric"
        " WHERE name NOT IN (SELECT name FROM main.metric)"
    )
    same = f"SELECT variant_id FROM main._variant WHERE ({variant}) = (SELECT {variant} FROM source._variant AS v WHERE v.variant_id = x.variant_id)"
    # What a tool declares has numbers of its own in each database.
    metric = "SELECT metric_id FROM main.metric WHERE name = (SELECT name FROM source.metric AS m WHERE m.metric_id = x.metric_id)"
    numbers = {"variant_id": f"({same})", "metric_id": f"({metric})"}
    for column, table in {
        "trial_id": "_trial",
        "evidence_id": "_evidence",
        "check_id": "_profile_check",
    }.items():
        free = db.execute(f"SELECT coalesce(max({column}), 0) FROM main.{table}").fetchone()[0]
        numbers[column] = f"x.{column} + {free}"
        if column == "trial_id":
            numbers["after_trial_id"] = f"x.after_trial_id + {free}"
    for table in OF_A_RUN if what == "run" else OF_AN_ATTEMPT:
        columns = [row["name"] for row in db.execute(f"PRAGMA main.table_info({table})")]
        values = ", ".join(numbers.get(column, f"x.{column}") for column in columns)
        own = (
            f"{what}_id = :wanted"
            if f"{what}_id" in columns
            else "trial_id IN (SELECT trial_id FROM source._trial WHERE run_id = :wanted)"
        )
        db.execute(
            f"INSERT INTO main.{table} ({', '.join(columns)}) SELECT {values} FROM source.{table} AS x WHERE {own}",
            {"wanted": wanted},
        )
