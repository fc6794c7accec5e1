"""Removing runs: what is said before, what goes, and that nothing else does."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from overlaylab.cli.main import cli
from overlaylab.core import lock
from overlaylab.core.errors import UserError
from overlaylab.store import prune
from overlaylab.store.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "results"
sys.path.insert(0, str(FIXTURES))
import maker  # noqa: E402

ONE = replace(maker.RUN, blocks=1)


@pytest.fixture
def store(tmp_path, own_cache, monkeypatch):
    monkeypatch.setenv("LAB_DB", str(tmp_path / "lab.sqlite"))
    with Store.open(tmp_path / "lab.sqlite") as opened:
        opened.db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        yield opened


def runs(store):
    return [row[0] for row in store.db.execute("SELECT run_id FROM _run ORDER BY created_at, run_id")]


def rows(store):
    tables = [row[0] for row in store.db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {table: store.db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}


def aged(store, run_id, created_at):
    store.db.execute("UPDATE _run SET created_at = ? WHERE run_id = ?", (created_at, run_id))


def call(*arguments, **options):
    done = CliRunner().invoke(cli, ["results", "prune", *arguments], **options)
    if isinstance(done.exception, UserError):
        raise done.exception
    return done


def test_what_is_removed_is_gone_everywhere_and_nothing_else(store):
    first = maker.fill(store, ONE)
    before, integrity = rows(store), "PRAGMA integrity_check"
    second = maker.fill(store, replace(maker.RUN, blocks=40))
    size = store.path.stat().st_size
    removal, why = prune.remove(store, [second])
    assert (removal.runs, removal.trials, removal.samples, why) == ((second,), 240, 960, None)
    assert runs(store) == [first] and rows(store) == before
    assert store.db.execute(integrity).fetchone()[0] == "ok"
    assert store.db.execute("PRAGMA foreign_key_check").fetchall() == []
    assert store.db.execute("PRAGMA foreign_keys").fetchone()[0] == 1
    # The file is smaller by what was said, but for how full its pages are packed anew.
    assert size - store.path.stat().st_size == pytest.approx(removal.freed, rel=0.2)


def test_a_preview_says_the_same_and_removes_nothing(store):
    run_id = maker.fill(store)
    before = rows(store)
    planned = prune.preview(store, [run_id])
    assert rows(store) == before and planned.freed > 20_000
    assert prune.remove(store, [run_id])[0] == planned


def test_every_table_that_belongs_to_a_run_is_known(store):
    maker.fill(store, ONE)
    store.db.execute("CREATE TABLE _later (trial_id INTEGER REFERENCES _trial, more TEXT) STRICT")
    store.db.execute("INSERT INTO _later SELECT trial_id, 'x' FROM _trial")
    prune.remove(store, runs(store))
    left = {table: count for table, count in rows(store).items() if count}
    published = {"_published", "_published_flaw", "_published_precision"}
    assert set(left) == {"migration", "_loaded", "metric", "measure", "_variant", *published}


def test_what_would_break_is_not_begun(store):
    maker.fill(store, ONE)
    store.db.execute("CREATE TABLE _odd (which INTEGER REFERENCES _trial) STRICT")
    store.db.execute("INSERT INTO _odd SELECT min(trial_id) FROM _trial")
    before = rows(store)
    with pytest.raises(AssertionError, match="rows of _odd would refer to nothing"):
        prune.remove(store, runs(store))
    assert rows(store) == before and store.db.execute("PRAGMA foreign_keys").fetchone()[0] == 1


def test_which_runs_are_meant(store):
    ids = [maker.fill(store, ONE) for _ in range(4)]
    for run_id, day in zip(ids, ("2020-01-01", "2020-01-02", "2020-01-03"), strict=False):
        aged(store, run_id, f"{day}T00:00:00.000Z")
    oldest, older, old, new = ids
    store.set_run_state(older, "running")
    assert prune.choose(store, [], 1, None) == [old, oldest]
    assert prune.choose(store, [], 3, None) == [oldest]
    assert prune.choose(store, [], 0, None) == [new, old, oldest]
    assert prune.choose(store, [], None, 1) == [old, oldest]
    assert prune.choose(store, [], 3, 1) == [oldest]
    assert prune.choose(store, [older, older[-4:]], None, None) == [older]
    with pytest.raises(UserError, match=r"results:prune: must be told which runs to remove. RUN=id"):
        prune.choose(store, [], None, None)


@pytest.mark.parametrize(
    ("older", "seen"), [("nan", "nan"), ("1e30", "1e+30"), ("1e7", "1e+07"), ("-1", "-1"), ("inf", "inf")]
)
def test_an_age_that_is_none_is_refused(store, older, seen):
    run_id = maker.fill(store, ONE)
    with pytest.raises(UserError) as wrong:
        call("--older", older, "--yes")
    assert (wrong.value.where, wrong.value.rule) == ("OLDER", "must lie between 0 and 36500 days")
    assert wrong.value.seen == seen and runs(store) == [run_id]
    assert "nothing to remove" in call("--older", "36500", "--yes").stderr


def test_a_run_that_is_being_measured_stays(store):
    run_id = maker.fill(store, ONE, until=1)
    with lock.cluster_lock("pair", "measuring weave"), pytest.raises(UserError, match="measuring weave"):
        call("--run", run_id, "--yes")
    assert runs(store) == [run_id]
    assert "removed" in call("--run", run_id, "--yes").stderr
    assert runs(store) == []


def test_it_asks_and_takes_no_for_an_answer(store):
    run_id = maker.fill(store)
    refused = call("--run", run_id, input="n\n")
    assert refused.exit_code == 1 and runs(store) == [run_id]
    assert "Remove it for good?" in refused.stderr and "nothing was removed" in refused.stderr
    assert run_id in refused.stderr and re.search(
        r"1 run with 36 trials and 144 samples; without it the file is \d+(\.\d+)? kB smaller", refused.stderr
    )
    with pytest.raises(UserError, match=r"nobody to ask. YES=1 removes without a question"):
        call("--run", run_id, input="")
    assert runs(store) == [run_id]
    assert call("--run", run_id, "--dry-run").exit_code == 0 and runs(store) == [run_id]
    assert "nothing to remove" in call("--keep", "1").stderr
    assert call("--run", run_id, input="y\n").exit_code == 0 and runs(store) == []
