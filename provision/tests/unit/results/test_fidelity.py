"""Verdicts on published ratios: by the intervals, and by what the accelerator can give."""

import pytest

from overlaylab.results.fidelity import Lab, Load, Verdict, hindrance, judge, load_of
from overlaylab.stats.inference import Interval, median_ratio

A0 = Interval(0.840, 1.060)
A1 = Interval(0.721, 0.737)
FASTDP_8950 = Interval(114.5 / 115.5, 115.5 / 114.5)
T2_SMALL = Interval(0.266, 0.354, 0.95)
M4_XLARGE = Interval(0.844, 1.122, 0.95)
IDLE, BUSY = Load(0.8, 1), Load(0.02, 1)


def lab(low, high, n=6, accelerator="kvm", headers=0.957, load=IDLE, host_load=IDLE, not_in_force=None):
    interval = Interval(low, high, 0.96875) if n >= 6 else None
    return Lab(accelerator, (low + high) / 2, n, interval, headers, load, host_load, not_in_force)


def said(measured, published, metric="goodput"):
    return judge(measured, metric, published)


# -- by the intervals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "published", "word"),
    [
        (0.993, 0.995, FASTDP_8950, "reproduced"),  # 1.000 as printed, .994 by headers
        (0.290, 0.320, T2_SMALL, "reproduced"),
        (0.725, 0.730, A1, "reproduced"),
        (0.360, 0.380, T2_SMALL, "differs"),
        (0.500, 0.550, A1, "differs"),
        (1.20, 1.30, A0, "differs"),
        (0.955, 0.960, A0, "cannot tell"),
        (0.955, 0.960, M4_XLARGE, "cannot tell"),
        (0.850, 1.050, FASTDP_8950, "cannot tell"),
        (0.270, 0.340, T2_SMALL, "cannot tell"),  # .34 of .266 is a quarter more
    ],
)
def test_the_verdict_is_by_the_intervals(low, high, published, word) -> None:
    assert said(lab(low, high), published).word == word


def test_a_step_that_leaves_open_whether_there_is_a_cost_is_said() -> None:
    assert said(lab(0.955, 0.960), A0).reason == (
        "the published interval leaves open whether the overlay costs anything"
    )
    assert said(lab(0.85, 1.05), FASTDP_8950).reason.startswith("the lab's interval leaves open")


def test_intervals_that_meet_but_are_wide_show_no_agreement() -> None:
    assert said(lab(0.27, 0.34), T2_SMALL) == Verdict(
        "cannot tell", "the intervals meet, but allow for a difference of 31%"
    )


def test_a_small_gap_to_a_figure_without_spread_is_no_difference() -> None:
    assert said(lab(0.700, 0.714), A1) == Verdict(
        "cannot tell",
        "published without its spread: 1.0% apart, where repeated runs elsewhere are up to 12% apart",
    )
    assert said(lab(0.60, 0.66), A1) == Verdict(
        "cannot tell",
        "published without its spread: 9% apart, where repeated runs elsewhere are up to 12% apart",
    )
    assert said(lab(0.60, 0.64), A1).word == "differs"
    # With a spread of its own, its interval says it all.
    assert said(lab(0.36, 0.37), T2_SMALL).word == "differs"


def test_a_latency_is_judged_alike() -> None:
    published = Interval(1.446, 1.454)
    assert said(lab(1.43, 1.46, headers=None), published, "latency_one_way") == Verdict("reproduced")
    assert said(lab(1.10, 1.20, headers=None), published, "latency_one_way") == Verdict("differs")


def test_no_interval_no_verdict() -> None:
    assert said(lab(0.72, 0.73, n=5), A1) == Verdict("cannot tell", "5 blocks: an interval takes six")
    assert said(lab(0.72, 0.73, n=1), A1).reason == "1 block: an interval takes six"
    assert said(lab(0.72, 0.73), None) == Verdict(
        "cannot tell", "how exactly the publication's figures are known was not said"
    )


def test_one_tool_step_of_the_lab_is_no_difference_either() -> None:
    # qperf's 17 and 18 messages here, one figure in the publication: everything overlaps.
    interval = median_ratio([(17.0, 18.0)] * 6, step=1.0)
    measured = Lab("kvm", 17 / 18, 6, interval, 0.957, IDLE, IDLE, None)
    assert said(measured, A0).word == "cannot tell"


# -- by the accelerator -----------------------------------------------------------------------------


def test_a_difference_of_an_emulated_cpu_is_not_reproducible() -> None:
    assert said(lab(0.27, 0.32, accelerator="tcg", load=BUSY), A1) == Verdict(
        "not reproducible", "CPU-bound: 2% idle, on emulated CPU"
    )
    assert said(lab(0.27, 0.32, accelerator="kvm", load=BUSY), A1) == Verdict("differs")


def test_agreement_on_a_busy_emulated_cpu_is_luck() -> None:
    assert said(lab(0.725, 0.730, accelerator="tcg", load=BUSY), A1) == Verdict(
        "cannot tell", "agrees, but that is luck here: CPU-bound: 2% idle, on emulated CPU"
    )


def test_a_busy_baseline_is_no_baseline() -> None:
    found = hindrance(lab(0.95, 0.96, accelerator="tcg", host_load=BUSY), "goodput", A1)
    assert found == "the host network itself is CPU-bound: 2% idle, on emulated CPU"


def test_below_the_headers_an_emulated_cpu_decides() -> None:
    measured = lab(0.27, 0.32, accelerator="tcg", load=Load(0.12, 1))
    assert said(measured, A1) == Verdict(
        "not reproducible", "CPU-bound: below what headers leave, on emulated CPU, 12% idle"
    )
    # Within the 1 % that goodput is checked to, headers are the whole cost.
    assert hindrance(lab(0.948, 0.950, accelerator="tcg"), "goodput", A1) is None
    assert said(lab(0.948, 0.950, accelerator="tcg"), A1) == Verdict("differs")


def test_latency_on_an_emulated_cpu_is_the_emulations() -> None:
    measured = lab(2.0, 3.5, accelerator="tcg", headers=None)
    verdict = said(measured, Interval(0.998, 1.002), "latency_one_way")
    assert verdict.word == "not reproducible"
    assert verdict.reason.startswith("CPU-bound: what an overlay adds to latency is CPU time")


def test_what_is_not_in_force_hinders_on_any_accelerator() -> None:
    reason = "the tier is not in force: rtt-idle 0.080 ms, no netem"
    measured = lab(2.0, 3.5, headers=None, not_in_force=reason)
    assert said(measured, Interval(1.4, 1.5), "latency_one_way") == Verdict("not reproducible", reason)


def test_two_real_cpus_differ_where_the_publication_was_cpu_bound_too() -> None:
    busy = lab(0.5, 0.55, accelerator="shared-kernel", load=Load(0.04, 2))
    assert said(busy, A1) == Verdict(
        "not reproducible", "CPU-bound there and here (2% of 2 CPUs idle), on two different CPUs"
    )
    assert said(lab(0.5, 0.55, accelerator="shared-kernel"), A1).word == "differs"
    # By headers alone as published: then this CPU's load is a difference.
    assert (
        said(lab(0.5, 0.55, accelerator="shared-kernel", load=BUSY), Interval(0.95, 0.96)).word == "differs"
    )


# -- the CPU while a trial ran ----------------------------------------------------------------------


def counters(uptime, idle, busy):
    return {"uptime": uptime, "cpu": {"idle": idle, "iowait": 0, "system": busy, "steal": 0}}


def test_idle_time_around_the_trial_is_not_the_trials() -> None:
    # A receiver's node under TCG (Weave sleeve, 27 Mbit/s): 9 % idle between the counters, 4 % while data came.
    before = {
        "cpu": {"idle": 1880, "iowait": 9, "softirq": 110, "system": 2687, "user": 5302},
        "uptime": 104.98,
    }
    after = {
        "cpu": {"idle": 1937, "iowait": 9, "softirq": 219, "system": 2947, "user": 5489},
        "uptime": 111.33,
    }
    load = load_of(before, after, 6)
    assert (load.share, load.cpus, load.bound) == (pytest.approx(0.040, abs=5e-4), 1, True)


def test_a_node_that_idles_is_not_bound() -> None:
    load = load_of(counters(0.0, 0, 0), counters(6.0, 300, 300), 6)
    assert (load.share, load.bound) == (0.5, False)
    assert load_of(counters(0.0, 0, 0), counters(6.0, 0, 600), 6).share == 0.0


def test_one_full_cpu_of_two_may_be_the_limit() -> None:
    one_full = load_of(counters(0.0, 0, 0), counters(6.0, 600, 600), 6)
    assert (one_full.cpus, one_full.idle, one_full.bound) == (2, pytest.approx(1.0), True)
    half = load_of(counters(0.0, 0, 0), counters(6.0, 900, 300), 6)
    assert (half.idle, half.bound) == (pytest.approx(1.5), False)
    found = hindrance(lab(0.27, 0.32, accelerator="tcg", load=one_full), "goodput", A1)
    assert found == "CPU-bound: 50% of 2 CPUs idle, so one may be full, on emulated CPU"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"load": 0.1}, {"load": 0.9}),
        (counters(5.0, 0, 0), counters(5.0, 0, 0)),
        (counters(5.0, 7, 7), counters(6.0, 7, 7)),
    ],
)
def test_counters_that_say_nothing_give_no_load(before, after) -> None:
    assert load_of(before, after, 6) is None
