"""From interval series, RTTs and counts to a tier's numbers."""

import json
import math
import random
from pathlib import Path

import pytest

from overlaylab.bench import calibration
from overlaylab.bench.calibration import CalibrationError, Carried, carried, slower
from overlaylab.core.model import Sample

FIXTURES = Path(__file__).parents[2] / "fixtures" / "calibration"


def series(*values: float) -> list[Sample]:
    """Goodput, Mbit/s, second by second, and the whole, as the parser gives them."""
    whole = Sample("goodput", sum(values) / len(values) * 1e6)
    return [whole, *(Sample("goodput", v * 1e6, float(t), t + 1.0) for t, v in enumerate(values))]


def noisy(mean: float, spread: float, count: int, seed: int = 7) -> list[float]:
    draw = random.Random(seed)
    return [draw.gauss(mean, spread) for _ in range(count)]


# -- levels -----------------------------------------------------------------------------------------


def test_one_rate_is_that_of_the_seconds_after_the_first() -> None:
    found = carried(series(60, *[95, 96] * 15))
    assert found == Carried(95.5e6, 95e6, 96e6, None, None, None, 0.0, 31.0, (60 + 30 * 95.5) * 1e6 / 8)


def test_noise_is_no_drop() -> None:
    found = carried(series(*noisy(95, 10, 60)))
    assert (found.sustained, found.bucket, found.late) == (None, None, None)
    assert found.rate == pytest.approx(95e6, rel=0.03)


def test_two_rates_and_the_bytes_between_them() -> None:
    """20 s at 900, 0.4 s of the next, then 125."""
    found = carried(series(*[900] * 20, 0.4 * 900 + 0.6 * 125, *[125] * 30))
    assert (found.rate, found.sustained, found.late) == (900e6, 125e6, None)
    assert found.bucket == pytest.approx(20.4 * 775e6 / 8)
    assert (found.lowest, found.highest) == (900e6, 900e6)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_where_in_a_second_the_drop_lies_changes_no_level(part: float) -> None:
    found = carried(series(*[900] * 20, part * 900 + (1 - part) * 125, *[125] * 30))
    assert (found.rate, found.sustained) == (900e6, 125e6)
    assert found.bucket == pytest.approx((20 + part) * 775e6 / 8)


def test_two_rates_under_noise() -> None:
    found = carried(series(*noisy(900, 20, 25), *noisy(250, 10, 35, seed=8)))
    assert found.rate == pytest.approx(900e6, rel=0.02)
    assert found.sustained == pytest.approx(250e6, rel=0.02)
    assert found.bucket == pytest.approx(25 * 650e6 / 8, rel=0.02)


def test_levels_that_differ_by_less_than_a_tenth_are_one() -> None:
    found = carried(series(*[100] * 21, *[91] * 20))
    assert found.sustained is None
    assert found.rate == pytest.approx(95.5e6)
    assert carried(series(*[100] * 21, *[89] * 20)).sustained == 89e6


def test_levels_within_five_times_the_noise_are_one() -> None:
    # Alternating ±4: the noise is 1.4826 × 4 = 5.9, so that 29 apart is too near and 31 is not.
    for low, accepted in ((71, False), (69, True)):
        values = [*[104, 96] * 15, *[low + 4, low - 4] * 15]
        assert (carried(series(*values)).sustained is not None) is accepted


def test_a_drop_too_near_the_end_is_told_but_not_accepted() -> None:
    found = carried(series(*[900] * 51, *[125] * 9))
    assert (found.rate, found.sustained, found.bucket, found.late) == (900e6, None, None, 125e6)
    assert carried(series(*[900] * 50, *[125] * 10)).sustained == 125e6


def test_a_dip_that_ends_is_no_drop() -> None:
    found = carried(series(*[100] * 20, *[50] * 12, *[100] * 28))
    assert (found.sustained, found.late) == (None, None)


def test_a_rise_is_no_drop() -> None:
    assert carried(series(*[50] * 30, *[100] * 30)).sustained is None


@pytest.mark.parametrize("climb", [[5], [5, 20], [5, 20, 45, 70, 80]])
def test_slow_start_does_not_count(climb: list[float]) -> None:
    found = carried(series(*climb, *[100] * 40))
    assert (found.rate, found.lowest, found.sustained, found.head) == (100e6, 100e6, None, 0.0)


def test_slow_start_before_two_rates_takes_nothing_from_the_bucket() -> None:
    found = carried(series(10, 300, *[900] * 20, *[125] * 30))
    assert (found.rate, found.sustained) == (900e6, 125e6)
    assert found.bucket == pytest.approx((175 + 20 * 775) * 1e6 / 8)


def test_a_bucket_that_is_gone_within_the_first_second_is_told() -> None:
    """As measured: 513 Mbit/s in the first second, then 94 to 97."""
    found = carried(series(513, *[94, 97, 96, 95] * 10))
    assert (found.rate, found.sustained) == (95.5e6, None)
    assert found.head == pytest.approx((513 - 95.5) * 1e6 / 8)


def test_too_few_intervals_give_no_rate() -> None:
    with pytest.raises(CalibrationError, match="3 intervals are too few"):
        carried(series(95, 95, 95))


def test_a_pause_of_a_host_does_not_count() -> None:
    found = carried(series(100, *[100, 99.8, 100.2] * 8, 92, 96.4, *[100] * 6))
    assert found.rate == pytest.approx(100e6, rel=1e-3)
    assert (found.lowest, found.highest) == (92e6, 100.2e6)


@pytest.mark.parametrize("pause", [1, 2])
def test_a_pause_at_the_end_is_no_drop(pause: int) -> None:
    found = carried(series(*[100] * 40, *[20] * pause))
    assert (found.rate, found.sustained, found.late) == (100e6, None, None)
    assert carried(series(*[100] * 40, *[20] * 3)).late == 20e6


@pytest.mark.parametrize("more", [1, 2])
def test_a_moment_of_more_at_the_beginning_is_no_rate(more: int) -> None:
    """The first interval does not count anyhow."""
    found = carried(series(*[300] * (more + 1), *[100] * 40))
    assert (found.rate, found.sustained) == (100e6, None)
    assert found.head == pytest.approx((more + 1) * 200e6 / 8)


def test_what_is_counted_in_blocks_is_not_known_to_one_block_only() -> None:
    """Three seconds of four have 18 blocks, the fourth 19: the median alone would be 1.4 % too low."""
    grain = 32768 * 8
    values = [blocks * grain / 1e6 for blocks in [18, 18, 18, 19] * 10]
    assert carried(series(18 * grain / 1e6, *values), grain).rate == pytest.approx(18.25 * grain)


# -- recorded ---------------------------------------------------------------------------------------


def recorded(name: str) -> tuple[list[Carried], dict]:
    """Both directions of a recorded calibration, and the whole of it."""
    kept = json.loads((FIXTURES / f"{name}.json").read_text())
    ways = [kept[way] for way in ("client-to-server", "server-to-client")]
    return [carried(series(*[v / 1e6 for v in way]), 32768 * 8) for way in ways], kept


@pytest.mark.parametrize(("name", "cap", "off"), [("one-rate", 100e6, 0.005), ("slow", 5e6, 0.001)])
def test_recorded_one_rate(name: str, cap: float, off: float) -> None:
    found, kept = recorded(name)
    assert [c.sustained for c in found] == [None, None]
    assert slower(found, kept["mtu"]).rate == pytest.approx(cap, rel=off)


def test_recorded_two_rates() -> None:
    found, kept = recorded("two-rates")
    rates = slower(found, kept["mtu"])
    assert rates.rate == pytest.approx(200e6, rel=0.002)
    assert rates.sustained == pytest.approx(50e6, rel=0.002)
    # 281.25 MB were in the bucket; what its keeper lets through beyond that is the keeper's.
    assert rates.bucket == pytest.approx(284.8e6, rel=0.002)


@pytest.mark.parametrize(
    ("name", "median", "jitter"), [("one-rate", 1130, 245), ("two-rates", 1020, 86), ("slow", 493, 68)]
)
def test_recorded_rtts(name: str, median: int, jitter: int) -> None:
    """None had jitter added: what is left is the emulated hosts'."""
    rtts = [us * 1e-6 for us in recorded(name)[1]["rtts_us"]]
    assert calibration.rtt(rtts)[0].median == pytest.approx(median * 1e-6, abs=1e-6)
    assert calibration.jitter(rtts) == pytest.approx(jitter * 1e-6, abs=1e-6)


# -- directions -------------------------------------------------------------------------------------


def one(rate: float) -> Carried:
    return carried(series(*[rate] * 40))


def two(rate: float, sustained: float, seconds: int = 20) -> Carried:
    return carried(series(*[rate] * seconds, *[sustained] * 30))


FACTOR = 1514 / 1448


@pytest.mark.parametrize(
    ("pair", "rate", "sustained", "bucket"),
    [
        ((one(95.6), one(94)), 94, None, None),
        ((two(900, 125), one(900)), 900, 125, 20 * 775 / 8),  # it had a larger bucket, or none
        ((one(125), two(900, 125)), 900, 125, 20 * 775 / 8),  # the first emptied it
        ((two(900, 300), one(100)), 100, None, None),  # never as fast as the other's sustained rate
        ((two(900, 125), two(800, 250, 30)), 800, 125, 20 * 775 / 8),
    ],
)
def test_the_smaller_direction_counts(pair, rate, sustained, bucket) -> None:
    found = slower(pair, 1500)
    assert found.rate == pytest.approx(rate * 1e6 * FACTOR)
    if sustained is None:
        assert (found.sustained, found.bucket) == (None, None)
    else:
        assert found.sustained == pytest.approx(sustained * 1e6 * FACTOR)
        assert found.bucket == pytest.approx(bucket * 1e6 * FACTOR)


@pytest.mark.parametrize(("mtu", "factor"), [(1500, 1514 / 1448), (9001, 9015 / 8949), (1460, 1474 / 1408)])
def test_goodput_becomes_an_l2_rate(mtu, factor) -> None:
    assert calibration.l2_factor(mtu) == pytest.approx(factor)


# -- loss, jitter, RTT ------------------------------------------------------------------------------


def test_nothing_lost_has_an_upper_bound() -> None:
    """1 − 0.025^(1/n), Clopper and Pearson."""
    found = calibration.loss(80000, 0)
    assert (found.ratio, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 80000))


def test_the_interval_of_a_loss_is_exact() -> None:
    """Bounds from the beta distribution: 10 of 1000 is 0.0048 to 0.0183 in any table."""
    found = calibration.loss(1000, 10)
    assert (found.ratio, round(found.low, 4), round(found.high, 4)) == (0.01, 0.0048, 0.0183)


def test_more_lost_than_sent_is_refused() -> None:
    with pytest.raises(ValueError):
        calibration.loss(10, 11)


def test_jitter_is_that_of_the_profiles_definition() -> None:
    draw = random.Random(7)
    rtts = [0.002 + draw.uniform(-1e-4, 1e-4) + draw.uniform(-1e-4, 1e-4) for _ in range(20000)]
    assert calibration.jitter(rtts) == pytest.approx(1e-4, rel=0.02)


def test_the_median_rtt_has_an_interval() -> None:
    found, half = calibration.rtt([0.001] * 250 + [0.0012] * 250)
    assert found.median == pytest.approx(0.0011)
    # Batches of 50: five medians of 1 ms and five of 1.2; t at 9 degrees of freedom is 2.262.
    assert half == pytest.approx(2.262 * math.sqrt(10 * 0.0001**2 / 9) / math.sqrt(10), rel=1e-3)


# -- bisection --------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [576, 577, 1400, 1460, 1499, 1500, 9001])
async def test_the_largest_that_passes_is_found(limit: int) -> None:
    asked = []

    async def passes(size: int) -> bool:
        asked.append(size)
        return size <= limit

    assert await calibration.largest(576, 9001, passes) == limit
    assert len(asked) <= 16


async def test_where_nothing_passes_there_is_none() -> None:
    async def passes(_: int) -> bool:
        return False

    assert await calibration.largest(576, 1500, passes) is None
