"""The commands and tasks over the results: what they write, and what they refuse."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from overlaylab.cli.main import cli
from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.lock import cluster_lock
from overlaylab.core.model import ProfileCheck
from overlaylab.core.progress import HIDDEN
from overlaylab.report.export import harmless
from overlaylab.store.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "results"
sys.path.insert(0, str(FIXTURES))
import maker  # noqa: E402


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """(path, ids of two runs): the older with a failed trial, the newer with one block."""
    path = tmp_path / "lab.sqlite"
    monkeypatch.setenv("LAB_DB", str(path))
    monkeypatch.setenv("COLUMNS", "100")
    failed = {(1, maker.HOST, "tcp-goodput"): maker.failed("=cmd|' /C calc'!A0")}
    with Store.open(path) as store:
        store.db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        return path, (
            maker.fill(store, replace(maker.RUN, blocks=2), results=failed),
            maker.fill(store, replace(maker.RUN, blocks=1, suite="schaaf-2015")),
        )


def call(*arguments, **options):
    done = CliRunner().invoke(cli, ["results", *arguments], **options)
    if isinstance(done.exception, UserError):
        raise done.exception
    return done


def test_show_takes_the_newest_run_or_the_one_named(lab):
    _, (older, newer) = lab
    assert f"Run {newer} " in call("show").stdout
    assert f"Run {older} " in call("show", older).stdout
    assert f"Run {older} " in call("show", older[-4:]).stdout


@pytest.mark.parametrize(("run", "fits"), [("20", 2), ("x", "none")])
def test_a_run_that_is_not_one_is_refused(lab, run, fits):
    with pytest.raises(
        UserError, match=rf"RUN: must be the id of one run.*found: {run}, which fits {fits}\)"
    ):
        call("show", run)


def test_an_empty_database_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_DB", str(tmp_path / "lab.sqlite"))
    Store.open(tmp_path / "lab.sqlite").close()
    with pytest.raises(UserError, match=r"holds no run yet. Measure something first: ./task lab:weave."):
        call("show")


def test_list_has_the_newest_first(lab):
    _, (older, newer) = lab
    lines = call("list").stdout.splitlines()
    assert lines[2].split()[:5] == [newer, "done", "6", "of", "6"]
    assert lines[3].split()[:5] == [older, "done", "11", "of", "12"]


def test_no_line_of_the_list_loses_anything_on_a_narrow_terminal(lab, monkeypatch):
    path, _ = lab
    with Store.open(path) as store:
        run = replace(maker.RUN, blocks=1, suite="weave-vs-flannel-2016", accelerator="shared-kernel")
        run_id = maker.fill(store, run, until=1)
        store.set_run_state(run_id, "interrupted")
    monkeypatch.setenv("COLUMNS", "80")
    shown = call("list").stdout
    assert max(map(len, shown.splitlines())) <= 80 and "…" not in shown
    assert "weave-vs-flannel-2016," in shown and "shared-kernel:" in shown


def test_nothing_commands_the_terminal_or_reorders_it(lab):
    path, _ = lab
    with Store.open(path) as store:
        maker.fill(store, replace(maker.RUN, blocks=1, machine="\x1b[2Jm\u202ex", suite="s\x9bu\u2066"))
    shown = call("show").stdout + call("list").stdout
    assert not HIDDEN.search(shown) and "[2Jmx" in shown and "su, pair" in shown


def test_names_are_printed_as_they_are(lab):
    path, _ = lab
    with Store.open(path) as store:
        maker.fill(store, replace(maker.RUN, blocks=1, suite="[/red]x", machine=":skull: [bold]"))
    assert "[/red]x, pair, azure-a1" in " ".join(call("list").stdout.split())
    assert ":skull: [bold]" in call("show").stdout


def test_a_run_of_nothing_but_checks_shows_them(lab):
    path, _ = lab
    with Store.open(path) as store:
        run_id = store.begin_run(replace(maker.RUN, suite="bench:profiles"), ())
        for check in (
            ProfileCheck(
                "packets", "node1", "node2", None, 117_414.0, None, "1/s", "pass", "64-byte datagrams"
            ),
            ProfileCheck("burst-bytes", "node1", "node2", 1.0e9, 1.2e9, 5e7, "bytes", "fail", None),
            ProfileCheck("loss", "node1", "node2", None, None, None, "ratio", "not-applicable", "no netem"),
        ):
            store.add_profile_check(run_id, check)
        store.set_run_state(run_id, "running")
    shown = call("show", run_id).stdout
    assert "This run did not reach its end: what was checked until then." in shown
    assert "No trial has given a value" not in shown and "lab:resume" not in shown
    assert "   packets node1 to node2: 117.4 thousand/s: ok (64-byte datagrams)\n" in shown
    assert "   burst-bytes node1 to node2: 1.2 GB, asked 1 ± 0.05: FAILED\n" in shown
    assert "   loss node1 to node2: –: not here (no netem)\n" in shown
    (line,) = [line for line in call("list").stdout.splitlines() if run_id in line]
    assert line.split()[1:6] == ["running", "1", "of", "3", "checks"]


def rows_of(path):
    with Store.open(path, create=False) as store:
        return [dict(row) for row in store.db.execute("SELECT * FROM result ORDER BY run_id, trial_id")]


def test_csv_holds_every_row_and_no_formula(lab):
    path, _ = lab
    written = list(csv.DictReader(io.StringIO(call("export", "csv").stdout)))
    expected = rows_of(path)
    assert len(written) == len(expected)
    for line, row in zip(written, expected, strict=True):
        for name, value in row.items():
            assert line[name] == ("" if value is None else str(harmless(value))), name
    (failed,) = [line for line in written if line["status"] == "failed"]
    assert failed["reason"] == "'=cmd|' /C calc'!A0"
    assert (failed["metric"], failed["value"]) == ("", "")
    assert {line["lab_version"] for line in written} == {"0.1.0+a9ab47058231"}


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1", "'=1"),
        ("+1", "'+1"),
        ("-x", "'-x"),
        ("@x", "'@x"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("-1", "'-1"),
        ("\n=1", "'\n=1"),
        ("\nx", "'\nx"),
        (" =1", "' =1"),
        (" \r\n\t@x", "' \r\n\t@x"),
        ("\x00\x0b=1", "'\x00\x0b=1"),
        ("\xa0\ufeff+1", "'\xa0\ufeff+1"),
        (" 1=1", " 1=1"),
        (None, None),
        (0, 0),
        (-3, -3),
        (-1.5, -1.5),
        ("a=1", "a=1"),
    ],
)
def test_what_a_spreadsheet_would_run_gets_a_quote(value, cell):
    assert harmless(value) == cell


def test_json_holds_every_row_with_its_types(lab, tmp_path):
    path, (older, _) = lab
    out = tmp_path / "results.json"
    assert call("export", "json", "--out", str(out), "--run", older).stderr == f"{out}: 42 rows\n"
    expected = [
        {**row, "parameters": json.loads(row["parameters"])}
        for row in rows_of(path)
        if row["run_id"] == older
    ]
    assert json.loads(out.read_text()) == expected


def test_an_empty_export_is_still_json(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_DB", str(tmp_path / "lab.sqlite"))
    Store.open(tmp_path / "lab.sqlite").close()
    assert json.loads(call("export", "json").stdout) == []


def test_an_export_overwrites_nothing(lab):
    path, _ = lab
    before = path.read_bytes()
    with pytest.raises(UserError, match=r"OUT: .*lab.sqlite: must not exist yet. Name another file"):
        call("export", "csv", "--out", str(path))
    assert path.read_bytes() == before


def test_an_export_into_nowhere_leaves_nothing(lab, tmp_path):
    with pytest.raises(
        UserError, match=r"must be a file that can be written \(found: No such file or directory\)"
    ):
        call("export", "csv", "--out", str(tmp_path / "none" / "x.csv"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lab.sqlite"]


def test_void_withdraws_what_is_named_and_nothing_else(lab):
    path, (older, newer) = lab
    with Store.open(path) as store:
        ids = store.trial_ids(newer)
    two = ("void", newer, str(ids[0]), str(ids[1]), "--reason", "a neighbour", "--yes")
    assert call(*two).stderr == "2 trials withdrawn\n"
    assert call(*two).stderr == "0 trials withdrawn; 2 had given no result that held\n"
    with Store.open(path) as store:
        assert store.trial_ids(newer, status="void") == ids[:2]
        assert store.trial_ids(older, status="void") == []
    for wrong in ("x", "1"):
        with pytest.raises(UserError, match=rf"TRIALS: must be trials of run {newer}.*found: {wrong}\)"):
            call("void", newer, wrong, "--reason", "why")
    with pytest.raises(UserError, match="WHY: must say why"):
        call("void", newer, str(ids[2]), "--why", " ")


def test_void_without_trials_withdraws_the_whole_run(lab):
    path, (older, newer) = lab
    # One of its trials had failed: it keeps its own reason.
    said = call("void", older, "--why", "the profile was wrong", "--yes").stderr
    assert said == "11 trials withdrawn; 1 had given no result that held\n"
    with Store.open(path) as store:
        assert len(store.trial_ids(older, status="void")) == 11
        assert len(store.trial_ids(newer, status="ok")) == 6
    assert "11 × the profile was wrong" in call("show", older).stdout


def test_void_counts_what_is_still_to_come_by_itself(lab, own_cache):
    path, _ = lab
    with Store.open(path) as store:
        failed = {(1, maker.HOST, "tcp-goodput"): maker.failed("no route")}
        run_id = maker.fill(store, replace(maker.RUN, blocks=2), until=8, results=failed)
        store.set_run_state(run_id, "interrupted")
    said = call("void", run_id, "--why", "a neighbour", "--yes").stderr
    assert said == "7 trials withdrawn; 1 had given no result that held; 4 still to come\n"
    with Store.open(path) as store:
        store.set_run_state(run_id, "done")  # as PRECISION ends one before its last block
    said = call("void", run_id, "--why", "a neighbour", "--yes").stderr
    assert said == "0 trials withdrawn; 8 had given no result that held; 4 never measured\n"


def test_a_run_that_is_being_measured_is_not_withdrawn(lab, own_cache):
    path, _ = lab
    with Store.open(path) as store:
        run_id = maker.fill(store, maker.RUN, until=3)
    with cluster_lock("pair", "measuring weave"), pytest.raises(UserError, match="measuring weave"):
        call("void", run_id, "--why", "a neighbour")
    with Store.open(path) as store:
        assert len(store.trial_ids(run_id, status="ok")) == 3
    assert call("void", run_id, "--why", "a neighbour", "--yes").stderr.startswith(
        "3 trials withdrawn; 33 still"
    )


def test_void_asks_with_the_whole_id_once_all_is_checked(lab):
    path, (older, newer) = lab
    for typed, why, where in (
        ("x", "why", "RUN: must be"),
        ("20", "why", "RUN: must be"),
        (older, " ", "WHY: must"),
    ):
        with pytest.raises(UserError, match=where):  # and not that nobody is there to ask
            call("void", typed, "--why", why)
    refused = call("void", older[-4:], "--why", "why", input="n\n")
    assert refused.exit_code == 1 and refused.stderr.endswith("nothing was withdrawn\n")
    assert f"Withdraw 11 trials of run {older} for good?" in refused.stderr
    with pytest.raises(UserError, match=r"results:void: .*nobody to ask. YES=1 withdraws without a question"):
        call("void", older, "--why", "why", input="")
    with Store.open(path) as store:
        assert len(store.trial_ids(older, status="ok")) == 11
        first = str(store.trial_ids(newer)[0])
    agreed = call("void", newer, first, "--why", "why", input="y\n")
    assert f"Withdraw 1 trial of run {newer} for good?" in agreed.stderr
    assert agreed.stderr.endswith("1 trial withdrawn\n")


def test_a_report_is_one_new_file(lab, tmp_path):
    _, (older, newer) = lab
    out = tmp_path / "report.html"
    assert re.fullmatch(rf"{out}: 1 run, [\d.]+ kB\n", call("report", "--out", str(out)).stderr)
    text = out.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>\n") and text.endswith("</html>\n")
    assert newer in text and older not in text
    assert older in call("report", "--run", older, "--out", "-").stdout
    with pytest.raises(UserError, match=r"OUT: .*report.html: must not exist yet"):
        call("report", "--out", str(out))
    with pytest.raises(UserError, match=r"GROUP: cannot be combined with RUN"):
        call("report", "--out", "-", "--run", older, "--group", "newest")
    with pytest.raises(UserError, match=r"holds no group of tiers yet"):
        call("report", "--out", "-", "--group", "newest")


def task(*arguments):
    """The tasks of db/ alone, as the root's Taskfile includes them."""
    lab = f"LAB={paths.PROVISION / 'bin' / 'lab'}"
    command = ["task", "--exit-code", "-t", str(paths.DB / "Taskfile.yml"), lab, *arguments]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=paths.ROOT
    )


@pytest.mark.skipif("OVERLAYLAB_TOOLS" not in os.environ, reason="needs the pinned toolchain")
def test_tasks_hand_values_over_as_they_are(lab, tmp_path):
    path, (older, newer) = lab
    out = tmp_path / "a b'$(touch pwned)\".csv"
    done = task("results:export", "FORMAT=csv", f"OUT={out}")
    assert (done.returncode, done.stderr.count("rows")) == (0, 1), done.stderr
    assert out.read_text().startswith("run_id,trial_id,started_at,origin,")
    assert newer in task("results:show").stdout
    refused = task("results:show", "RUN=$(id); x")
    assert refused.returncode == 2 and "found: $(id); x, which fits none" in refused.stderr
    with Store.open(path) as store:
        first, second, *_ = store.trial_ids(newer)
    done = task(
        "results:void", f"RUN={newer}", f"TRIALS={first}  {second}", "REASON=it's off; really", "YES=1"
    )
    assert "2 trials withdrawn" in done.stderr, done.stderr
    with Store.open(path) as store:
        reasons = {r[0] for r in store.db.execute("SELECT reason FROM trial WHERE status = 'void'")}
    assert reasons == {"it's off; really"}
    assert task("results:void", f"RUN={newer}", "WHY=the rest", "YES=1").returncode == 0
    assert "WHY: must say why" in task("results:void", f"RUN={newer}").stderr
    nobody = task("results:void", f"RUN={older}", "WHY=why")
    assert nobody.returncode == 2 and "YES=1 withdraws" in nobody.stderr
    page = tmp_path / "it's a $(page).html"
    done = task("results:report", f"OUT={page}")
    assert done.returncode == 0 and "4 × the rest" in page.read_text(), done.stderr
    foreign = FIXTURES.parent / "iperf3" / "3.12-tcp.out"
    done = task(
        "results:import", "ACCELERATOR=bare", "OVERLAY=weave/sleeve", "MACHINE=2 'cores'", "--", str(foreign)
    )
    assert done.returncode == 0 and done.stderr.startswith("3.12-tcp.out: run "), done.stderr
    assert "2 'cores'" in task("results:show").stdout
    nobody = task("results:prune", "KEEP=0", "YES=no")
    assert nobody.returncode == 2 and "YES=1 removes" in nobody.stderr
    done = task("results:prune", "KEEP=0", "YES=1")
    assert done.returncode == 0 and done.stderr.endswith("removed\n"), done.stderr
    assert "holds no run yet" in task("results:show").stderr
