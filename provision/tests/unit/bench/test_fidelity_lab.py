"""Which runs count for a published pair, what would have to be measured, and the table that people read."""

import random
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from overlaylab.bench import fidelity_lab, fidelity_table
from overlaylab.core.errors import UserError
from overlaylab.core.model import ProfileCheck, Sample
from overlaylab.specs.profile import load_profile
from overlaylab.store.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "results"
sys.path.insert(0, str(FIXTURES))
import maker  # noqa: E402

HEADERS = {"fastdp": 50, "sleeve": 62}
# Ratios of goodput in six blocks.
SIX = [0.70, 0.71, 0.72, 0.73, 0.74, 0.75]


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "lab.sqlite") as opened:
        opened.db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        yield opened


@pytest.fixture(scope="module")
def known():
    return fidelity_lab.tiers()


def headers(variant):
    return HEADERS.get(variant.key)


def pair(store, instance="A1", metric="goodput", **more):
    (one,) = [
        p
        for p in fidelity_lab.published_pairs(store)
        if (p.instance, p.metric) == (instance, metric)
        and all(getattr(p, key) == value for key, value in more.items())
    ]
    return one


def on(name, **changes):
    """A run on a tier as it is described now, host against sleeve."""
    profile = load_profile(name)
    run = replace(
        maker.RUN,
        profile=name,
        profile_digest=profile.digest,
        stands_for=profile.stands_for,
        variants=(maker.HOST, maker.SLEEVE),
    )
    return replace(run, **changes)


def measure(store, run, ratios=SIX, variant=maker.SLEEVE, idle=0.5, **changes):
    """A run whose blocks have these ratios of goodput; idle: share of the overlay's CPU time in its trials."""
    run = replace(run, blocks=len(ratios))
    results = {}
    for trial in maker.plan(run, [maker.TCP]):
        overlay = trial.variant == variant
        value = 95e6 * (ratios[trial.block - 1] if overlay else 1)
        share = idle if overlay else 0.9
        usual = maker.result(trial, random.Random(1))
        counters = {"idle": 600 * share, "iowait": 0, "user": 600 * (1 - share)}
        state = {
            "before": {"uptime": 10.0, "cpu": dict.fromkeys(counters, 0)},
            "after": {"uptime": 16.0, "cpu": counters},
        }
        results[trial.block, trial.variant, trial.benchmark] = replace(
            usual,
            samples=(Sample("goodput", value),),
            node_state={
                "node1": {
                    "before": state["before"],
                    "after": {**state["after"], "cpu": {**counters, "idle": 600}},
                },
                "node2": state,
            },
            **changes,
        )
    return maker.fill(store, run, benchmarks=[maker.TCP], results=results)


def evidence(store, one, known):
    return fidelity_lab.Runs(store, headers).of(one, known[fidelity_lab.tier_of(one)])


# -- which run counts -------------------------------------------------------------------------------


def test_six_blocks_give_the_median_and_its_interval(store, known) -> None:
    run_id = measure(store, on("azure-a1"))
    found = evidence(store, pair(store), known)
    assert list(found) == ["tcg"]
    one = found["tcg"]
    assert (one.run_id, one.current, one.as_printed, one.suffices(6)) == (run_id, True, True, True)
    assert (one.lab.ratio, one.lab.n) == (pytest.approx(0.725), 6)
    assert (one.lab.interval.low, one.lab.interval.high) == pytest.approx((0.70, 0.75))
    assert one.lab.interval.coverage == 0.96875
    assert one.lab.headers == pytest.approx(0.9572, abs=5e-5)
    assert one.lab.load.share == pytest.approx(0.5) and one.lab.host_load.share == pytest.approx(0.9)
    # The invented run's own idle RTT could not be held to the tier, its goodput could.
    assert one.lab.not_in_force is None


def test_a_pair_of_another_tier_metric_or_mode_has_no_run(store, known) -> None:
    measure(store, on("azure-a1"))
    assert evidence(store, pair(store, "A2"), known) == {}
    assert evidence(store, pair(store, metric="latency_one_way"), known) == {}
    assert evidence(store, pair(store, "t2.medium", mode="fastdp", mtu=1410), known) == {}


def test_accelerators_are_never_pooled(store, known) -> None:
    measure(store, on("azure-a1"))
    measure(store, on("azure-a1", accelerator="kvm"), [0.9] * 6)
    found = evidence(store, pair(store), known)
    assert {name: round(one.lab.ratio, 3) for name, one in found.items()} == {"kvm": 0.9, "tcg": 0.725}


def test_the_newest_run_counts_unless_it_says_less(store, known) -> None:
    first = measure(store, on("azure-a1"))
    store.db.execute("UPDATE _run SET created_at = '2000-01-01T00:00:00.000Z' WHERE run_id = ?", (first,))
    second = measure(store, on("azure-a1"), [0.8] * 6)
    store.db.execute("UPDATE _run SET created_at = '2001-01-01T00:00:00.000Z' WHERE run_id = ?", (second,))
    measure(store, on("azure-a1"), [0.5])  # one block
    measure(store, on("azure-a1", profile_digest="x" * 64), [0.6] * 6)  # the profile has changed since
    measure(store, on("azure-a1", profile="azure-a1 mtu=9001"), [0.4] * 6)  # a variation
    measure(store, on("azure-a1", zones={"node1": "a", "node2": "b"}), [0.3] * 6)
    unfinished = measure(store, on("azure-a1"), [0.2] * 6)
    store.set_run_state(unfinished, "interrupted")
    assert evidence(store, pair(store), known)["tcg"].run_id == second


def test_a_run_of_an_earlier_profile_is_shown_but_does_not_suffice(store, known) -> None:
    measure(store, on("azure-a1", profile_digest="x" * 64))
    one = evidence(store, pair(store), known)["tcg"]
    assert (one.current, one.suffices(6)) == (False, False)


def test_fewer_blocks_suffice_only_where_no_more_are_asked_for(store, known) -> None:
    measure(store, on("azure-a1"), SIX[:3])
    one = evidence(store, pair(store), known)["tcg"]
    assert [one.suffices(n) for n in (2, 3, 4, 6, 10)] == [True, True, False, False, False]


def test_a_published_mtu_has_to_be_the_labs(store, known) -> None:
    run = on("aws-t2.medium", variants=(maker.HOST, maker.FASTDP))
    measure(store, run, variant=maker.FASTDP, overlay_mtu=8950, underlay_mtu=9001)
    at_8950 = evidence(store, pair(store, "t2.medium", mode="fastdp", mtu=8950), known)["tcg"]
    assert at_8950.lab.headers == pytest.approx(0.9944, abs=1e-4)
    assert evidence(store, pair(store, "t2.medium", mode="fastdp", mtu=1410), known) == {}


def test_an_mtu_that_was_told_counts_though_its_headers_leave_less(store, known) -> None:
    told = on("aws-t2.medium", arguments={"arguments": "overlay_weave_mtu=8950"})
    run_id = measure(store, told, [0.04] * 6, overlay_mtu=8939, underlay_mtu=9001)
    at_8950 = evidence(store, pair(store, "t2.medium", mode="sleeve", mtu=8950), known)["tcg"]
    assert (at_8950.run_id, at_8950.lab.ratio) == (run_id, pytest.approx(0.04))
    other = on("aws-t2.medium", arguments={"arguments": "overlay_weave_range=10.200.0.0/16"})
    measure(store, other, [0.5] * 6, overlay_mtu=8939, underlay_mtu=9001)
    again = evidence(store, pair(store, "t2.medium", mode="sleeve", mtu=8950), known)["tcg"]
    assert again.run_id == run_id


def test_where_no_mtu_was_printed_the_overlays_own_counts_first(store, known) -> None:
    plain = measure(store, on("aws-t2.medium"), overlay_mtu=8939, underlay_mtu=9001)
    store.db.execute("UPDATE _run SET created_at = '2000-01-01T00:00:00.000Z' WHERE run_id = ?", (plain,))
    asked = on("aws-t2.medium", arguments={"arguments": "overlay_weave_mtu=8900"})
    measure(store, asked, [0.5] * 6, overlay_mtu=8900, underlay_mtu=9001)
    unsaid = pair(store, "t2.medium", mode="sleeve", mtu=None)
    assert evidence(store, unsaid, known)["tcg"].run_id == plain
    store.set_run_state(plain, "interrupted")
    assert evidence(store, unsaid, known)["tcg"].as_printed is False


def test_what_the_runs_own_checks_say_of_the_tier_is_kept(store, known) -> None:
    run_id = measure(store, on("azure-a1"))
    reason = "the nodes' CPU carries 60 Mbit/s and no more on this accelerator"
    check = ProfileCheck("goodput", "node1", "node2", 95.6e6, 60e6, 1e6, "bit/s", "not-applicable", reason)
    store.add_profile_check(run_id, check)
    one = evidence(store, pair(store), known)["tcg"]
    assert one.lab.not_in_force == f"the tier is not in force: goodput 60.00 Mbit/s, {reason}"


def test_latency_is_not_the_tiers_where_its_rtt_was_not(store, known) -> None:
    maker.fill(store, on("azure-a1"))
    one = evidence(store, pair(store, metric="latency_one_way"), known)["tcg"]
    assert one.lab.not_in_force == (
        "the tier is not in force: rtt-idle 1.510 ms, the accelerator's own RTT is above the target"
    )


# -- what is needed ---------------------------------------------------------------------------------


def test_runs_are_derived_from_the_published_rows(store, known) -> None:
    found = fidelity_lab.runs_needed(fidelity_lab.published_pairs(store), known)
    assert [(one.profile, one.overlay, one.modes, one.arguments) for one in found] == [
        ("aws-t2.small", "docker-overlay", "vxlan", None),
        ("aws-m4.xlarge", "docker-overlay", "vxlan", None),
        ("digitalocean", "docker-overlay", "vxlan", None),
        ("azure-a0", "weave", "sleeve", None),
        ("azure-a1", "weave", "sleeve", None),
        ("azure-a2", "weave", "sleeve", None),
        ("azure-a3", "weave", "sleeve", None),
        ("azure-a8", "weave", "sleeve", None),
        ("azure-d1", "weave", "sleeve", None),
        ("azure-d2", "weave", "sleeve", None),
        ("aws-t2.medium", "weave", "sleeve", None),
        ("aws-t2.medium", "weave", "fastdp", "overlay_weave_mtu=1410"),
        ("aws-t2.medium", "weave", "sleeve,fastdp", "overlay_weave_mtu=8950"),
        ("aws-t2.medium", "flannel", "vxlan", "overlay_flannel_mtu=8951"),
    ]
    assert [len(one.pairs) for one in found] == [1] * 3 + [2] * 7 + [1, 1, 2, 1]


def test_what_cannot_be_judged_is_named(store, known) -> None:
    found = fidelity_lab.published_pairs(store)
    assert fidelity_lab.left_out(found, known) == {}
    other = [replace(one, overlay="nebula") for one in found if one.mode == "fastdp"]
    assert fidelity_lab.left_out(other, known) == {
        "overlay not in the lab yet": ["nebula fastdp on AWS t2.medium"]
    }
    without = {tier: profiles for tier, profiles in known.items() if tier != ("Azure", "A8")}
    assert fidelity_lab.left_out(found, without)["no profile stands for the tier"] == ["Azure A8"]


def test_profiles_are_chosen_by_name(store, known) -> None:
    found = fidelity_lab.published_pairs(store)
    some = fidelity_lab.chosen("azure-a1, azure-a0", found, known)
    assert {p.instance for p in some} == {"A0", "A1"} and len(some) == 4
    assert fidelity_lab.chosen(None, found, known) == found
    with pytest.raises(UserError, match=r"PROFILES: must be profiles of tiers that something was published"):
        fidelity_lab.chosen("none", found, known)
    with pytest.raises(UserError, match="azure-a1"):
        fidelity_lab.chosen("azure-a11", found, known)


# -- the table --------------------------------------------------------------------------------------


def printed(store, known, profiles=None, width=120):
    found = fidelity_lab.chosen(profiles, fidelity_lab.published_pairs(store), known)
    made = fidelity_lab.lines(store, found, known, headers)
    out = StringIO()
    fidelity_table.show(
        made, fidelity_lab.left_out(found, known), Console(file=out, width=width, highlight=False)
    )
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def test_the_table(store, known, golden) -> None:
    measure(store, on("azure-a0"), [0.955, 0.956, 0.957, 0.957, 0.958, 0.960])
    measure(store, on("azure-a1"), [0.26, 0.27, 0.28, 0.29, 0.30, 0.31], idle=0.02)
    measure(store, on("azure-a1", accelerator="shared-kernel", provider="lxc"))
    measure(store, on("azure-a2", profile_digest="x" * 64), [0.4, 0.41])
    run = on("aws-t2.medium", variants=(maker.HOST, maker.FASTDP), accelerator="kvm")
    ratios = [0.992, 0.993, 0.994, 0.994, 0.995, 0.996]
    measure(store, run, ratios, variant=maker.FASTDP, overlay_mtu=8950, underlay_mtu=9001)
    text = printed(store, known)
    golden(FIXTURES / "fidelity-120.txt", text)
    assert max(map(len, text.splitlines())) <= 120


def test_one_tier_alone(store, known) -> None:
    text = printed(store, known, "azure-a1")
    assert "\nazure-a1\n" in text and "azure-a2" not in text
    assert "2 of 2 not measured: ./task bench:fidelity measures what is missing." in text


def test_letters_do_not_end() -> None:
    notes = fidelity_table.Notes()
    marks = [notes.mark(str(n)) for n in range(54)]
    assert (marks[0], marks[25], marks[26], marks[53]) == ("a", "z", "aa", "bb")
    assert notes.marks(["0", "2"]) == " ac" and notes.marks(["0", "26"]) == " a,aa"
    assert notes.marks([]) == ""
