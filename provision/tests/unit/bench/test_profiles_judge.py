"""Judging what a profile does: loss against rate, buckets that empty and refill, declared loss and jitter."""

import math
import random
from dataclasses import replace

import pytest

from overlaylab.bench import profiles_judge
from overlaylab.bench.profiles_judge import Cap, Second, Udp
from overlaylab.bench.profiles_table import Proved, targets
from overlaylab.core.model import ProfileCheck
from overlaylab.specs.profile import load_profile, varied
from overlaylab.stats.samples import proportion

CAP = Cap(rate=100e6, burst=100_000, queue=250_000, mtu=1500)
FRAME = 1490
# Datagrams of 1448 bytes that the rate carries.
PER_SECOND = 100e6 / 8 / FRAME


def udp(share: float, received: float, seconds: float = 10.0) -> Udp:
    """Sent at a share of the rate; received: as many as the rate carries in that many seconds."""
    return Udp(round(share * PER_SECOND * seconds), round(received * PER_SECOND), 1448, seconds)


def test_a_frame_has_the_headers_of_ip_udp_and_ethernet() -> None:
    assert CAP.frame(1448) == FRAME
    assert replace(CAP, overhead=24).frame(1448) == FRAME + 24
    assert CAP.goodput() == pytest.approx(100e6 * 1448 / 1514)
    assert replace(CAP, overhead=24).goodput(125e6) == pytest.approx(125e6 * 1448 / 1538)


# -- UDP against the rate ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("got", "idle", "verdict"),
    [(9.5, 0.5, "pass"), (9.492, 0.5, "pass"), (9.48, 0.5, "fail"), (9.48, 0.03, "not-applicable")],
)
def test_below_the_rate_nothing_is_lost(got, idle, verdict) -> None:
    check = profiles_judge.judge_udp("node1", "node2", 0.95, CAP, udp(0.95, got), idle)
    assert (check.name, check.unit, check.verdict) == ("udp-loss 0.95", "ratio", verdict)
    assert (check.expected, check.tolerance) == (0.0, 0.001)
    assert check.measured == pytest.approx(1 - got / 9.5, abs=1e-4)
    assert check.low <= check.measured <= check.high
    assert check.reason.startswith(
        "not testable here: offered 95 Mbit/s" if idle < 0.05 else "offered 95 Mbit/s"
    )


@pytest.mark.parametrize(
    ("got", "verdict"),
    # 10 s of the rate, and 0.028 s of burst and queue.
    [(10.028, "pass"), (10.0, "pass"), (10.2, "fail"), (9.8, "fail"), (12.0, "fail")],
)
def test_above_the_rate_what_exceeds_it_is_lost(got, verdict) -> None:
    check = profiles_judge.judge_udp("node1", "node2", 1.2, CAP, udp(1.2, got), 0.5)
    assert check.expected == pytest.approx(1 - (1 + 0.0028 * 10) / 1.2 + 0.0252 / 1.2, abs=2e-4)
    assert check.expected == pytest.approx(1 / 6 - 350_000 * 8 / 1.2e9, abs=1e-5)
    assert check.tolerance == pytest.approx(0.01 * (1 - check.expected))
    assert check.verdict == verdict


def test_loss_is_expected_of_what_was_really_offered() -> None:
    """1.19 in place of 1.2 is no lack of CPU, and loses less."""
    check = profiles_judge.judge_udp("node1", "node2", 1.2, CAP, udp(1.19, 10.028), 0.5)
    assert check.expected == pytest.approx(1 - 1 / 1.19 - 350_000 * 8 / 1.19e9, abs=1e-5)
    assert check.verdict == "pass"


def test_a_sender_that_cannot_offer_the_rate_tests_nothing() -> None:
    cap = replace(CAP, rate=972e6)
    sent = Udp(round(231e6 / 8 / FRAME * 10), 190_000, 1448, 10.0)
    check = profiles_judge.judge_udp("node1", "node2", 1.2, cap, sent, 0.01)
    assert (check.verdict, check.measured, check.low, check.high) == ("not-applicable", None, None, None)
    assert check.reason == (
        "not testable here: offered 231 of 1166 Mbit/s, 1% of the busier node's CPU was idle"
    )


def test_packets_are_a_fact() -> None:
    check = profiles_judge.judge_packets("node1", "node2", Udp(400_000, 352_500, 64, 3.0), CAP)
    assert (check.expected, check.measured, check.unit, check.verdict) == (None, 117_500, "1/s", "pass")
    assert check.reason == "64-byte datagrams; sent 133333 a second, which is 100% of the rate"
    assert (
        profiles_judge.judge_packets("a", "b", Udp(3, 3, 64, 1.0), None).reason
        == "64-byte datagrams; sent 3 a second"
    )


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.97, "pass"), (1.009, "pass"), (1.011, "fail"), (2, "fail")]
)
def test_all_that_leaves_a_node_shares_its_cap(share, verdict) -> None:
    check = profiles_judge.judge_together("node1", CAP, share * CAP.goodput())
    assert (check.verdict, check.tolerance) == (verdict, 0.0)
    assert check.expected == pytest.approx(1.01 * 100e6 * 1448 / 1514)


# -- two rates --------------------------------------------------------------------------------------

T2 = Cap(rate=972e6, burst=972_000, queue=2_430_000, mtu=9001)
SUSTAINED = 125e6
# Bytes that 972 Mbit/s take off at 125 Mbit/s of refill in 10 s.
BUCKET = 1.05875e9


def transfer(
    bucket: float = BUCKET,
    rate: float = 972e6,
    seconds: float = 25,
    sustained: float = SUSTAINED,
    noise: float = 0.0,
) -> list[Second]:
    """What a receiver counts in quarters of a second of a transfer that begins with so full a bucket."""
    chance = random.Random(1)
    level, series, at = bucket, [], 0.0
    application = T2.goodput() / T2.rate
    while at < seconds - 1e-9:
        most = min(rate / 8 * 0.25, max(level, 0.0) + sustained / 8 * 0.25)
        level += sustained / 8 * 0.25 - most
        series.append(Second(at, at + 0.25, most * application * (1 + chance.gauss(0, noise))))
        at += 0.25
    return series


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_the_bytes_above_the_sustained_rate_are_the_buckets(noise) -> None:
    found = profiles_judge.drained(transfer(noise=noise), T2, SUSTAINED)
    assert found.burst == pytest.approx(BUCKET, rel=0.002)
    assert found.carried == pytest.approx(T2.goodput(), rel=0.003)
    assert found.sustained == pytest.approx(T2.goodput(SUSTAINED), rel=0.003)
    assert found.at == pytest.approx(10.0, abs=0.3)


def test_a_slower_node_takes_longer_and_the_bytes_still_count() -> None:
    burst, rest = profiles_judge.judge_bucket("node1", "node2", BUCKET, SUSTAINED, T2, transfer(rate=600e6))
    assert burst == ProfileCheck(
        "burst-bytes", "node1", "node2", BUCKET, pytest.approx(BUCKET, rel=0.002), BUCKET * 0.05, "bytes", "pass",
        "carried 595.6 Mbit/s for 17.8 s",
    )  # fmt: skip
    assert (rest.name, rest.verdict) == ("sustained", "pass")
    assert rest.expected == pytest.approx(125e6 * 8949 / 9015)


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.94, "fail"), (0.96, "pass"), (1.04, "pass"), (1.06, "fail")]
)
def test_a_bucket_of_another_size_fails(share, verdict) -> None:
    burst, _ = profiles_judge.judge_bucket("node1", "node2", BUCKET, SUSTAINED, T2, transfer(BUCKET * share))
    assert (burst.verdict, burst.measured) == (verdict, pytest.approx(BUCKET * share, rel=0.002))


def test_another_sustained_rate_fails() -> None:
    _, rest = profiles_judge.judge_bucket("node1", "node2", BUCKET, SUSTAINED, T2, transfer(sustained=123e6))
    assert (rest.verdict, rest.measured) == ("fail", pytest.approx(T2.goodput(123e6), rel=1e-3))


@pytest.mark.parametrize("rate", [120e6, 300e6])
def test_a_bucket_that_was_not_emptied_tells_nothing(rate) -> None:
    checks = profiles_judge.judge_bucket("node1", "node2", BUCKET, SUSTAINED, T2, transfer(rate=rate))
    carried = rate * 8949 / 9015 / 1e6
    for check in checks:
        assert (check.verdict, check.measured) == ("not-applicable", None)
        assert (
            check.reason == f"not testable here: carried {carried:.4g} Mbit/s, which did not empty the bucket"
        )


def test_a_pause_gives_back_what_the_sustained_rate_refills() -> None:
    back = SUSTAINED / 8 * 20
    again = transfer(back, seconds=12)
    check = profiles_judge.judge_refill("node1", "node2", BUCKET, SUSTAINED, T2, 20.0, again)
    assert (check.verdict, check.expected) == ("pass", back)
    assert check.measured == pytest.approx(back, rel=0.01)
    assert check.tolerance == pytest.approx(0.05 * back + 972e6 / 8 * 0.1)
    assert profiles_judge.judge_refill("a", "b", BUCKET, SUSTAINED, T2, 30.0, again).verdict == "fail"
    assert profiles_judge.judge_refill("a", "b", back / 2, SUSTAINED, T2, 30.0, again).expected == back / 2
    none = profiles_judge.judge_refill("a", "b", BUCKET, SUSTAINED, T2, 20.0, transfer(0.0, seconds=12))
    assert (none.verdict, none.measured, none.reason) == ("fail", None, "nothing burst after 20.0 s")


# -- loss and jitter --------------------------------------------------------------------------------


def test_a_binomial_interval_is_exact() -> None:
    """C. J. Clopper and E. S. Pearson: none of ten, and one of ten."""
    assert proportion(0, 10) == (0.0, pytest.approx(1 - 0.025 ** (1 / 10)))
    assert proportion(1, 10) == (pytest.approx(0.002529, abs=1e-6), pytest.approx(0.445016, abs=1e-6))


@pytest.mark.parametrize(
    ("lost", "verdict"),
    # 200 are expected; their standard deviation is 14.
    [(200, "pass"), (158, "pass"), (246, "pass"), (150, "fail"), (255, "fail"), (0, "fail")],
)
def test_declared_loss_lies_in_the_interval(lost, verdict) -> None:
    check = profiles_judge.judge_loss("node1", "node2", 0.01, Udp(20_000, 20_000 - lost, 1448, 5.0))
    assert (check.verdict, check.expected, check.measured) == (verdict, 0.01, pytest.approx(lost / 20_000))
    assert (check.low, check.high) == proportion(lost, 20_000)
    assert check.reason.startswith(f"{lost} of 20000, 95 %: ")


def rtts(jitter: float, spread: float, count: int = 2000, outliers: int = 0) -> list[float]:
    chance = random.Random(7)
    values = [
        0.002 + chance.uniform(-jitter, jitter) + chance.uniform(-jitter, jitter) + chance.gauss(0, spread)
        for _ in range(count)
    ]
    values[:outliers] = [0.05] * outliers
    return values


@pytest.mark.parametrize("outliers", [0, 20])
def test_two_uniform_delays_spread_as_their_sum(outliers) -> None:
    without, with_jitter = rtts(0, 60e-6), rtts(300e-6, 60e-6, outliers=outliers)
    check = profiles_judge.judge_jitter("node1", "node2", 300e-6, without, with_jitter)
    assert check.expected == pytest.approx(300e-6 * math.sqrt(2 / 3))
    assert (check.verdict, check.measured) == ("pass", pytest.approx(check.expected, rel=0.05))
    assert check.reason == "2000 pings; without jitter they spread by 60 µs"


def test_jitter_of_another_size_fails() -> None:
    check = profiles_judge.judge_jitter("node1", "node2", 300e-6, rtts(0, 60e-6), rtts(240e-6, 60e-6))
    assert (check.verdict, check.tolerance) == ("fail", pytest.approx(0.1 * check.expected))


def test_a_machine_that_spreads_more_than_the_jitter_tells_nothing() -> None:
    check = profiles_judge.judge_jitter("node1", "node2", 100e-6, rtts(0, 200e-6), rtts(100e-6, 200e-6))
    assert check.verdict == "not-applicable"
    assert check.reason.startswith("not testable here: 2000 pings; without jitter they spread by ")


@pytest.mark.parametrize(("overtaken", "verdict"), [(0, "pass"), (1, "fail")])
def test_no_datagram_overtakes_another(overtaken, verdict) -> None:
    check = profiles_judge.judge_overtaken("node1", "node2", Udp(10, 10, 1448, 1.0, overtaken))
    assert (check.verdict, check.measured, check.tolerance) == (verdict, overtaken, 0.0)


# -- the targets ------------------------------------------------------------------------------------


def goodput(expected: float, measured: float, verdict: str = "pass") -> ProfileCheck:
    return ProfileCheck("goodput", "node1", "node2", expected, measured, expected / 100, "bit/s", verdict)


def test_targets_tell_what_was_met_and_the_farthest() -> None:
    a1, a3, t2 = (load_profile(name) for name in ("azure-a1", "azure-a3", "aws-t2.small"))
    rtt = ProfileCheck("rtt-idle", "node1", "node2", 1e-3, 1.02e-3, 5e-5, "s", "pass")
    burst = ProfileCheck("burst-bytes", "node1", "node2", 1e9, 1.2e9, 5e7, "bytes", "fail")
    proved = [
        Proved("pair", a1, "r1", "done", (goodput(95e6, 95.19e6), rtt)),
        Proved("pair", a3, "r2", "done", (goodput(382e6, 200e6, "not-applicable"),)),
        Proved("pair", t2, "r3", "done", (goodput(965e6, 964e6),)),
        Proved("pair", varied(t2, "bucket/30"), "r4", "done", (burst,)),
    ]
    assert [target.line() for target in targets(proved)] == [
        "goodput within 1 % of theory up to 400 Mbit/s, segmented: met, 1 of 1; 1 not testable here"
        "; farthest: 0.20%, azure-a1 node1 to node2",
        "goodput within 1 % of theory, the others: met, 1 of 1; farthest: 0.10%, aws-t2.small node1 to node2",
        "idle RTT within 5 % or 50 µs: met, 1 of 1; farthest: 2.00%, azure-a1 node1 to node2",
        "burst bytes within 5 %: MISSED, 0 of 1; farthest: 20.00%, aws-t2.small bucket/30 node1 to node2",
    ]
    assert targets([])[0].line().endswith("segmented: not measured")
