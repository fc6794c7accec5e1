"""Files of other programs: what becomes of them, what is refused, and that they stay apart from our own."""

import gzip
import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from lab_imports import BARE, FLENT, IPERF3, changed, iperf3, older, written
from rich.console import Console

from overlaylab.bench.fidelity_lab import Runs
from overlaylab.cli.main import cli
from overlaylab.core.errors import UserError
from overlaylab.core.model import Sample, Variant
from overlaylab.report.table import show
from overlaylab.results import tiers
from overlaylab.results.published import pairs
from overlaylab.results.results import report
from overlaylab.specs.profile import load_profile
from overlaylab.store import imported, imported_iperf3
from overlaylab.store.imported import About
from overlaylab.store.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures"
sys.path.insert(0, str(FIXTURES / "results"))
import maker  # noqa: E402


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "lab.sqlite") as opened:
        opened.db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        yield opened


def samples_of(path):
    (trial,) = imported.read(path).measured.trials
    return list(trial.samples)


# -- iperf3 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["tcp", "tcp-parallel", "tcp-reverse", "udp", "udp-reverse", "udp-overload"])
def test_a_report_with_the_servers_own_is_what_the_parser_makes_of_it(case):
    golden = json.loads((IPERF3 / f"3.12-{case}.json").read_text())
    expected = [Sample(**one) for one in golden["samples"]]
    ours = [replace(one, resolution=None) for one in samples_of(IPERF3 / f"3.12-{case}.out")]
    assert ours == [replace(one, resolution=None) for one in expected]


def test_what_an_iperf3_report_says_of_itself():
    measured = imported.read(IPERF3 / "3.12-udp-overload.out").measured
    assert (measured.tool, measured.tool_version, measured.started_at) == (
        "iperf3",
        "iperf 3.12",
        "2026-11-20T13:32:55.000Z",
    )
    assert measured.machine == "Linux 6.18.44-fc-v657 #1 SMP PREEMPT_DYNAMIC @0 x86_64"  # without its name
    (trial,) = measured.trials
    assert (trial.benchmark, trial.direction, trial.duration) == ("iperf3 udp", "client-to-server", 3)
    assert trial.parameters == {
        "protocol": "udp", "streams": 4, "duration": 2, "omit": 1, "datagram": 1448, "offered": 120e6
    }  # fmt: skip
    assert json.loads(trial.raw) == iperf3("udp-overload")


def test_without_the_servers_report_only_totals_count(tmp_path):
    report = changed(iperf3("tcp"), "server_output_json", value=None)
    end = report["end"]
    assert samples_of(written(tmp_path, report)) == [
        Sample("goodput", end["sum_received"]["bits_per_second"]),
        Sample("retransmits", end["sum_sent"]["retransmits"]),
    ]
    del end["sum_sent"]["retransmits"]  # a kernel that does not count them
    assert [one.metric for one in samples_of(written(tmp_path, report))] == ["goodput"]


def test_udp_without_the_servers_report_has_no_loss_where_seconds_were_omitted(tmp_path):
    report = changed(iperf3("udp"), "server_output_json", value=None)
    assert [one.metric for one in samples_of(written(tmp_path, report))] == [
        "goodput",
        "offered",
        "datagrams",
    ]
    report["start"]["test_start"]["omit"] = 0
    report["end"]["sum_received"] |= {"packets": 200, "lost_packets": 50, "jitter_ms": 0.5}
    found = {one.metric: one for one in samples_of(written(tmp_path, report))}
    assert found["loss"] == Sample("loss", 0.25, resolution=1 / 200)
    assert found["jitter"].value == 0.0005
    report["end"]["sum_received"]["lost_packets"] = 201
    with pytest.raises(UserError, match="count of lost datagrams cannot be"):
        imported.read(written(tmp_path, report))


def test_a_reverse_report_without_the_servers_has_totals_and_what_the_client_received():
    whole = json.loads((IPERF3 / "3.12-tcp-reverse.out").read_text())
    with_server = imported_iperf3.read(whole).trials[0].samples
    del whole["server_output_json"]
    alone = imported_iperf3.read(whole).trials[0].samples
    assert [one for one in alone if one.metric == "goodput"] == [
        replace(one, resolution=None) for one in with_server if one.metric == "goodput"
    ]
    assert [one.metric for one in alone if one.metric != "goodput"] == ["retransmits"]


def test_a_number_of_bytes_took_as_long_as_it_was_sent():
    report = changed(
        json.loads((IPERF3 / "3.12-tcp.out").read_text()), "start", "test_start", "duration", value=0
    )
    sent = report["end"]["sum_sent"]["seconds"]
    (trial,) = imported_iperf3.read(report).trials
    assert trial.duration == trial.parameters["omit"] + sent > 1


# -- flent ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "pack"), [("x.flent", bytes), ("x.flent.gz", gzip.compress)])
def test_each_measured_series_of_flent_is_a_trial(tmp_path, name, pack):
    measured = imported.read(written(tmp_path, pack(json.dumps(FLENT).encode()), name)).measured
    assert (measured.tool, measured.tool_version, measured.machine) == ("flent", "2.1.1", "Linux 5.16.0")
    assert measured.started_at == "2024-04-06T18:26:20.000Z"
    assert measured.about == {"title": "=1+1"}
    assert measured.left_out == ("TCP totals", "TCP upload::tcp_rtt", "Ping (ms) avg", "VoIP::delay")
    trials = {one.benchmark: one for one in measured.trials}
    # A missing value is no sample; a zero that was measured is one.
    assert trials["rrul TCP upload"].samples == (
        Sample("goodput", 9.5e6, 0.2, 0.2),
        Sample("goodput", 10e6, 0.4, 0.4),
    )
    assert trials["rrul TCP download BE"].samples[1] == Sample("goodput", 0.0, 0.2, 0.2)
    # Single replies where the file has them, else what flent made of them.
    assert trials["rrul Ping (ms) ICMP"].samples == (
        Sample("latency_rtt", 0.00125, 0.0, 0.0),
        Sample("latency_rtt", 0.0025, 0.25, 0.25),
    )
    assert trials["rrul Ping (ms) UDP"].samples == (
        Sample("latency_rtt", 0.003, 0.2, 0.2),
        Sample("latency_rtt", 0.0025, 0.4, 0.4),
    )
    assert [one.direction for one in trials.values()].count("server-to-client") == 1
    assert [one.parameters.get("counted") for one in trials.values()] == ["sender", "receiver", None, None]
    assert {one.duration for one in trials.values()} == {20.0}


def test_transactions_per_second_of_older_formats_are_times(tmp_path):
    # As in flent's own test-voip-rrul, format 2: 20 transactions per second are 50 ms, as its results say.
    singles = [
        {"t": 1712427980.0 + second, "dur": 0.2, "val": rate} for second, rate in enumerate((20.0, 0.0, 19.9))
    ]
    old = changed(FLENT, "raw_values", "Ping (ms) UDP", value=singles)
    old = changed(old, "results", "Ping (ms) UDP", value=[None, 50.0, 50.1])
    old["version"] = 2
    trials = {one.benchmark: one for one in imported.read(written(tmp_path, old)).measured.trials}
    assert [round(sample.value, 5) for sample in trials["rrul Ping (ms) UDP"].samples] == [0.05, 0.05025]
    old["version"] = 4
    with pytest.raises(
        UserError, match=r"'Ping \(ms\) UDP' has a median of 19.9 ms by its single values and of 50.05"
    ):
        imported.read(written(tmp_path, old))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_older_formats_hold_the_same_values(tmp_path, version):
    now = imported.read(written(tmp_path, FLENT)).measured
    old = imported.read(written(tmp_path, older(version))).measured
    assert (old.started_at, old.tool_version, old.left_out) == (now.started_at, "2.1.1", now.left_out)
    for was, is_ in zip(old.trials, now.trials, strict=True):
        assert was.benchmark == is_.benchmark
        assert [one.metric for one in was.samples] == [one.metric for one in is_.samples]
        assert [one.t_start for one in was.samples] == pytest.approx([one.t_start for one in is_.samples])
        assert [one.value for one in was.samples] == pytest.approx([one.value for one in is_.samples])


def test_what_a_lost_datagram_left_of_a_test_is_no_round_trip(tmp_path):
    """In flent's own test-rrul the last value is 0.01 transactions/s, of 142 s: it would be an RTT of 100 s."""
    old = older(3)
    old["raw_values"]["Ping (ms) UDP"].append({"t": 1712427999.0, "dur": 18.6, "val": 0.05})
    trials = {one.benchmark: one for one in imported.read(written(tmp_path, old)).measured.trials}
    assert [one.value for one in trials["rrul Ping (ms) UDP"].samples] == pytest.approx([0.003, 0.0025])


@pytest.mark.parametrize(
    ("name", "about"),
    [("TCP upload fairness", {}), ("TCP upload total", {}), ("TCP upload all", {"RUNNER": "SumRunner"})],
)
def test_what_flent_computed_is_left_out(tmp_path, name, about):
    more = changed(FLENT, "results", name, value=[0.8, 0.9, 1.0])
    more = changed(more, "metadata", "SERIES_META", name, value={"UNITS": "Mbits/s", **about})
    assert name in imported.read(written(tmp_path, more)).measured.left_out


def test_a_flent_file_that_was_recorded():
    found = sorted((FIXTURES / "flent").glob("*.flent.gz"))
    assert found
    for path in found:
        measured = imported.read(path).measured
        kinds = {one.benchmark.split(" ", 1)[1]: {s.metric for s in one.samples} for one in measured.trials}
        way = "upload" if "1up" in path.name else "download"
        assert kinds == {"Ping (ms) ICMP": {"latency_rtt"}, f"TCP {way}": {"goodput"}}
        for trial in measured.trials:
            for sample in trial.samples:
                # Recorded over 20 Mbit/s with a queue of 20 ms; a sender fills its buffers faster.
                assert 0 <= sample.value < (35e6 if sample.metric == "goodput" else 0.1)


def test_texts_of_a_file_are_short_and_printable(tmp_path):
    long = "x" * 500_000
    report = changed(iperf3("tcp"), "start", "version", value=f"iperf\x1b[31m\u202e\n3 {long}")
    report["start"]["system_info"] = f"Linux a-name {long}"
    measured = imported.read(written(tmp_path, report)).measured
    assert (
        measured.tool_version.startswith("iperf\\x1b[31m\\u202e 3 xxx") and len(measured.tool_version) == 200
    )
    assert measured.machine.startswith("Linux xxx") and len(measured.machine) == 200
    file = changed(FLENT, "metadata", "TITLE", value=long)
    file["metadata"] |= {"FLENT_VERSION": long, "KERNEL_RELEASE": long, "NAME": "rrul\u202e"}
    measured = imported.read(written(tmp_path, file)).measured
    assert {len(text) for text in (measured.tool_version, measured.about["title"])} == {200}
    assert len(measured.machine) < 250
    assert measured.trials[0].benchmark == "rrul\\u202e TCP upload"


def test_a_machine_of_the_caller_is_short(store):
    file = imported.read(IPERF3 / "3.12-tcp.out")
    (run_id,) = imported.store_all(store, [file], About(*BARE, "m" * 5000))
    assert store.run(run_id).record.machine == "m" * 199 + "…"


# -- stored, and kept apart -------------------------------------------------------------------------


def test_a_file_becomes_a_run_of_its_own(store, tmp_path):
    file = imported.read(written(tmp_path, FLENT))
    (run_id,) = imported.store_all(store, [file], About(Variant("weave", "sleeve"), "kvm", "2 cores"))
    run = store.run(run_id)
    assert (run.state, run.trials_planned, run.trials_done) == ("done", 4, 4)
    assert run.started_at == "2024-04-06T18:26:20.000Z"
    record = run.record
    assert (record.origin, record.machine, record.accelerator) == ("imported", "2 cores", "kvm")
    assert (record.provider, record.profile, record.stands_for) == ("imported", "unknown", None)
    assert record.arguments == {"file": "x.flent", "sha256": file.sha256, "title": "=1+1"}
    rows = store.db.execute("SELECT DISTINCT origin, overlay, mode, status, tool FROM result").fetchall()
    assert [tuple(row) for row in rows] == [("imported", "weave", "sleeve", "ok", "flent")]
    table = next(t for t in report(store, run_id).tables if t.benchmark == "rrul Ping (ms) ICMP")
    assert (table.rows[0].n, table.rows[0].median, table.rows[0].ratio) == (1, 0.001875, None)


def test_of_several_files_all_are_stored_or_none(store, tmp_path):
    good, other = imported.read(IPERF3 / "3.12-tcp.out"), imported.read(IPERF3 / "3.12-udp.out")
    (trial,) = other.measured.trials
    bad = replace(trial, samples=(Sample("no such metric", 1.0),))
    broken = replace(other, measured=replace(other.measured, trials=(bad,)))
    with pytest.raises(ValueError, match="no such metric"):
        imported.store_all(store, [good, broken], About(*BARE))
    assert store.db.execute("SELECT count(*) FROM _run").fetchone()[0] == 0
    assert store.db.execute("SELECT count(*) FROM _trial").fetchone()[0] == 0


def test_a_file_is_imported_once(store, tmp_path):
    path = IPERF3 / "3.12-tcp.out"
    (run_id,) = imported.store_all(store, [imported.read(path)], About(*BARE))
    with pytest.raises(UserError, match=f"must not be imported twice .found: run {run_id}"):
        imported.store_all(store, [imported.read(path)], About(*BARE))
    udp = imported.read(IPERF3 / "3.12-udp.out")
    with pytest.raises(UserError, match=r"must not be imported twice .found: the same as 3.12-udp.out"):
        imported.store_all(store, [udp, udp], About(*BARE))
    assert len(store.db.execute("SELECT 1 FROM _run").fetchall()) == 1
    # One that was withdrawn, because it was imported under the wrong name, say, may come again.
    store.void_trials(store.trial_ids(run_id), "another overlay")
    imported.store_all(store, [imported.read(path)], About(Variant("host"), "bare"))


def test_imported_values_are_in_no_row_with_our_own(store):
    ours = maker.fill(store)
    before = report(store, ours, lambda v: 50)
    imported.store_all(store, [imported.read(IPERF3 / "3.12-tcp.out")], About(Variant("host"), "tcg"))
    assert report(store, ours, lambda v: 50) == before
    assert tiers.groups(store) == [] and tiers.latest_unfinished(store, "imported") is None


def test_publications_are_compared_with_what_was_measured_here_alone(store):
    tier = load_profile("azure-a1")
    run = replace(maker.RUN, profile_digest=tier.digest)
    (pair, *_) = [p for p in pairs(store) if (p.instance, p.mode, p.metric) == ("A1", "sleeve", "goodput")]
    theirs = maker.fill(store, replace(run, origin="imported"))
    assert Runs(store, lambda v: 62).of(pair, [tier]) == {}
    ours = maker.fill(store, run)
    found = Runs(store, lambda v: 62).of(pair, [tier])
    assert {one.run_id for one in found.values()} <= {ours} and theirs not in str(found)


# -- the command ------------------------------------------------------------------------------------


def call(*arguments):
    done = CliRunner().invoke(cli, ["results", "import", *map(str, arguments)])
    if isinstance(done.exception, UserError):
        raise done.exception
    return done


def test_the_command_says_what_became_of_each_file(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_DB", str(tmp_path / "results" / "lab.sqlite"))
    files = (written(tmp_path, FLENT), IPERF3 / "3.12-tcp.out")
    said = call(*files, "--overlay", "host", "--accelerator", "kvm").stderr.splitlines()
    with Store.open(tmp_path / "results" / "lab.sqlite") as store:
        first, second = (row[0] for row in store.db.execute("SELECT run_id FROM _run ORDER BY rowid"))
    assert said == [
        f"x.flent: run {first}, 4 benchmarks; 4 series or values left out, which are computed or have no metric here",
        f"3.12-tcp.out: run {second}, 1 benchmark",
    ]
    with Store.open(tmp_path / "results" / "lab.sqlite") as store:
        assert {row[0] for row in store.db.execute("SELECT accelerator FROM run")} == {"kvm"}
        shown = io.StringIO()
        show(store, second, Console(file=shown, width=200))
    assert shown.getvalue().startswith("Imported: 3.12-tcp.out, profile unknown\n")


@pytest.mark.parametrize("said", [(), ("--accelerator", ""), ("--accelerator", "fpga")])
def test_how_the_cpus_ran_is_not_made_up(tmp_path, monkeypatch, said):
    monkeypatch.setenv("LAB_DB", str(tmp_path / "lab.sqlite"))
    with pytest.raises(
        UserError, match=r"ACCELERATOR: must say how the CPUs .* ran, because no file says it"
    ) as one:
        call(IPERF3 / "3.12-tcp.out", *said)
    assert "ACCELERATOR=bare is the hosts' own CPUs, kvm VMs" in str(one.value)
    assert not (tmp_path / "lab.sqlite").exists()


@pytest.mark.parametrize("overlay", ["Weave", "weave/", "host/x", "weave/sleeve/x", "[red]", "", "a" * 50])
def test_an_overlay_has_a_name(overlay):
    if overlay in ("", "weave/"):
        assert imported.variant(overlay, False).mode is None
        return
    with pytest.raises(UserError, match="OVERLAY: must be host, or an overlay and its mode"):
        imported.variant(overlay, False)


def test_no_file_is_no_import(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_DB", str(tmp_path / "lab.sqlite"))
    with pytest.raises(UserError, match="FILE: must name a file"):
        call()
    with pytest.raises(UserError, match="no such file"):
        call(IPERF3 / "3.12-tcp.out", tmp_path / "none", "--accelerator", "bare")
    assert not (tmp_path / "lab.sqlite").exists()
