"""The file: recognised, migrated, healed or refused with a sentence that helps; and its documentation."""

import contextlib
import csv
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import lab_attempts
import pytest

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.model import ProfileCheck
from overlaylab.report import comparison
from overlaylab.store import database, rows
from overlaylab.store.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "results"
sys.path.insert(0, str(FIXTURES))
import maker  # noqa: E402

README = (paths.DB / "README.md").read_text()
NEWEST = len(database.migrations())


def filled(path):
    with Store.open(path) as store:
        maker.fill(store, until=3)
    return path


# Refusals


def not_a_database(path):
    path.write_text("run,trial,value\n" * 100)


def truncated(path):
    whole = filled(path).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def newer(path):
    db = sqlite3.connect(filled(path))
    db.execute(f"PRAGMA user_version = {NEWEST + 1}")
    db.close()


def folder(path):
    path.mkdir()


def fifo(path):
    os.mkfifo(path)


def of_another_program(path):
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE bookmarks (url)")
    db.close()


def of_another_checkout(path):
    db = sqlite3.connect(filled(path))
    db.execute("UPDATE migration SET sha256 = ? WHERE version = 1", ("0" * 64,))
    db.commit()
    db.close()


BAD = [not_a_database, truncated, newer, folder, fifo, of_another_program, of_another_checkout]


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_database_is_refused_and_left_alone(tmp_path, golden, bad, create):
    path = tmp_path / "lab.sqlite"
    bad(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(UserError) as refused:
        Store.open(path, create=create)
    golden(
        FIXTURES / f"error-{bad.__name__.replace('_', '-')}.txt",
        str(refused.value).replace(str(path), "lab.sqlite") + "\n",
    )
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.parametrize("made", [lambda path: None, lambda path: path.touch()], ids=["missing", "empty"])
def test_reading_makes_no_database(tmp_path, golden, made):
    path = tmp_path / "lab.sqlite"
    made(path)
    with pytest.raises(UserError) as refused:
        Store.open(path, create=False)
    name = "missing" if not path.exists() else "empty"
    golden(FIXTURES / f"error-{name}.txt", str(refused.value).replace(str(path), "lab.sqlite") + "\n")
    assert not path.exists() or path.stat().st_size == 0


def test_a_folder_that_cannot_be_made_is_named(tmp_path, golden):
    (tmp_path / "results").write_text("a file where the folder should be")
    with pytest.raises(UserError) as refused:
        Store.open(tmp_path / "results" / "lab.sqlite")
    golden(FIXTURES / "error-no-folder.txt", str(refused.value).replace(str(tmp_path) + "/", "") + "\n")


READ_ONLY = """
import sys
from pathlib import Path
from overlaylab.core.errors import UserError
from overlaylab.store.store import Store
for name, create in [("plain", True), ("plain", False), ("none", True), ("old", False), ("wal", False)]:
    path = Path(sys.argv[1]) / name / "lab.sqlite"
    try:
        with Store.open(path, create=create) as store:
            print(f"{name}, create={create}: opened, {len(store.trial_ids(store.find_run(None), 'ok'))} trials")
    except UserError as error:
        print(f"{name}, create={create}: {error}".replace(str(path), "lab.sqlite").replace(str(path.parent), "."))
"""


def test_a_read_only_folder(tmp_path, golden):
    for name in ("plain", "none", "old", "wal"):
        (tmp_path / name).mkdir()
    filled(tmp_path / "plain" / "lab.sqlite")
    connection = database.open_database(
        tmp_path / "old" / "lab.sqlite", create=True, migrations_folder=first_migrations(tmp_path, 1)
    )
    connection.close()
    with Store.open(tmp_path / "work.sqlite") as store:
        maker.fill(store, until=3)
        for end in ("", "-wal"):
            shutil.copy(tmp_path / f"work.sqlite{end}", tmp_path / "wal" / f"lab.sqlite{end}")
    for name in ("plain", "none", "old", "wal"):
        (tmp_path / name).chmod(0o555)
    # root may write anywhere, so it goes without that capability here.
    as_others = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.getuid() == 0 else []
    said = subprocess.run(
        [*as_others, sys.executable, "-c", READ_ONLY, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(paths.PROVISION / "src")},
    ).stdout
    for name in ("plain", "none", "old", "wal"):
        (tmp_path / name).chmod(0o755)
    golden(FIXTURES / "error-read-only-folder.txt", said)


# Migrations


def first_migrations(tmp_path, count):
    """A folder with the first migrations only, as an older checkout has it."""
    target = tmp_path / f"migrations-{count}"
    target.mkdir()
    for migration in database.migrations()[:count]:
        shutil.copy(database.MIGRATIONS / migration.name, target)
    return target


def version(db):
    return db.execute("PRAGMA user_version").fetchone()[0]


def test_a_new_file_has_the_newest_schema_and_says_what_made_it(tmp_path):
    with Store.open(tmp_path / "deep" / "er" / "lab.sqlite") as store:
        assert version(store.db) == NEWEST
        assert store.db.execute("PRAGMA application_id").fetchone()[0] == database.APPLICATION_ID
        applied = [tuple(row) for row in store.db.execute("SELECT version, sha256 FROM migration")]
        assert applied == [(m.version, m.sha256) for m in database.migrations()]
        assert store.db.execute("SELECT version FROM view_version").fetchone()[0] == 1
        tables = store.db.execute(
            "SELECT name, strict FROM pragma_table_list WHERE type = 'table' AND schema = 'main'"
        )
        assert {row["name"] for row in tables if not row["strict"]} == {"sqlite_schema"}


def test_an_older_file_is_copied_then_migrated(tmp_path):
    path = filled(tmp_path / "lab.sqlite")
    folder = first_migrations(tmp_path, NEWEST)
    number = NEWEST + 1
    (folder / f"{number:04}_more.sql").write_text(
        "ALTER TABLE _run ADD COLUMN comment TEXT;\n-- why; not\nUPDATE _run SET comment = 'a;b';\n"
    )
    for _ in range(2):
        db = database.open_database(path, create=False, migrations_folder=folder)
        assert version(db) == number
        assert db.execute("SELECT comment FROM _run").fetchone()[0] == "a;b"
        assert db.execute("SELECT count(*) FROM trial WHERE status = 'ok'").fetchone()[0] == 3
        db.close()
    copy = sqlite3.connect(tmp_path / f"lab.sqlite.v{NEWEST}-1.bak")
    assert version(copy) == NEWEST
    assert copy.execute("SELECT count(*) FROM trial WHERE status = 'ok'").fetchone()[0] == 3
    copy.close()
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == [
        "lab.sqlite",
        f"lab.sqlite.v{NEWEST}-1.bak",
    ]


def test_a_file_whose_making_was_cut_off_is_completed_without_a_copy(tmp_path):
    path = tmp_path / "lab.sqlite"
    database.open_database(path, create=True, migrations_folder=first_migrations(tmp_path, 4)).close()
    db = database.open_database(path, create=True)
    assert version(db) == NEWEST
    db.close()
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["lab.sqlite"]


def test_an_older_files_checks_have_no_interval_and_its_runs_no_version(tmp_path, monkeypatch):
    path = tmp_path / "lab.sqlite"
    old = database.open_database(path, create=True, migrations_folder=first_migrations(tmp_path, 2))
    with Store(old, path) as store, monkeypatch.context() as of_then:
        of_then.setattr(
            rows,
            "SAME_NAME",
            [name for name in rows.SAME_NAME if name not in ("lab_version", "system", "kit")],
        )
        run_id = store.begin_run(maker.RUN, ())
        store.db.execute(
            "INSERT INTO _profile_check (run_id, recorded_at, name, client_node, server_node, unit, verdict)"
            " VALUES (?, 'then', 'goodput', 'node1', 'node2', 'bit/s', 'pass')",
            (run_id,),
        )
    with Store.open(path) as store:
        store.add_profile_check(
            run_id,
            ProfileCheck("loss", "node1", "node2", 0.01, 0.011, None, "ratio", "pass", None, 0.009, 0.012),
        )
        checks = store.db.execute("SELECT name, low, high FROM profile_check ORDER BY check_id")
        assert [tuple(row) for row in checks] == [("goodput", None, None), ("loss", 0.009, 0.012)]
        new = store.begin_run(maker.RUN, ())
        kept = [store.run(one).record.lab_version for one in (run_id, new)]
        assert kept == [None, "0.1.0+a9ab47058231"]
        records = [store.run(one).record for one in (run_id, new)]
        assert [(one.system, one.kit) for one in records] == [(None, None), ("debian", "k" * 64)]


def test_a_migration_is_applied_whole_or_not_at_all(tmp_path):
    path = filled(tmp_path / "lab.sqlite")
    folder = first_migrations(tmp_path, NEWEST)
    (folder / f"{NEWEST + 1:04}_bad.sql").write_text(
        "CREATE TABLE half (x);\nINSERT INTO nowhere VALUES (1);\n"
    )
    with pytest.raises(sqlite3.OperationalError, match="no such table: nowhere"):
        database.open_database(path, create=False, migrations_folder=folder)
    with Store.open(path) as store:
        assert version(store.db) == NEWEST
        assert store.db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").fetchone()[0] == 0


def test_a_file_whose_making_was_killed_is_completed(tmp_path):
    path = tmp_path / "lab.sqlite"
    db = sqlite3.connect(path, isolation_level=None)
    db.row_factory = sqlite3.Row
    database.migrate(db, path, 0, database.migrations()[:1])
    db.close()
    with Store.open(path) as store:
        assert version(store.db) == NEWEST


def test_migrations_have_no_gap(tmp_path):
    (tmp_path / "0001_a.sql").touch()
    (tmp_path / "0003_b.sql").touch()
    with pytest.raises(ValueError, match="without a gap"):
        database.migrations(tmp_path)


def test_the_way_back_to_one_plain_file_waits_for_a_reader(tmp_path, monkeypatch):
    path = filled(tmp_path / "lab.sqlite")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        reader = sqlite3.connect(path)
        reader.execute("SELECT count(*) FROM run").fetchone()
        assert database.to_plain_file(db, patience=0) is False
        monkeypatch.setattr(database.time, "sleep", lambda seconds: reader.close())
        assert database.to_plain_file(db, patience=60) is True
    assert [each.name for each in tmp_path.iterdir()] == ["lab.sqlite"]


def test_a_file_left_in_wal_mode_is_healed_on_opening(tmp_path):
    with Store.open(tmp_path / "work.sqlite") as store:
        maker.fill(store, until=3)
        for end in ("", "-wal"):
            shutil.copy(tmp_path / f"work.sqlite{end}", tmp_path / f"lab.sqlite{end}")
    with Store.open(tmp_path / "lab.sqlite", create=False) as store:
        assert store.db.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
        assert len(store.trial_ids(store.find_run(None), status="ok")) == 3
    assert [p.name for p in tmp_path.glob("lab.sqlite*")] == ["lab.sqlite"]


def test_a_journal_that_nobody_needs_is_taken_away(tmp_path):
    path = filled(tmp_path / "lab.sqlite")
    journal = tmp_path / "lab.sqlite-journal"
    journal.write_bytes(bytes(512))  # as a kill before the first page leaves it
    with Store.open(path, create=False) as store:
        assert len(store.trial_ids(store.find_run(None), status="ok")) == 3
    assert not journal.exists()


# Published numbers and metrics


def test_published_is_the_file_with_empty_cells_missing(tmp_path):
    with Store.open(tmp_path / "lab.sqlite") as store:
        rows = [dict(row) for row in store.db.execute("SELECT * FROM published")]
        units = {r["name"]: r["unit"] for r in store.db.execute("SELECT name, unit FROM metric")}
    with database.PUBLISHED.open(newline="") as file:
        expected = list(csv.DictReader(file))
    assert len(rows) == 74
    assert list(rows[0]) == list(expected[0])
    numbers = {"overlay_mtu_bytes": int, "repetition": int, "value": float}
    for row, line in zip(rows, expected, strict=True):
        assert row == {k: numbers.get(k, str)(v) if v else None for k, v in line.items()}
        assert row["metric"] == "documented_cap" or units[row["metric"]] == row["unit"]


@pytest.mark.parametrize(("view", "file"), database.BESIDE_PUBLISHED.items())
def test_what_is_known_of_published_figures_is_its_file(tmp_path, view, file):
    with Store.open(tmp_path / "lab.sqlite") as store:
        rows = [dict(row) for row in store.db.execute(f"SELECT * FROM {view}")]
    with (paths.DB / file).open(newline="") as stream:
        expected = list(csv.DictReader(stream))
    numbers = {"unit_size": float, "digits": int, "step": float}
    assert rows == [{k: numbers.get(k, str)(v) if v else None for k, v in line.items()} for line in expected]
    assert len(rows) == {"published_flaw": 9, "published_precision": 4}[view]


def test_published_is_loaded_again_when_the_file_changes(tmp_path):
    path, file = tmp_path / "lab.sqlite", tmp_path / "published.csv"
    lines = database.PUBLISHED.read_text().splitlines()
    for keep in (3, 2):
        file.write_text("\n".join(lines[:keep]) + "\n")
        db = database.open_database(path, create=True, published=file)
        assert db.execute("SELECT count(*) FROM published").fetchone()[0] == keep - 1
        db.close()


def test_every_metric_that_a_parser_gives_has_a_unit(tmp_path):
    given = set()
    for parser in (paths.PROVISION / "src" / "overlaylab" / "tools" / "parsers").glob("*.py"):
        given |= set(re.findall(r'Sample\(\s*"(\w+)"', parser.read_text()))
    with Store.open(tmp_path / "lab.sqlite") as store:
        known = {row["name"] for row in store.db.execute("SELECT name FROM metric")}
    assert given <= known and "goodput" in given


# Documentation


def documented():
    """{view: [(column, type)]} from the README's tables."""
    found = {}
    for title, body in re.findall(r"^### `(\w+)`\n(.*?)(?=^##)", README, re.M | re.S):
        cells = [
            [c.strip() for c in line.split("|")[1:-1]] for line in body.splitlines() if line.startswith("| ")
        ]
        assert cells[0] == ["column", "type", "unit", "meaning"], title
        assert all(len(row) == 4 and row[3] for row in cells), title
        found[title] = [(name, row[1]) for row in cells[1:] for name in row[0].split(", ")]
    return found


def test_the_readme_documents_every_column_of_every_public_view(tmp_path):
    with Store.open(tmp_path / "lab.sqlite") as store:
        maker.fill(store)
        comparison.refresh(store)
        lab_attempts.repaired(store, trainee="Ann")
        views = [r["name"] for r in store.db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'")]
        real = {name: columns(store.db, name) for name in [*views, "metric", "measure"]}
    assert documented() == real


def columns(db, view):
    """[(name, type)]; SQLite declares no type for an expression, so that one's is read from its values."""
    found = []
    for column in db.execute(f"PRAGMA table_info({view})").fetchall():
        kind = column["type"]
        if not kind:
            seen = db.execute(
                f"SELECT DISTINCT upper(typeof({column['name']})) AS kind FROM {view}"
            ).fetchall()
            (kind,) = {row["kind"] for row in seen} - {"NULL"}
        found.append((column["name"], kind))
    return found


def test_the_readme_names_every_table(tmp_path):
    with Store.open(tmp_path / "lab.sqlite") as store:
        tables = {r["name"] for r in store.db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert {t for t in tables if f"`{t}`" not in README} == set()


def test_the_readmes_queries_run_and_find_something(tmp_path):
    queries = re.findall(r"```sql\n(.*?)```", README, re.S)
    assert len(queries) == 8
    with Store.open(tmp_path / "lab.sqlite") as store:
        run_id = maker.fill(store, results={(1, maker.HOST, "tcp-goodput"): maker.failed("no server")})
        comparison.refresh(store)
        lab_attempts.repaired(store)
        first = store.trial_ids(run_id)[0]
        for query in queries:
            rows = store.db.execute(query.replace("trial_id = 1", f"trial_id = {first}")).fetchall()
            assert rows, query
