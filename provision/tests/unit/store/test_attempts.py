"""Attempts at drills: what is stored while they run, how they end, and what a kill or a prune leaves of them."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import lab_attempts
import pytest
from lab_attempts import BROKEN, HEALTHY, RECORD

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.store import attempts, database, prune
from overlaylab.store.attempts import AttemptCycle
from overlaylab.store.store import Store

sys.path.insert(0, str(Path(__file__).parents[2] / "fixtures" / "results"))
import maker


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "lab.sqlite") as opened:
        yield opened


def test_an_attempt_that_was_repaired(store: Store) -> None:
    attempt_id = lab_attempts.repaired(store, trainee="Ann", gameday="20260101T090000Z-0001")
    one = attempts.attempt(store, attempt_id)
    assert (one.state, one.duration, one.score, one.cause) == ("repaired", 240.0, 90, "MTU too small")
    assert (one.hints, one.failed_checks) == (1, 1)
    assert (one.record.trainee, one.record.gameday) == ("Ann", "20260101T090000Z-0001")
    assert one.record.variant == Variant("flannel", "vxlan")
    assert one.ended_at is not None and one.started_at <= one.ended_at
    kinds = [row["kind"] for row in attempts.events(store, attempt_id)]
    assert kinds == ["baseline", "injected", "shown", "ticket", "hint", "check", "check", "repaired"]
    assert attempts.best(store) == {"large-downloads-hang": 90}


def test_what_is_read_is_what_was_given(store: Store) -> None:
    attempt_id = attempts.begin_attempt(store, RECORD)
    assert attempts.attempt(store, attempt_id).record == RECORD
    assert attempts.attempt(store, attempt_id).state == "running"


def test_the_cause_is_told_at_the_end_alone(store: Store) -> None:
    attempt_id = lab_attempts.begin(store)
    (running,) = attempts.attempts(store)
    assert (running.cause, running.score, running.duration, running.ended_at) == (None, None, None, None)
    attempts.end_attempt(store, attempt_id, "given-up", 300.0, {"debrief": "text", "topics": ["ICMP"]})
    last = attempts.events(store, attempt_id)[-1]
    assert (last["kind"], last["t"], json.loads(last["detail"])["topics"]) == ("given-up", 300.0, ["ICMP"])
    ended = attempts.attempt(store, attempt_id)
    assert (ended.state, ended.duration, ended.score) == ("given-up", 300.0, None)
    assert attempts.best(store) == {}


def test_an_attempt_ends_once(store: Store) -> None:
    attempt_id = lab_attempts.begin(store)
    assert (
        attempts.end_attempt(store, attempt_id, "abandoned", 20.0, {"why": "the machine was booted"}) is True
    )
    assert attempts.end_attempt(store, attempt_id, "repaired", 30.0, {}, score=100) is False
    one = attempts.attempt(store, attempt_id)
    assert (one.state, one.duration, one.score) == ("abandoned", None, None)
    assert [row["kind"] for row in attempts.events(store, attempt_id)].count("repaired") == 0
    # What solving showed comes after the end.
    attempts.add_event(store, attempt_id, "solved-step", 40.0, {"node": "node1"})


def test_the_open_attempt_of_a_cluster(store: Store) -> None:
    assert attempts.open_attempt(store, "pair") is None
    ended, other = lab_attempts.repaired(store), lab_attempts.begin(store, cluster="trio")
    assert attempts.open_attempt(store, "pair") is None
    found = attempts.open_attempt(store, "trio")
    assert found is not None and found.attempt_id == other != ended


def test_attempts_at_one_drill_oldest_first(store: Store) -> None:
    first = lab_attempts.begin(store)
    lab_attempts.begin(store, drill="names-take-long")
    second = lab_attempts.repaired(store)
    found = [one.attempt_id for one in attempts.attempts(store, "large-downloads-hang")]
    assert sorted(found) == sorted([first, second])
    assert len(attempts.attempts(store)) == 3


def test_values_by_measure_and_cycle(store: Store) -> None:
    attempt_id = lab_attempts.begin(store)
    rows = store.db.execute(
        "SELECT measure, unit, better, value, reason FROM attempt_value"
        " WHERE attempt_id = ? AND phase = 'broken' AND t = -10",
        (attempt_id,),
    ).fetchall()
    assert {row["measure"]: row["value"] for row in rows} == BROKEN
    told = {row["measure"]: row["reason"] for row in rows if row["reason"]}
    assert told == {"fetched": "timed out after 3 s with 0 bytes"}
    goodput = next(row for row in rows if row["measure"] == "goodput")
    assert (goodput["unit"], goodput["better"]) == ("bit/s", "higher")


def test_what_could_not_be_measured_is_null(store: Store) -> None:
    attempt_id = attempts.begin_attempt(store, RECORD)
    dead = dict.fromkeys(HEALTHY, None) | {"answered": 0.0}
    attempts.add_cycles(
        store, attempt_id, [AttemptCycle(1.0, "node1", "client", "running", dead, {"rtt": "no answer"})]
    )
    rows = {row["measure"]: row for row in store.db.execute("SELECT * FROM attempt_value")}
    assert (rows["rtt"]["value"], rows["rtt"]["reason"]) == (None, "no answer")
    assert rows["answered"]["value"] == 0.0


@pytest.mark.parametrize(("measure", "value"), [("answered", 1.5), ("rtt", -0.1), ("goodput", "fast")])
def test_a_value_that_its_measure_cannot_have_is_refused(store: Store, measure: str, value: object) -> None:
    attempt_id = attempts.begin_attempt(store, RECORD)
    wrong = AttemptCycle(1.0, "node1", "client", "running", HEALTHY | {measure: value})
    with pytest.raises(sqlite3.IntegrityError):
        attempts.add_cycles(store, attempt_id, [lab_attempts.cycle(0.0, "running"), wrong])
    # All or none.
    assert store.db.execute("SELECT count(*) FROM attempt_value").fetchone()[0] == 0


def test_an_end_is_no_event_and_an_event_no_end(store: Store) -> None:
    attempt_id = attempts.begin_attempt(store, RECORD)
    with pytest.raises(ValueError, match="end_attempt"):
        attempts.add_event(store, attempt_id, "repaired", 1.0, {})
    with pytest.raises(ValueError, match="passes or does not"):
        attempts.add_event(store, attempt_id, "check", 1.0, {"probes": []})
    with pytest.raises(ValueError, match="ends repaired"):
        attempts.end_attempt(store, attempt_id, "running", 1.0, {})
    with pytest.raises(sqlite3.IntegrityError):
        attempts.add_event(store, attempt_id, "guess", 1.0, {})
    with pytest.raises(UserError, match="must be the id of an attempt"):
        attempts.attempt(store, "none")


def test_what_is_no_utf_8_is_kept_as_escapes(store: Store) -> None:
    attempt_id = attempts.begin_attempt(store, replace(RECORD, trainee="J\udcf6rg"))
    assert attempts.attempt(store, attempt_id).record.trainee == r"J\udcf6rg"
    attempts.add_event(store, attempt_id, "hint", 1.0, {"text": 'a "\udcff" in it'})
    assert json.loads(attempts.events(store, attempt_id)[0]["detail"]) == {"text": r'a "\udcff" in it'}
    cycle = AttemptCycle(1.0, "node1", "client", "running", HEALTHY, {"page": "\udcff came"})
    attempts.add_cycles(store, attempt_id, [cycle])
    rows = store.db.execute("SELECT reason FROM attempt_value WHERE reason IS NOT NULL").fetchall()
    assert [row["reason"] for row in rows] == [r"\udcff came"]


def test_removing_every_run_leaves_attempts(store: Store) -> None:
    run_id = maker.fill(store)
    attempt_id = lab_attempts.repaired(store)
    prune.remove(store, [run_id])
    assert store.db.execute("SELECT count(*) FROM _trial").fetchone()[0] == 0
    assert attempts.attempt(store, attempt_id).score == 90
    assert len(attempts.events(store, attempt_id)) == 8


def test_a_database_of_before_drills_is_migrated(tmp_path: Path) -> None:
    before, path = tmp_path / "migrations", tmp_path / "lab.sqlite"
    before.mkdir()
    for file in sorted((paths.DB / "migrations").glob("*.sql"))[:8]:
        shutil.copy(file, before)
    database.open_database(path, create=True, migrations_folder=before).close()
    with Store.open(path) as store:
        attempt_id = lab_attempts.repaired(store)
        assert attempts.attempt(store, attempt_id).score == 90
    assert (tmp_path / "lab.sqlite.v8-1.bak").exists()
