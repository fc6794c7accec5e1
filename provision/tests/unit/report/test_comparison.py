"""The view `comparison`: what results:show says of a run, no more, no less, and never of something older."""

import json
import sqlite3
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from overlaylab.cli.main import cli
from overlaylab.core import lock
from overlaylab.core.model import Variant
from overlaylab.report import comparison
from overlaylab.report.table import show
from overlaylab.results.results import report
from overlaylab.run.design import Rules
from overlaylab.store import prune
from overlaylab.store.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "results"
sys.path.insert(0, str(FIXTURES))
import maker  # noqa: E402

EIGHT = replace(maker.RUN, blocks=8, arguments=Rules(margin=0.05).arguments())
HEADERS = {"fastdp": 50, "sleeve": 62}


def headers(variant):
    return HEADERS.get(variant.key)


@pytest.fixture
def path(tmp_path, own_cache, monkeypatch):
    monkeypatch.setenv("LAB_DB", str(tmp_path / "lab.sqlite"))
    return tmp_path / "lab.sqlite"


@pytest.fixture
def store(path):
    with Store.open(path) as opened:
        opened.db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        yield opened


def rows(store, run_id=None, columns="*"):
    return [
        dict(row)
        for row in store.db.execute(
            f"SELECT {columns} FROM comparison WHERE run_id = coalesce(?, run_id) ORDER BY run_id, ordinal",
            (run_id,),
        )
    ]


def row_of(store, metric, mode):
    (found,) = (row for row in rows(store) if (row["metric"], row["mode"]) == (metric, mode))
    return found


def call(*arguments):
    return CliRunner().invoke(cli, ["results", *arguments], catch_exceptions=False)


def test_every_row_says_what_the_report_says(store):
    run_id = maker.fill(store, EIGHT)
    whole = report(store, run_id, headers)
    assert comparison.refresh(store, headers=headers) == comparison.Refreshed((run_id,), ())
    told = [(table, row) for table in whole.tables for row in table.rows]
    found = rows(store)
    assert [one["ordinal"] for one in found] == list(range(len(told))) and len(told) == 9
    for one, (table, row) in zip(found, told, strict=True):
        assert Variant(one["overlay"], one["mode"], bool(one["encrypted"])) == row.variant
        assert [one[name] for name in ("benchmark", "metric", "unit", "better", "step", "place")] == [
            *(table.benchmark, table.metric, table.unit, table.better, table.step, table.where),
        ]
        assert json.loads(one["tools"]) == list(table.tools) and one["is_primary"] == table.primary
        assert (one["placement"], one["direction"]) == ("remote", "client-to-server")
        assert (one["client_node"], one["server_node"]) == ("node1", "node2")
        assert (one["blocks"], one["median"], one["low"], one["high"]) == (8, row.median, row.low, row.high)
        assert (one["left_out"], one["theory"], one["margin"]) == (row.left_out, row.theory, 0.05)
        assert (one["provisional"], one["blocks_done"], one["made_by"]) == (0, 8, comparison.MADE_BY)
        ratio = row.ratio
        assert [
            one[name] for name in ("ratio_blocks", "ratio", "ratio_low", "ratio_high", "ratio_same_step")
        ] == (
            [ratio.n, ratio.median, ratio.low, ratio.high, ratio.same]
            if ratio
            else [0, None, None, None, None]
        )
        interval = ratio and ratio.interval
        assert [one[name] for name in ("interval_low", "interval_high", "coverage")] == (
            [interval.low, interval.high, interval.coverage] if interval else [None] * 3
        )
        verdict = ratio and ratio.verdict
        assert [one[name] for name in ("verdict", "p", "verdict_alone")] == (
            [verdict.word, verdict.p, verdict.alone] if verdict else [None] * 3
        )


def test_the_host_is_one_and_has_no_verdict(store):
    comparison.refresh(store, [maker.fill(store, EIGHT)], headers)
    host = row_of(store, "goodput", None)
    names = ("ratio", "ratio_low", "ratio_high", "theory", "verdict", "verdict_words", "interval_low", "p")
    assert [host[name] for name in names] == [1, 1, 1, 1, None, None, None, None]
    # A count is compared with nothing.
    assert row_of(store, "retransmits", "sleeve")["ratio"] is None


def test_the_words_are_those_of_the_table(store):
    comparison.refresh(store, [maker.fill(store, EIGHT)])
    # Two comparisons of the primary metric, 2·½⁸ each; the margin of 5 % holds fastdp's 0.961.
    fast, slow = (row_of(store, "goodput", mode) for mode in ("fastdp", "sleeve"))
    assert (fast["verdict"], fast["verdict_words"], fast["verdict_alone_words"]) == ("same", "same", "same")
    assert (slow["verdict"], slow["verdict_words"], slow["p"]) == ("lower", "slower", 0.015625)
    late = row_of(store, "latency_one_way", "sleeve")
    assert (late["verdict"], late["verdict_words"], late["p"]) == ("higher", "slower", 0.0078125)
    assert (late["is_primary"], slow["is_primary"]) == (0, 1)
    out = StringIO()
    show(store, None, Console(file=out, width=110, highlight=False))
    for row in (fast, slow, late):
        (line,) = (
            text
            for text in out.getvalue().partition(f"{row['benchmark']}: {row['metric']}")[2].splitlines()[:9]
            if text.startswith(f"weave {row['mode']} ")
        )
        assert f" {row['verdict_words']} " in line
        assert f"({row['interval_low']:.3g}"[:5] in line


def test_below_six_blocks_nothing_is_said(store):
    comparison.refresh(store, [maker.fill(store, replace(EIGHT, blocks=5))])
    row = row_of(store, "goodput", "sleeve")
    names = (
        "provisional",
        "blocks",
        "interval_low",
        "coverage",
        "verdict",
        "verdict_words",
        "p",
        "verdict_alone",
    )
    assert [row[name] for name in names] == [0, 5, *[None] * 6]
    assert 0.11 < row["ratio_low"] < row["ratio_high"] < 0.12


def test_what_was_published_stands_beside_it(store):
    comparison.refresh(store, [maker.fill(store, EIGHT)])
    assert json.loads(row_of(store, "goodput", None)["published"]) == []
    (one,) = json.loads(row_of(store, "goodput", "sleeve")["published"])
    assert one["publication"] == "schaaf-2015" and one["ratio"] == pytest.approx(
        sum(one["overlay_values"])
        / len(one["overlay_values"])
        / (sum(one["host_values"]) / len(one["host_values"]))
    )
    assert one["low"] < one["ratio"] < one["high"]
    assert (one["cloud"], one["instance"], one["protocol"]) == ("Azure", "A1", "tcp")
    assert all(isinstance(text, str) and text for text in (*one["notes"], *one["flaws"]))
    assert isinstance(one["comparable"], bool) and isinstance(one["same_step"], bool)


def test_what_was_published_has_the_verdict_of_bench_fidelity(store):
    comparison.refresh(store, [maker.fill(store, EIGHT)], headers)
    (goodput,) = json.loads(row_of(store, "goodput", "sleeve")["published"])
    (latency,) = json.loads(row_of(store, "latency_one_way", "sleeve")["published"])
    # .116 was measured and .729 published; the invented nodes were asked for nothing of their CPU.
    assert (goodput["verdict"], goodput["as_printed"]) == ("not reproducible", True)
    assert goodput["reason"].startswith("CPU-bound: below what headers leave, on emulated CPU")
    assert latency["verdict"] == "not reproducible"
    assert latency["reason"].startswith("the tier is not in force: rtt-idle 1.510 ms, ")
    zones = replace(EIGHT, zones={"node1": "a", "node2": "b"})
    run_id = maker.fill(store, zones)
    comparison.refresh(store, [run_id], headers)
    (elsewhere,) = (
        row for row in rows(store, run_id) if (row["metric"], row["mode"]) == ("goodput", "sleeve")
    )
    assert json.loads(elsewhere["published"])[0]["verdict"] is None  # nothing was published between zones


def test_until_a_run_is_done_nothing_is_claimed(store):
    run_id = maker.fill(store, replace(EIGHT, blocks=9), until=8 * 6)
    claims = (
        "interval_low, interval_high, coverage, verdict, verdict_words, p, verdict_alone, verdict_alone_words"
    )
    for state in ("running", "interrupted", "failed"):  # the first is also what a kill leaves
        store.set_run_state(run_id, state)
        comparison.write(store, report(store, run_id))
        found = rows(store, run_id, "provisional, blocks_done, blocks, ratio")
        assert {(one["provisional"], one["blocks_done"], one["blocks"]) for one in found} == {(1, 8, 8)}
        assert found[2]["ratio"] == pytest.approx(0.116, abs=0.01)
        assert {tuple(one.values()) for one in rows(store, run_id, claims)} == {(None,) * 8}
    # Ended there, as PRECISION may: the rows are of all that there is.
    store.set_run_state(run_id, "done")
    assert row_of(store, "goodput", "sleeve")["verdict_words"] == "slower"


def test_a_run_that_ends_with_more_than_its_rows_say_has_none(store):
    run_id = maker.fill(store, EIGHT, until=42)
    comparison.write(store, report(store, run_id))
    for trial_id, trial in store.pending_trials(run_id):
        store.finish_trial(trial_id, maker.result(trial, maker.random.Random(1)))
    assert len(rows(store, run_id)) == 9
    store.set_run_state(run_id, "done")
    assert rows(store, run_id) == []
    assert comparison.refresh(store).made == (run_id,)
    assert {one["blocks_done"] for one in rows(store, run_id)} == {8}


def test_what_a_kill_left_is_refreshed_and_what_is_measured_is_not(store):
    killed = maker.fill(store, EIGHT, until=20)
    with lock.cluster_lock("pair", "measuring weave"):
        assert comparison.refresh(store) == comparison.Refreshed((), (killed,))
        assert comparison.refresh(store, [killed]) == comparison.Refreshed((), (killed,))
        assert rows(store) == []
    assert comparison.refresh(store) == comparison.Refreshed((killed,), ())
    assert {(one["provisional"], one["blocks_done"]) for one in rows(store)} == {(1, 3)}
    assert comparison.refresh(store) == comparison.Refreshed((), ())


def test_withdrawn_trials_change_the_rows(store):
    kept, run_id = maker.fill(store), maker.fill(store, EIGHT)
    comparison.refresh(store)
    before = rows(store, kept)
    trials = store.db.execute(
        "SELECT trial_id FROM trial WHERE run_id = ? AND overlay = 'host' AND block > 3", (run_id,)
    )
    gone = [str(row[0]) for row in trials]
    store.void_trials([int(gone[0])], "a backup ran")
    assert rows(store, run_id) == [] and rows(store, kept) == before
    assert "9 trials withdrawn" in call("void", run_id, *gone, "--why", "a backup ran", "--yes").stderr
    row = next(one for one in rows(store, run_id) if (one["metric"], one["mode"]) == ("goodput", "sleeve"))
    assert (row["blocks"], row["ratio_blocks"], row["left_out"], row["verdict"]) == (8, 3, 5, None)
    call("void", run_id, "--why", "all of it", "--yes")
    assert rows(store, run_id) == [] and comparison.refresh(store).made == ()
    assert rows(store, kept) == before


def test_removed_runs_leave_no_rows(store):
    kept, gone = maker.fill(store), maker.fill(store, EIGHT)
    comparison.refresh(store)
    prune.preview(store, [gone])
    assert len(rows(store, gone)) == 9
    prune.remove(store, [gone])
    assert {one["run_id"] for one in rows(store)} == {kept}
    assert store.db.execute("SELECT run_id FROM _comparison_made").fetchall()[0]["run_id"] == kept


def test_what_is_imported_has_rows(path):
    file = FIXTURES.parent / "iperf3" / "3.12-tcp.out"
    done = call("import", str(file), "--accelerator", "bare")
    assert "run " in done.stderr
    with Store.open(path) as store:
        found = rows(store)
        assert {(one["overlay"], one["provisional"], one["blocks"], one["ratio"]) for one in found} == {
            ("unknown", 0, 1, None)
        }
        assert comparison.refresh(store).made == ()


def test_a_database_of_an_older_schema_gets_rows_by_one_command(path):
    with Store.open(path) as store:
        first, second = maker.fill(store, EIGHT), maker.fill(store)
        comparison.refresh(store)
        expected = rows(store)
    db = sqlite3.connect(path)
    db.executescript(
        "DROP VIEW comparison; DROP TABLE _comparison; DROP TABLE _comparison_made;"
        "DROP VIEW published_flaw; DROP TABLE _published_flaw;"
        "DROP VIEW published_precision; DROP TABLE _published_precision;"
        "DELETE FROM _loaded WHERE name <> 'published';"
        "DROP VIEW result; DROP VIEW run; ALTER TABLE _run DROP COLUMN lab_version; ALTER TABLE _run DROP COLUMN system; ALTER TABLE _run DROP COLUMN kit;"
        "CREATE VIEW result AS SELECT 1; CREATE VIEW run AS SELECT 1;"
        "DROP VIEW attempt; DROP VIEW attempt_event; DROP VIEW attempt_value; DROP TABLE _attempt_cycle;"
        "DROP TABLE _attempt_event; DROP TABLE _attempt; DROP TABLE measure;"
        "DELETE FROM migration WHERE version >= 6; PRAGMA user_version = 5;"
    )
    db.close()
    with Store.open(path) as store:
        assert rows(store) == []
    assert path.with_name("lab.sqlite.v5-1.bak").exists()
    assert call("refresh").stderr == "2 runs refreshed\n"
    assert call("refresh").stderr == "nothing to refresh\n"
    with Store.open(path) as store:
        assert rows(store) == expected and {one["run_id"] for one in expected} == {first, second}


def test_rows_of_other_statistics_or_publications_are_made_again(store, monkeypatch):
    run_id = maker.fill(store)
    comparison.refresh(store)
    monkeypatch.setattr(comparison, "MADE_BY", comparison.MADE_BY + 1)
    assert comparison.refresh(store).made == (run_id,)
    assert {one["made_by"] for one in rows(store)} == {comparison.MADE_BY}
    monkeypatch.setattr(comparison, "PUBLISHED_FILES", ("published.csv",))
    assert comparison.refresh(store).made == (run_id,)
    assert comparison.refresh(store).made == ()
    assert call("refresh", run_id).stderr == "1 run refreshed\n"  # one that is named always
