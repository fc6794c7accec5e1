"""The store: what goes in comes out, once, whatever happens in between."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.model import Evidence, ProfileCheck, Sample, Variant
from overlaylab.results import tiers
from overlaylab.store.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "results"
sys.path.insert(0, str(FIXTURES))
import maker  # noqa: E402


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "lab.sqlite") as opened:
        yield opened


def one(store, sql, *arguments):
    return store.db.execute(sql, arguments).fetchone()


def test_a_run_comes_back_as_it_was_planned(store):
    trials = maker.plan()
    run_id = store.begin_run(maker.RUN, trials)
    stored = store.run(run_id)
    assert stored.record == maker.RUN
    assert (stored.state, stored.trials_planned, stored.trials_done) == ("planned", 36, 0)
    assert stored.started_at is None
    assert [trial for _, trial in store.pending_trials(run_id)] == trials


def test_a_run_id_sorts_by_time(store):
    first = store.begin_run(maker.RUN, [])
    assert first[8] == "T" and first[15:17] == "Z-" and len(first) == 21
    assert first[:16] <= store.begin_run(maker.RUN, [])[:16]


def test_two_runs_of_one_second_have_two_ids(store, monkeypatch):
    tails = iter(["00aa", "00aa", "00aa", "00bb"])
    monkeypatch.setattr("overlaylab.store.store.secrets.token_hex", lambda size: next(tails))
    first, second = (store.begin_run(maker.RUN, ()) for _ in range(2))
    assert (first[-4:], second[-4:]) in (("00aa", "00bb"), ("00aa", "00aa")) and first != second


def test_a_run_that_stands_for_no_tier_has_none(store):
    run_id = store.begin_run(replace(maker.RUN, stands_for=None, image=None, zones={}), maker.plan())
    assert store.run(run_id).record.stands_for is None
    assert one(store, "SELECT cloud, instance FROM run")["cloud"] is None


def test_states_stamp_their_times_and_choose_the_journal(store):
    run_id = store.begin_run(maker.RUN, maker.plan())
    assert tiers.latest_unfinished(store, "pair") == run_id
    assert tiers.latest_unfinished(store, "trio") is None
    store.set_run_state(run_id, "running")
    started = store.run(run_id).started_at
    assert one(store, "PRAGMA journal_mode")[0] == "wal"
    assert one(store, "PRAGMA synchronous")[0] == 2  # FULL
    store.set_run_state(run_id, "interrupted")
    assert store.run(run_id).ended_at is not None
    assert one(store, "PRAGMA journal_mode")[0] == "delete"
    store.set_run_state(run_id, "running")
    assert store.run(run_id).started_at == started
    assert store.run(run_id).ended_at is None
    store.set_run_state(run_id, "done")
    assert tiers.latest_unfinished(store, "pair") is None
    assert store.find_run(None) == run_id
    assert [p.name for p in store.path.parent.iterdir()] == ["lab.sqlite"]


def test_a_finished_trial_is_stored_whole(store):
    run_id = maker.fill(store, until=1)
    (trial_id,) = store.trial_ids(run_id, status="ok")
    trial = one(store, "SELECT * FROM trial WHERE trial_id = ?", trial_id)
    assert (trial["status"], trial["reason"], trial["exit_code"]) == ("ok", None, 0)
    assert json.loads(trial["argv"]) == ["iperf3", "--test-data"]
    assert trial["stdout"] == "test data, measured nowhere\n"
    assert json.loads(trial["node_state"])["node1"]["after"] == {"load": 0.9}
    rows = store.db.execute("SELECT * FROM result").fetchall()
    assert [r["metric"] for r in rows] == ["goodput"] * 6 + ["retransmits"]
    assert [r["t_start"] for r in rows] == [0.0, 1.0, 2.0, 3.0, 4.0, None, None]
    assert {
        (r["unit"], r["better"], r["streams"], r["client_zone"]) for r in rows if r["metric"] == "goodput"
    } == {("bit/s", "higher", 1, "a")}
    assert rows[5]["resolution"] == 8.0 and rows[6]["resolution"] is None


def test_no_trial_counts_twice(store):
    run_id = maker.fill(store, until=1)
    (trial_id,) = store.trial_ids(run_id, status="ok")
    with pytest.raises(ValueError, match=f"trial {trial_id} is finished"):
        store.start_trial(trial_id, "2000-01-01T00:00:00Z")
    with pytest.raises(ValueError, match=f"trial {trial_id} is finished"):
        store.finish_trial(trial_id, maker.failed("again"))
    assert one(store, "SELECT status FROM trial WHERE trial_id = ?", trial_id)["status"] == "ok"


def test_a_trial_that_was_left_running_is_taken_again(store):
    run_id = store.begin_run(maker.RUN, maker.plan())
    first, _ = store.pending_trials(run_id)[0]
    store.start_trial(first, "2000-01-01T00:00:00Z")
    assert store.trial_ids(run_id, status="running") == [first]
    assert store.pending_trials(run_id)[0][0] == first
    store.start_trial(first, "2000-01-01T00:01:00Z")
    assert one(store, "SELECT started_at FROM trial WHERE trial_id = ?", first)[0] == "2000-01-01T00:01:00Z"


def test_only_a_mark_does_not_wait_for_the_disk(store):
    store.db.execute("PRAGMA synchronous = FULL")
    run_id = store.begin_run(maker.RUN, maker.plan())
    store.set_run_state(run_id, "running")
    (first, trial), *_ = store.pending_trials(run_id)
    levels = []
    store.db.set_trace_callback(
        lambda sql: (
            levels.append(sql) if "synchronous = " in sql or sql.startswith(("BEGIN", "COMMIT")) else None
        )
    )
    store.start_trial(first, "2000-01-01T00:00:00Z")
    mark, levels[:] = levels[-4:], []
    store.finish_trial(first, maker.result(trial, random.Random(1)))
    result, levels[:] = list(levels), []
    store.db.set_trace_callback(None)
    assert mark == ["PRAGMA synchronous = NORMAL", "BEGIN IMMEDIATE", "COMMIT", "PRAGMA synchronous = FULL"]
    assert result == ["BEGIN IMMEDIATE", "COMMIT"] and one(store, "PRAGMA synchronous")[0] == 2
    with pytest.raises(ValueError, match="is finished"):
        store.start_trial(first, "2000-01-01T00:00:00Z")
    assert one(store, "PRAGMA synchronous")[0] == 2


def test_a_failed_trial_is_a_row_without_a_value(store):
    run_id = store.begin_run(maker.RUN, maker.plan())
    trial_id, trial = store.pending_trials(run_id)[0]
    store.finish_trial(trial_id, replace(maker.failed("no server"), samples=(Sample("goodput", 0.0),)))
    row = one(store, "SELECT * FROM result")
    assert (row["status"], row["reason"], row["metric"], row["value"]) == ("failed", "no server", None, None)
    assert row["overlay"] == trial.variant.overlay
    assert one(store, "SELECT stderr FROM trial WHERE trial_id = ?", trial_id)[0] == "unable to connect\n"
    assert one(store, "SELECT count(*) FROM trial_summary")[0] == 0


def test_void_trials_keep_their_samples_but_have_no_summary(store):
    run_id = maker.fill(store, until=4, results={(1, maker.HOST, "tcp-goodput"): maker.failed("no server")})
    ids = store.trial_ids(run_id)[:4]
    (own,) = store.trial_ids(run_id, status="failed")
    assert store.void_trials(ids, "the profile's goodput was 12 % off") == 3
    assert store.trial_ids(run_id, status="failed") == [own]
    assert store.void_trials(ids, "another reason") == 0
    reasons = {r["reason"] for r in store.db.execute("SELECT reason FROM result WHERE status = 'void'")}
    assert reasons == {"the profile's goodput was 12 % off"}
    assert one(store, "SELECT count(*) FROM trial_summary")[0] == 0
    assert one(store, "SELECT count(*) FROM histogram")[0] == 0
    assert store.run(run_id).trials_done == 4
    with pytest.raises(ValueError, match="needs a reason"):
        store.void_trials(ids, "")


def test_trial_ids_after_a_trial(store):
    run_id = maker.fill(store, until=5)
    ids = store.trial_ids(run_id)
    assert ids == sorted(ids) and len(ids) == 36
    assert store.trial_ids(run_id, status="ok", after=ids[2]) == ids[3:5]


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (Sample("speed", 1.0), "metric speed is none of core.metrics"),
        (Sample("goodput", float("inf")), "goodput must be a finite number, not inf"),
        (Sample("goodput", float("nan")), "goodput must be a finite number, not nan"),
    ],
)
def test_a_sample_that_means_nothing_is_refused_with_the_whole_trial(store, sample, message):
    run_id = store.begin_run(maker.RUN, maker.plan())
    trial_id, trial = store.pending_trials(run_id)[0]
    outcome = replace(maker.result(trial, random.Random(1)), samples=(Sample("goodput", 1.0), sample))
    with pytest.raises(ValueError, match=message):
        store.finish_trial(trial_id, outcome)
    assert store.trial_ids(run_id, status="planned")[0] == trial_id
    assert one(store, "SELECT count(*) FROM _sample")[0] == 0
    assert one(store, "SELECT count(*) FROM _output")[0] == 0


@pytest.mark.parametrize("change", [{"t_start": 1.0}, {"quantile": 1.0}, {"t_start": 2.0, "t_end": 1.0}])
def test_the_schema_refuses_what_has_no_meaning(store, change):
    run_id = store.begin_run(maker.RUN, maker.plan())
    trial_id, trial = store.pending_trials(run_id)[0]
    sample = Sample("goodput", 1.0, **change)
    with pytest.raises(sqlite3.IntegrityError):
        store.finish_trial(trial_id, replace(maker.result(trial, random.Random(1)), samples=(sample,)))


def test_output_that_is_no_utf8_is_kept_readable(store):
    run_id = store.begin_run(maker.RUN, maker.plan())
    trial_id, trial = store.pending_trials(run_id)[0]
    raw = b"caf\xe9\n".decode("utf-8", "surrogateescape")
    store.finish_trial(trial_id, replace(maker.result(trial, random.Random(1)), stdout=raw))
    assert one(store, "SELECT stdout FROM trial WHERE trial_id = ?", trial_id)[0] == "caf\\udce9\n"


def test_evidence_and_checks_name_what_they_belong_to(store):
    run_id = maker.fill(store, until=3)
    ids = store.trial_ids(run_id, status="ok")
    proof = Evidence("node2", "mtu", "converge", False, {"mtu": 1376}, {"mtu": 1300}, "lower")
    store.add_evidence(run_id, None, maker.FASTDP_ENCRYPTED, proof)
    row = one(store, "SELECT * FROM evidence ORDER BY evidence_id DESC LIMIT 1")
    assert (row["trial_id"], row["overlay"], row["mode"], row["encrypted"]) == (None, "weave", "fastdp", 1)
    assert (row["kind"], row["phase"], row["ok"], row["reason"]) == ("mtu", "converge", 0, "lower")
    assert json.loads(row["observed"]) == {"mtu": 1300}
    check = ProfileCheck("goodput", "node1", "node2", 95.6e6, 84e6, 0.01, "bit/s", "fail", "busy host")
    store.add_profile_check(run_id, check)
    row = one(store, "SELECT * FROM profile_check ORDER BY check_id DESC LIMIT 1")
    assert (row["after_trial_id"], row["verdict"], row["measured"]) == (ids[-1], "fail", 84e6)
    assert one(store, "SELECT after_trial_id FROM profile_check WHERE check_id = 1")[0] is None


def test_one_variant_is_one_row_for_all_runs(store):
    for _ in range(2):
        store.begin_run(replace(maker.RUN, variants=(maker.HOST, Variant("host"))[:1]), maker.plan())
    assert one(store, "SELECT count(*) FROM _variant")[0] == 3


def test_an_unknown_run_is_a_users_mistake(store):
    with pytest.raises(
        UserError, match=r"run: must be the id of a run in it \(found: x\). See ./task results:list."
    ):
        store.run("x")


def test_the_newest_results_are_seen_by_a_reader_while_a_run_writes(store):
    run_id = maker.fill(store, until=2)
    with Store.open(store.path, create=False) as reader:
        assert reader.run(run_id).trials_done == 2
    assert one(store, "PRAGMA journal_mode")[0] == "wal"
    trial_id, trial = store.pending_trials(run_id)[0]
    store.finish_trial(trial_id, maker.result(trial, random.Random(1)))
    assert store.run(run_id).trials_done == 3


def test_killed_at_any_moment_it_opens_and_holds_every_finished_trial(tmp_path):
    path, chance, acknowledged = tmp_path / "lab.sqlite", random.Random(20), set()
    environment = {**os.environ, "PYTHONPATH": str(paths.PROVISION / "src")}
    for round_ in range(12):
        writer = subprocess.Popen(
            [sys.executable, str(FIXTURES / "maker.py"), "write", str(path)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        # The first rounds are killed while the file and the plan come into being, the others somewhere
        # within the trial that follows some stored ones.
        lines = [writer.stdout.readline() for _ in range(0 if round_ < 2 else chance.randrange(1, 6))]
        time.sleep(chance.uniform(0.05, 0.15) if round_ < 2 else chance.uniform(0.0, 0.008))
        writer.send_signal(signal.SIGKILL)
        lines += writer.stdout.read().splitlines()
        writer.wait()
        writer.stdout.close()
        assert writer.returncode == -signal.SIGKILL
        acknowledged |= {int(line) for line in lines if line.strip().isdigit()}
        with Store.open(path) as store:
            assert one(store, "PRAGMA integrity_check")[0] == "ok"
            assert store.db.execute("PRAGMA foreign_key_check").fetchall() == []
            run_id = store.db.execute("SELECT max(run_id) FROM _run").fetchone()[0]
            done = set() if run_id is None else set(store.trial_ids(run_id, status="ok"))
            assert acknowledged <= done
            # At most the one trial that was stored but not yet printed.
            assert len(done - acknowledged) <= round_ + 1
            complete = store.db.execute(
                "SELECT trial_id FROM trial JOIN trial_summary USING (trial_id) WHERE stdout IS NOT NULL"
                " AND (metric = 'latency_one_way' OR metric = 'goodput' AND n = 60)"
            )
            assert {row["trial_id"] for row in complete} == done
        assert [p.name for p in tmp_path.iterdir()] == ["lab.sqlite"]
    assert len(acknowledged) >= 10


FULL_DISK = """
import resource, sys
import maker
from overlaylab.core.errors import UserError
from overlaylab.store.store import Store
store = Store.open(sys.argv[1])
run_id = maker.fill(store, until=2)
size = store.path.stat().st_size + store.path.with_name(store.path.name + "-wal").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100_000, size + 100_000))
import random
try:
    for trial_id, trial in store.pending_trials(run_id):
        store.start_trial(trial_id, "2000-01-01T00:00:00Z")
        store.finish_trial(trial_id, maker.result(trial, random.Random(1), seconds=1000))
        print(trial_id)
except UserError as error:
    print(error)
store.close()
with Store.open(sys.argv[1], create=False) as reader:
    print(len(reader.trial_ids(run_id, status="ok")))
"""


def test_a_full_disk_is_said_so_and_loses_nothing(tmp_path):
    path = tmp_path / "lab.sqlite"
    writer = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{paths.PROVISION / 'src'}:{FIXTURES}"},
        check=True,
    )
    *stored, message, readable = writer.stdout.splitlines()
    assert message.startswith(
        f"{path}: the disk is full or the file may not grow; what was stored before is intact"
    )
    assert int(readable) == 2 + len(stored)
    with Store.open(path) as store:
        assert one(store, "PRAGMA integrity_check")[0] == "ok"
        run_id = store.find_run(None)
        assert store.trial_ids(run_id, status="ok") == [1, 2, *map(int, stored)]
        # There is room again: the run goes on.
        trial_id, trial = store.pending_trials(run_id)[0]
        store.finish_trial(trial_id, maker.result(trial, random.Random(1)))


def test_a_database_that_may_not_grow_refuses_the_trial_and_stays_usable(store):
    run_id = maker.fill(store, until=2)
    pages = one(store, "PRAGMA page_count")[0]
    store.db.execute(f"PRAGMA max_page_count = {pages}")
    trial_id, trial = store.pending_trials(run_id)[0]
    with pytest.raises(UserError, match="the disk is full"):
        store.finish_trial(trial_id, maker.result(trial, random.Random(1), seconds=5000))
    assert store.trial_ids(run_id, status="ok") == store.trial_ids(run_id)[:2]
    store.db.execute("PRAGMA max_page_count = 1000000")
    store.finish_trial(trial_id, maker.result(trial, random.Random(1)))
    assert len(store.trial_ids(run_id, status="ok")) == 3
