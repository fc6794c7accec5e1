"""Several tiers beside each other: what a grid holds, and how it reads."""

import random
import re
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from overlaylab.core.model import ProfileCheck, Sample
from overlaylab.report.grid_table import show
from overlaylab.results import tiers
from overlaylab.results.grid import Tier, differences, grids
from overlaylab.results.results import report
from overlaylab.store.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "results"
sys.path.insert(0, str(FIXTURES))
import maker  # noqa: E402

HEADERS = {"fastdp": 50, "fastdp-encrypted": 84, "sleeve": 62, "sleeve-encrypted": 86}
ALL = (maker.HOST, maker.FASTDP, maker.FASTDP_ENCRYPTED, maker.SLEEVE, maker.SLEEVE_ENCRYPTED)
NAMES = ("azure-a0", "azure-a1", "azure-a2")


def headers(variant):
    return HEADERS.get(variant.key)


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "lab.sqlite") as opened:
        opened.db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        yield opened


def tier(name, *, names=NAMES, group="20000101T000000Z-aaaa", blocks=2, **changes):
    """The record of a run on azure-a<n>, one of `names`."""
    arguments = {"group": group, "profiles": list(names)}
    stands_for = {"cloud": "Azure", "instance": name.removeprefix("azure-").upper()}
    return replace(
        maker.RUN, profile=name, stands_for=stands_for, arguments=arguments, blocks=blocks, **changes
    )


def measured(store, run, goodput, *, until=None):
    """A run whose blocks gave goodput {variant: [value of block 1, …]} in bit/s."""
    planned = {(t.block, t.variant): t for t in maker.plan(run) if t.benchmark == "tcp-goodput"}
    results = {
        (block, variant, "tcp-goodput"): replace(
            maker.result(planned[block, variant], random.Random(1)), samples=(Sample("goodput", value),)
        )
        for variant, series in goodput.items()
        for block, value in enumerate(series, start=1)
    }
    return maker.fill(store, run, benchmarks=[maker.TCP], results=results, until=until)


def two(store):
    """azure-a0 and azure-a1 measured, azure-a2 never begun."""
    values = {maker.HOST: [4.7e6, 4.8e6], maker.FASTDP: [4.512e6, 4.56e6], maker.SLEEVE: [2.35e6, 2.4e6]}
    a0 = measured(store, tier("azure-a0"), values)
    values = {maker.HOST: [95e6, 96e6], maker.FASTDP: [90.25e6, 92.16e6], maker.SLEEVE: [19e6, 24e6]}
    return a0, measured(store, tier("azure-a1"), values)


def of_group(store):
    group = tiers.find_group(store, "newest")
    return [Tier(name, report(store, run, headers) if run else None) for name, run in group.run_ids]


def printed(store, width=100):
    out = StringIO()
    show(store, tiers.find_group(store, "newest"), Console(file=out, width=width, highlight=False), headers)
    return out.getvalue()


def test_rows_are_tiers_in_the_order_asked_for_and_columns_overlays(store):
    two(store)
    (grid,) = grids(of_group(store))
    assert (grid.benchmark, grid.metric, grid.unit, grid.better) == (
        "tcp-goodput",
        "goodput",
        "bit/s",
        "higher",
    )
    assert (grid.host, grid.variants) == (maker.HOST, (maker.FASTDP, maker.SLEEVE))
    assert grid.compared and grid.where is None
    assert [line.tier.profile for line in grid.lines] == ["azure-a0", "azure-a1", "azure-a2"]
    assert [line.row(maker.HOST).median for line in grid.lines[:2]] == [4.75e6, 95.5e6]
    fastdp = [line.row(maker.FASTDP).ratio for line in grid.lines[:2]]
    assert [(r.median, r.low, r.high) for r in fastdp] == [
        pytest.approx((0.955, 0.95, 0.96)),
        pytest.approx((0.955, 0.95, 0.96)),
    ]
    sleeve = grid.lines[1].row(maker.SLEEVE)
    assert (sleeve.ratio.median, sleeve.ratio.low, sleeve.ratio.high) == pytest.approx((0.225, 0.2, 0.25))
    assert sleeve.theory == pytest.approx(0.957, abs=5e-4)
    assert [one.ratio for one in sleeve.published] == [pytest.approx(0.7288)]  # of A1; A0 has its own
    assert [one.ratio for one in grid.lines[0].row(maker.SLEEVE).published] == [
        pytest.approx(0.944, abs=5e-4)
    ]


def test_a_tier_that_was_never_begun_is_missing_not_zero(store):
    two(store)
    (grid,) = grids(of_group(store))
    last = grid.lines[2]
    assert (last.tier.report, last.table, last.row(maker.HOST), last.tier.is_done) == (
        None,
        None,
        None,
        False,
    )
    text = printed(store)
    assert re.search(r"^azure-a2 +– +ratio +– +– *\nno run yet *$", text, re.M)
    assert "Unfinished, 2 of 3 tiers: ./task lab:resume completes it." in text
    assert re.search(r"^   azure-a2  no run yet$", text, re.M)


def test_the_grid_as_it_reads(store):
    a0, a1 = two(store)
    text = printed(store)
    assert text.splitlines()[:4] == [
        "quick on pair, 3 tiers",
        "Group 20000101T000000Z-aaaa · 2 cores, test machine · libvirt",
        "CPU of the nodes: emulated CPU (TCG), no KVM",
        "Unfinished, 2 of 3 tiers: ./task lab:resume completes it.",
    ]
    assert "tcp-goodput: goodput, Mbit/s, higher is better (iperf3 0.0)" in text
    body = [re.split(r" {2,}", line.strip()) for line in text.splitlines() if line.startswith(("azure", " "))]
    assert ["azure-a0", "4.75", "ratio", "0.955 [0.950–0.960]", "0.500"] in body
    assert ["azure-a1", "95.5", "ratio", "0.955 [0.950–0.960]", "0.225 [0.200–0.250]"] in body
    assert ["headers", "0.961", "0.957"] in body
    assert ["published", "–", "= a"] in body  # 17 and 18 messages: one step of the publication's tool
    assert ["published", "–", "0.729 b"] in body
    assert f"   azure-a0  {a0}  done" in text
    assert f"   azure-a1  {a1}  done" in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("width", [60, 80, 100])
def test_it_is_readable_at_any_usual_width(store, width):
    measured(store, tier("azure-a0", names=("azure-a0",), variants=ALL), {})
    lines = printed(store, width).splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)
    text = "\n".join(lines)
    for word in ("fastdp", "sleeve", "encrypted", "min–max" if width < 100 else "("):
        assert word in text


def test_with_many_overlays_the_grid_comes_in_parts_each_with_its_tiers(store):
    measured(store, tier("azure-a0", names=("azure-a0",), variants=ALL), {})
    goodput, _ = printed(store, 60).split("tcp-goodput: retransmits")
    assert len(re.findall(r"^azure-a0 ", goodput, re.M)) == 2
    assert goodput.count("tcp-goodput: goodput") == 1


def test_an_unfinished_tier_says_how_far_it_came(store):
    run = tier("azure-a0", blocks=3)
    values = {v: [9e6] * 3 for v in run.variants}
    run_id = measured(store, run, values, until=4)
    store.set_run_state(run_id, "interrupted")
    text = printed(store)
    assert re.search(r"^azure-a0 +9.00 +ratio ", text, re.M)
    assert re.search(r"^block 1 of 3 ", text, re.M)
    assert f"   azure-a0  {run_id}  interrupted, 4 of 9 trials" in text


def test_a_tier_whose_profile_failed_its_check_has_no_value_and_says_why(store):
    two(store)
    run_id = store.begin_run(tier("azure-a2"), maker.plan(tier("azure-a2"), [maker.TCP]))
    store.add_profile_check(
        run_id, ProfileCheck("goodput", "node1", "node2", 191e6, 84e6, 1.9e6, "bit/s", "fail", "busy")
    )
    store.set_run_state(run_id, "interrupted")
    text = printed(store)
    assert re.search(r"^azure-a2 +– +ratio +– +– *\ncheck failed *$", text, re.M)
    assert "interrupted, 0 of 6 trials, the profile failed its check (goodput)" in " ".join(text.split())


def test_another_accelerator_or_machine_is_noted(store):
    two(store)
    maker.fill(store, tier("azure-a2", accelerator="kvm", machine="8 cores"), benchmarks=[maker.TCP])
    assert differences(of_group(store)) == (
        ("azure-a2", "another accelerator (kvm, not tcg) than azure-a0"),
        ("azure-a2", "another machine (8 cores, not 2 cores, test machine) than azure-a0"),
    )
    text = " ".join(printed(store).split())
    assert (
        "azure-a2 was measured with another accelerator (kvm, not tcg) than azure-a0: these two rows" in text
    )
    assert "Unfinished" not in text


def test_a_role_or_suite_that_changed_between_tiers_is_noted(store):
    two(store)
    changed = {"host": "h" * 64, "weave": "x" * 64}
    maker.fill(store, tier("azure-a2", role_digests=changed, suite_digest="t" * 64), benchmarks=[maker.TCP])
    assert differences(of_group(store)) == (
        ("azure-a2", "another quick (the suite has changed) than azure-a0"),
        ("azure-a2", "another role of weave (it has changed) than azure-a0"),
    )


def test_void_and_failed_trials_are_counted_by_tier(store):
    a0, _ = two(store)
    store.void_trials(store.trial_ids(a0)[:2], "fell back")
    assert re.search(rf"^   azure-a0  {a0}  done, 2 trials void$", printed(store), re.M)


def test_each_metric_of_each_benchmark_has_a_grid_of_its_own(store):
    maker.fill(store, tier("azure-a0", names=("azure-a0", "azure-a1")))
    maker.fill(store, tier("azure-a1", names=("azure-a0", "azure-a1")))
    found = grids(of_group(store))
    assert [(g.benchmark, g.metric, g.compared) for g in found] == [
        ("tcp-goodput", "goodput", True),
        ("tcp-latency", "latency_one_way", True),
        ("tcp-goodput", "retransmits", False),
    ]
    text = printed(store)
    # A count on the host may be zero, so what is told is the count itself.
    assert re.search(r"^tcp-goodput: retransmits, lower is better", text, re.M)
    assert "ratio" not in text.split("retransmits, lower")[1].split("\n\n")[0]


def test_the_host_alone_is_a_grid_too(store):
    run = tier("azure-a0", names=("azure-a0",), variants=(maker.HOST,))
    measured(store, run, {maker.HOST: [4.7e6, 4.8e6]})
    (grid,) = grids(of_group(store))
    assert (grid.variants, grid.compared) == ((), False)
    assert re.search(r"^azure-a0 +4.75 \(4.70–4.80\) *$", printed(store), re.M)


def test_tiers_of_very_different_rates_keep_their_digits(store):
    names = ("azure-a0", "azure-a8")
    measured(store, tier("azure-a0", names=names, variants=(maker.HOST,)), {maker.HOST: [4.721e6] * 2})
    measured(store, tier("azure-a8", names=names, variants=(maker.HOST,)), {maker.HOST: [2480.4e6] * 2})
    text = printed(store)
    assert re.search(r"^azure-a0 +4.72 *$", text, re.M)
    assert re.search(r"^azure-a8 +2480 *$", text, re.M)


# -- pairs of zones ---------------------------------------------------------------------------------

ZONES = {"node1": "a", "node2": "b", "node3": "c"}
PAIRS = [("node1", "node2"), ("node1", "node3"), ("node2", "node3")]


def between_zones(store, run, until=None, zones=ZONES):
    run = replace(run, zones=zones, nodes={name: {} for name in zones})
    trials = [
        replace(t, position=3 * t.position + i, client_node=client, server_node=server)
        for t in maker.plan(run, [maker.TCP])
        for i, (client, server) in enumerate(PAIRS)
    ]
    trials.sort(key=lambda t: (t.block, t.position))
    run_id = store.begin_run(run, trials)
    for trial_id, trial in store.pending_trials(run_id)[:until]:
        value = {"node2": 90e6, "node3": 80e6}[trial.server_node] + (
            0 if trial.client_node == "node1" else 5e6
        )
        result = maker.result(trial, random.Random(1))
        store.finish_trial(trial_id, replace(result, samples=(Sample("goodput", value),)))
    store.set_run_state(run_id, "done" if until is None else "interrupted")
    return run_id


def test_a_run_has_a_table_for_each_pair_of_zones(store):
    run_id = between_zones(store, maker.RUN)
    found = report(store, run_id, headers).tables
    assert [(t.where, t.rows[0].median) for t in found] == [
        ("a to b", 90e6),
        ("a to c", 80e6),
        ("b to c", 85e6),
    ]


def test_a_run_that_has_only_one_pair_yet_names_it_all_the_same(store):
    run_id = between_zones(store, maker.RUN, until=1)
    assert [t.where for t in report(store, run_id, headers).tables] == ["a to b"]


def test_pairs_whose_zones_do_not_tell_them_apart_are_named_by_nodes(store):
    run_id = between_zones(store, maker.RUN, zones={"node1": "a", "node2": "b", "node3": "b"})
    assert [t.where for t in report(store, run_id, headers).tables] == [
        "node1 to node2",
        "node1 to node3",
        "node2 to node3",
    ]


def test_a_grid_keeps_pairs_of_zones_apart(store):
    names = ("azure-a0", "azure-a1")
    between_zones(store, tier("azure-a0", names=names))
    between_zones(store, tier("azure-a1", names=names), until=1)
    found = grids(of_group(store))
    assert [g.where for g in found] == ["a to b", "a to c", "b to c"]
    assert [[line.table is not None for line in g.lines] for g in found] == [
        [True, True],
        [True, False],
        [True, False],
    ]
    assert "tcp-goodput (b to c): goodput, Mbit/s" in printed(store)
