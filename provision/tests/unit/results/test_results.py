"""What a run says: medians, ratios within a block, theory, published numbers, and what is not said."""

import random
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from lab_results import ALL, THREE, headers, printed, table_of

from overlaylab.core.model import Evidence, Sample, Variant
from overlaylab.results.results import header_bytes, report
from overlaylab.store.store import Store
from overlaylab.tools import base as tools

FIXTURES = Path(__file__).parents[2] / "fixtures" / "results"
sys.path.insert(0, str(FIXTURES))
import maker  # noqa: E402


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "lab.sqlite") as opened:
        opened.db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        yield opened


def test_the_ratio_is_the_median_of_each_blocks_own(store):
    # The machine grows slower from block to block: a ratio of medians would say 0.8 as well as 1.0.
    table, rows = table_of(store, THREE, {maker.HOST: [100e6, 50e6, 40e6], maker.FASTDP: [90e6, 40e6, 38e6]})
    assert (table.metric, table.unit, table.better, table.tools) == (
        "goodput",
        "bit/s",
        "higher",
        ("iperf3 0.0",),
    )
    assert [row.variant for row in table.rows] == [maker.HOST, maker.FASTDP]
    row = rows[maker.FASTDP]
    assert (row.n, row.median, row.low, row.high, row.left_out) == (3, 40e6, 38e6, 90e6, 0)
    assert (row.ratio.median, row.ratio.low, row.ratio.high) == pytest.approx((0.9, 0.8, 0.95))
    assert (row.ratio.n, row.ratio.same) == (3, False)


def test_a_block_without_its_host_is_left_out_and_counted(store):
    _, rows = table_of(store, THREE, {maker.HOST: [100e6, None, 40e6], maker.FASTDP: [90e6, 1e6, 38e6]})
    row = rows[maker.FASTDP]
    assert (row.n, row.median, row.left_out) == (3, 38e6, 1)
    assert (row.ratio.median, row.ratio.n) == (pytest.approx(0.925), 2)
    text = printed(store)
    assert "1 block has no host value and is not in the ratio of weave fastdp." in text
    assert "1 trial failed, not in the table:\n   1 × no server\n" in text


def test_a_block_whose_host_is_still_to_come_is_not_counted_as_left_out(store):
    run = replace(THREE, blocks=1)
    trials = sorted(maker.plan(run, [maker.TCP]), key=lambda trial: trial.variant == maker.HOST)
    run_id = store.begin_run(run, trials)
    trial_id, trial = store.pending_trials(run_id)[0]
    store.finish_trial(trial_id, maker.result(trial, random.Random(1)))
    table, _ = report(store, run_id, headers).tables
    row = next(r for r in table.rows if r.variant == maker.FASTDP)
    assert (row.n, row.ratio, row.left_out) == (1, None, 0)


def test_no_host_at_all_gives_no_ratio(store):
    _, rows = table_of(store, THREE, {maker.HOST: [None] * 3, maker.FASTDP: [90e6, 1e6, 38e6]})
    assert rows[maker.HOST].median is None and rows[maker.HOST].n == 0
    assert rows[maker.FASTDP].ratio is None and rows[maker.FASTDP].left_out == 3
    assert re.search(r"^host +0 +– +– ", printed(store), re.M)


def test_a_run_without_the_host_in_its_plan_misses_none(store):
    alone = replace(THREE, variants=(maker.FASTDP,))
    _, rows = table_of(store, alone, {maker.FASTDP: [90e6, 91e6, 92e6]})
    assert (rows[maker.FASTDP].ratio, rows[maker.FASTDP].left_out) == (None, 0)
    assert "no host value" not in printed(store)


STEP = 65536 * 8 / 2


def test_a_difference_within_one_step_of_the_tool_is_none(store):
    values = {maker.HOST: [18 * STEP, 18 * STEP, 17 * STEP], maker.FASTDP: [17 * STEP * 1.001] * 3}
    table, rows = table_of(store, THREE, values, resolution=STEP)
    assert table.step == STEP
    assert rows[maker.FASTDP].ratio.same
    text = printed(store)
    assert re.search(r"^weave fastdp .* = \(within one step\) +0.961$", text, re.M)
    assert "The tool's step is 0.262 Mbit/s: what differs by less does not differ." in text


def test_a_difference_of_two_steps_is_printed(store):
    values = {maker.HOST: [18 * STEP] * 3, maker.FASTDP: [16 * STEP] * 3}
    _, rows = table_of(store, THREE, values, resolution=STEP)
    assert not rows[maker.FASTDP].ratio.same
    assert rows[maker.FASTDP].ratio.median == pytest.approx(16 / 18)


def test_repetitions_become_one_value_of_their_block_and_warmups_none(store):
    run = replace(THREE, blocks=1)
    trials = [
        replace(trial, position=10 * trial.position + i, repetition=i, warmup=i == 0)
        for trial in maker.plan(run, [maker.TCP])
        for i in range(4)
    ]
    run_id = store.begin_run(run, trials)
    for trial_id, trial in store.pending_trials(run_id):
        value = {0: 1.0, 1: 10e6, 2: 20e6, 3: 90e6}[trial.repetition]
        sample = Sample("goodput", value)
        store.finish_trial(trial_id, replace(maker.result(trial, random.Random(1)), samples=(sample,)))
    (table,) = report(store, run_id, headers).tables
    assert [(row.n, row.median) for row in table.rows] == [(1, 20e6), (1, 20e6)]


def test_void_trials_are_not_shown_but_counted(store):
    run_id = maker.fill(store, replace(maker.RUN, blocks=2))
    before = report(store, run_id, headers)
    store.void_trials(store.trial_ids(run_id)[6:], "goodput of the profile 12 % off")
    after = report(store, run_id, headers)
    assert {row.n for table in before.tables for row in table.rows} == {2}
    assert {row.n for table in after.tables for row in table.rows} == {1}
    assert after.void == (("goodput of the profile 12 % off", 6),)
    assert "6 trials void, not in the table:\n   6 × goodput of the profile 12 % off\n" in printed(store)


def test_theory_takes_the_overlays_headers_and_the_mtu_that_passes(store):
    run = replace(maker.RUN, variants=ALL, blocks=1)
    run_id = maker.fill(store, run)
    goodput, latency, retransmits = report(store, run_id, headers).tables
    theory = {row.variant: row.theory for row in goodput.rows}
    assert theory[maker.HOST] == 1.0
    expected = {"fastdp": 0.9614, "fastdp-encrypted": 0.9392, "sleeve": 0.9572, "sleeve-encrypted": 0.9406}
    for variant in ALL[1:]:
        assert theory[variant] == pytest.approx(expected[variant.key], abs=5e-5)
    assert {row.theory for row in (*latency.rows, *retransmits.rows)} == {None}


@pytest.mark.parametrize("mtu", [None, 65535], ids=["unknown", "fragmented"])
def test_theory_is_silent_where_it_does_not_hold(store, mtu):
    values = {maker.HOST: [100e6] * 3, maker.FASTDP: [90e6] * 3}
    _, rows = table_of(store, THREE, values, overlay_mtu=mtu)
    assert rows[maker.FASTDP].theory is None


def test_an_overlay_without_a_role_here_has_no_theory():
    assert header_bytes(Variant("no-such-overlay", "x")) is None


@pytest.mark.parametrize(
    ("benchmark", "parameters", "protocol"),
    [
        ("tcp-goodput", {"protocol": "tcp"}, "tcp"),
        ("offered-load", {"protocol": "udp"}, "udp"),
        ("latency", {"test": "udp_lat"}, "udp"),
        ("tcp-latency", {"test": "tcp_lat"}, "tcp"),
    ],
)
def test_the_protocol_is_what_the_parameters_say(benchmark, parameters, protocol):
    assert tools.protocol(benchmark, parameters) == protocol


# Published numbers


def published_of(store, run, mtus=None):
    """{(metric, variant): comparisons} for a run on a tier."""
    results = {}
    for trial in maker.plan(run):
        usual = maker.result(trial, random.Random(1))
        mtu = (mtus or maker.MTU)[trial.variant]
        results[trial.block, trial.variant, trial.benchmark] = replace(usual, overlay_mtu=mtu)
    tables = report(store, maker.fill(store, run, results=results), headers).tables
    return {(t.metric, row.variant): row.published for t in tables for row in t.rows}


def on(cloud, instance, variants=ALL):
    return replace(maker.RUN, variants=variants, blocks=1, stands_for={"cloud": cloud, "instance": instance})


def test_the_published_ratio_is_of_the_same_tier_overlay_and_mode(store):
    found = published_of(store, on("Azure", "A1"))
    (one,) = found["goodput", maker.SLEEVE]
    assert (one.publication, one.ratio, one.same) == ("schaaf-2015", pytest.approx(0.7288), False)
    assert one.source == "weave 1.0.1, qperf tcp_bw"
    assert one.notes == (
        "host: run in a container with published ports (bridge and DNAT), not on the bare host",
    )
    (latency,) = found["latency_one_way", maker.SLEEVE]
    assert (latency.ratio, latency.same) == (1.0, False)
    for variant in (maker.HOST, maker.FASTDP, maker.FASTDP_ENCRYPTED, maker.SLEEVE_ENCRYPTED):
        assert found["goodput", variant] == ()
    assert found["retransmits", maker.SLEEVE] == ()


def test_a_published_difference_of_one_step_is_none(store):
    (one,) = published_of(store, on("Azure", "A0"))["goodput", maker.SLEEVE]
    assert one.same and one.ratio == pytest.approx(0.944, abs=5e-4)
    text = printed(store, width=100)
    assert re.search(r"^weave sleeve .* = a$", text, re.M)
    assert "=: 4.46 of 4.72 Mbit/s is within one step of the tool" in " ".join(text.split())


def test_a_published_ratio_at_another_mtu_is_a_note_only(store):
    found = published_of(store, on("AWS", "t2.medium"))
    by_mtu = {one.source: (one.ratio, one.comparable) for one in found["goodput", maker.FASTDP]}
    assert by_mtu == {
        "MTU 1410, iperf2 TCP, 60 s": (pytest.approx(0.3687, abs=5e-5), False),
        "MTU 8950, iperf2 TCP, 60 s": (1.0, False),
    }
    assert [one.comparable for one in found["goodput", maker.SLEEVE]] == [True, False]
    assert "weave fastdp kept 0.369 there, at another overlay MTU than here." in " ".join(
        printed(store).split()
    )


def test_several_published_runs_are_averaged(store):
    swarm = Variant("docker-overlay", "vxlan")
    run = on("AWS", "t2.small", (maker.HOST, swarm))
    done = replace(maker.failed("x"), status="ok", reason=None, samples=(Sample("goodput", 1e6),))
    results = {(1, variant, "tcp-goodput"): done for variant in run.variants}
    run_id = maker.fill(store, run, benchmarks=[maker.TCP], results=results)
    (table,) = report(store, run_id, headers).tables
    (one,) = table.rows[1].published
    assert one.ratio == pytest.approx(0.3062, abs=5e-5)  # the publication prints 33 %


def test_a_profile_that_stands_for_no_tier_has_no_published_ratio(store):
    assert set(published_of(store, replace(maker.RUN, stands_for=None, blocks=1)).values()) == {()}


# What a person reads


def normalised(text, run_id):
    return "\n".join(line.rstrip() for line in text.replace(run_id, "RUN").splitlines()) + "\n"


@pytest.mark.parametrize("width", [80, 110])
def test_the_table_of_a_finished_run(store, golden, width):
    run_id = maker.fill(store)
    golden(FIXTURES / f"show-done-{width}.txt", normalised(printed(store, width=width), run_id))


@pytest.mark.parametrize("width", [80, 110])
def test_the_table_of_a_run_in_trouble(store, golden, width):
    run = replace(maker.RUN, variants=ALL, scale=4.0)
    refused = maker.failed("iperf3: unable to connect to server: Connection refused")
    run_id = maker.fill(store, run, until=43, results={(2, maker.HOST, "tcp-goodput"): refused})
    store.void_trials(store.trial_ids(run_id, status="ok")[4:6], "fell back to sleeve")
    wrong = Evidence(
        "node1", "status", "after", False, {"connection": "fastdp"}, {"connection": "sleeve"}, "sleeve"
    )
    store.add_evidence(run_id, None, maker.FASTDP, wrong)
    store.set_run_state(run_id, "interrupted")
    golden(FIXTURES / f"show-trouble-{width}.txt", normalised(printed(store, width=width), run_id))


def test_nothing_fits_less_than_the_terminal(store):
    maker.fill(store, replace(maker.RUN, variants=ALL))
    assert max(map(len, printed(store, width=80).splitlines())) <= 80


def test_provisional_is_said_while_a_run_is_unfinished(store):
    run_id = maker.fill(store, until=14)
    assert "Provisional, block 2 of 6 (14 of 36 trials done)." in printed(store)
    assert "Provisional" not in printed(store, provisional=False)
    store.set_run_state(run_id, "done")
    assert "Provisional" not in printed(store)
    assert "Provisional, block 2 of 6" in printed(store, provisional=True)


def test_a_run_without_a_value_yet_says_so(store):
    store.begin_run(maker.RUN, maker.plan())
    text = printed(store)
    assert "Provisional, block 0 of 6 (0 of 36 trials done)." in text
    assert "No trial has given a value yet." in text


@pytest.mark.parametrize(
    ("accelerator", "words", "caveat"),
    [
        ("tcg", "emulated CPU (TCG), no KVM", "CPU-bound ratio from here is not a cloud's"),
        ("kvm", "the machine's own CPU, virtualised (KVM)", None),
        ("shared-kernel", "own CPU and kernel (system containers)", "this machine's, not a cloud's"),
        ("bare", "the hosts' own CPUs (nothing emulated by this lab)", None),
    ],
)
def test_the_accelerator_is_named_in_plain_words(store, accelerator, words, caveat):
    maker.fill(store, replace(maker.RUN, accelerator=accelerator, blocks=1))
    text = " ".join(printed(store).split())
    assert words in text
    assert ("a cloud's" in text) == (caveat is not None)
    assert caveat is None or caveat in text


def test_scale_is_said_where_it_is_not_one(store):
    maker.fill(store, replace(maker.RUN, blocks=1))
    assert "SCALE" not in printed(store)
    maker.fill(store, replace(maker.RUN, blocks=1, scale=0.5))
    assert "SCALE=0.5: durations and counts are 0.5 times the suite's, whole and at least 1." in printed(
        store
    )


def test_trials_of_several_placements_get_tables_of_their_own(store):
    run = replace(THREE, blocks=1)
    trials = [
        replace(
            t, position=t.position + 10 * i, **({"placement": "local", "server_node": "node1"} if i else {})
        )
        for t in maker.plan(run, [maker.TCP])
        for i in (0, 1)
    ]
    run_id = store.begin_run(run, trials)
    for trial_id, trial in store.pending_trials(run_id):
        store.finish_trial(
            trial_id, replace(maker.result(trial, random.Random(1)), samples=(Sample("goodput", 1e6),))
        )
    wheres = {table.where for table in report(store, run_id, headers).tables}
    assert wheres == {"remote", "local"}
    local, remote = (
        [row.theory for row in table.rows if row.variant.overlay != "host"]
        for where in ("local", "remote")
        for table in report(store, run_id, headers).tables
        if table.where == where
    )
    assert set(local) == {None} != set(remote)  # no header is on a wire there
