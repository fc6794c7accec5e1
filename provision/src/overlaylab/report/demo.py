"""The real recorded results that come with the viewer: kept at the newest schema, and as small as they can be."""

from __future__ import annotations

import gzip
import sqlite3
import tempfile
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.report import comparison
from overlaylab.store import database
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


def add_run(results: Path, run_id: str, packed: Path = DEMO) -> None:
    """Copy a finished run of the database `results` into the one in `packed`. UserError where it cannot be."""
    with tempfile.TemporaryDirectory() as folder:
        file = unpacked(packed, Path(folder))
        with Store.open(results, create=False) as source:
            run = source.run(run_id)  # says what to do where there is none, or it is not whole
            if run.state != "done":
                raise UserError(
                    "the demo",
                    "shows finished runs",
                    seen=f"{run_id} is {run.state}",
                    fix="./task lab:resume",
                )
        with Store.open(file, create=False) as store:
            store.db.execute("ATTACH ? AS source", (str(results),))
            with database.transaction(store.db, store.path) as db:
                _copy(db, run_id)
            store.db.execute("DETACH source")
            comparison.refresh(store)
            store.db.execute("VACUUM")
        packed.write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))


def _copy(db: sqlite3.Connection, run_id: str) -> None:
    """The run of the attached database `source`, under numbers that are free here."""
    if db.execute("SELECT 1 FROM _run WHERE run_id = ?", (run_id,)).fetchone():
        raise UserError("the demo", "has each run once", seen=f"{run_id} is in it", fix="Choose another run")
    variant = "overlay, coalesce(mode, ''), encrypted"
    db.execute(
        f"INSERT INTO _variant (overlay, mode, encrypted) SELECT overlay, mode, encrypted FROM source._variant"
        f" WHERE variant_id IN (SELECT variant_id FROM source._run_variant WHERE run_id = ?)"
        f" AND ({variant}) NOT IN (SELECT {variant} FROM main._variant)",
        (run_id,),
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
    for table in OF_A_RUN:
        columns = [row["name"] for row in db.execute(f"PRAGMA main.table_info({table})")]
        values = ", ".join(numbers.get(column, f"x.{column}") for column in columns)
        own = (
            "run_id = :run"
            if "run_id" in columns
            else "trial_id IN (SELECT trial_id FROM source._trial WHERE run_id = :run)"
        )
        db.execute(
            f"INSERT INTO main.{table} ({', '.join(columns)}) SELECT {values} FROM source.{table} AS x WHERE {own}",
            {"run": run_id},
        )
