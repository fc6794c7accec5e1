"""Intervals, verdicts and numbers of blocks, against values worked out elsewhere."""

import random
import re

import pytest

from overlaylab.core.paths import ROOT
from overlaylab.stats.inference import (
    CANNOT_TELL,
    HIGHER,
    LOWER,
    MEDIAN_TAKES,
    SAME,
    Interval,
    Verdict,
    blocks_needed,
    claims,
    fewest_blocks,
    holm,
    looks_at,
    median_rank,
    median_ratio,
    precise,
    sign_p,
    verdicts,
    worded,
)
from overlaylab.stats.samples import ratio_of_means


@pytest.mark.parametrize(
    ("n", "rank", "coverage"),
    [
        # Conover, Practical Nonparametric Statistics, table of the sign test's quantiles.
        (6, 1, 0.96875),
        (8, 1, 0.9921875),
        (9, 2, 0.9609375),
        (10, 2, 0.978515625),
        (12, 3, 0.96142578125),
        (20, 6, 0.9586105),
    ],
)
def test_the_median_lies_between_order_statistics(n, rank, coverage) -> None:
    assert median_rank(n) == (rank, pytest.approx(coverage, abs=1e-7))


def test_below_six_there_is_none() -> None:
    assert MEDIAN_TAKES == 6
    assert [median_rank(n) for n in range(MEDIAN_TAKES)] == [None] * 6


SIX = [(90.0, 100.0), (91.0, 100.0), (92.0, 100.0), (47.0, 50.0), (93.0, 100.0), (95.0, 100.0)]


def test_six_blocks_span_all_their_ratios() -> None:
    assert median_ratio(SIX) == Interval(0.9, 0.95, pytest.approx(0.96875))
    assert median_ratio(SIX[:5]) is None


def test_nine_blocks_leave_the_outermost_out() -> None:
    blocks = [(value, 10.0) for value in (1, 2, 3, 4, 5, 6, 7, 8, 90)]
    assert median_ratio(blocks) == Interval(0.2, 0.8, pytest.approx(0.9609375))


def test_a_tools_step_widens_both_ends() -> None:
    found = median_ratio([(17.0, 18.0)] * 6, step=1.0)
    assert (found.low, found.high) == pytest.approx((16 / 19, 18 / 17))
    assert median_ratio([(1.0, 1.0)] * 6, step=1.0) is None


def test_two_series_by_welchs_t() -> None:
    # t2.small of ukti-2016. Standard errors of the logarithms .03344 and .00323, 2.04 degrees of freedom, t 4.23.
    found = ratio_of_means((271e6, 270e6, 273e6), (934e6, 892e6, 832e6))
    assert (found.low, found.high) == (pytest.approx(0.2658, abs=1e-4), pytest.approx(0.3536, abs=1e-4))
    assert found.coverage == 0.95


def test_series_without_any_spread_give_one_value() -> None:
    found = ratio_of_means((2.0, 2.0), (4.0, 4.0))
    assert (found.low, found.high) == pytest.approx((0.5, 0.5))


def test_an_interval_holds_its_bounds() -> None:
    bounds = Interval(0.9, 1.0)
    assert [bounds.holds(v) for v in (0.899, 0.9, 1.0, 1.001)] == [False, True, True, False]


# -- verdicts ---------------------------------------------------------------------------------------


def blocks(*ratios: float) -> list[tuple[float, float]]:
    return [(100.0 * ratio, 100.0) for ratio in ratios]


@pytest.mark.parametrize(
    ("ratios", "word"),
    [
        ((0.95, 0.96, 0.97, 0.95, 0.96, 0.999), LOWER),
        ((1.01, 1.02, 1.03, 1.05, 1.01, 1.02), HIGHER),
        ((0.99, 1.0, 1.01, 0.985, 1.015, 1.0), SAME),
        ((0.99, 0.991, 0.992, 0.99, 0.991, 0.99), SAME),  # different, by less than was asked for
        ((0.97, 1.0, 1.01, 0.99, 1.0, 1.0), CANNOT_TELL),
        ((0.5,) * 5, CANNOT_TELL),
    ],
)
def test_one_verdict_is_what_its_interval_shows(ratios, word) -> None:
    (found,) = verdicts([(blocks(*ratios), 0.0)], margin=0.02)
    assert (found.word, found.alone) == (word, word)
    interval = median_ratio(blocks(*ratios))
    if interval:
        inside = interval.low >= 0.98 and interval.high <= 1.02
        shown = (
            SAME if inside else LOWER if interval.high < 1 else HIGHER if interval.low > 1 else CANNOT_TELL
        )
        assert shown == word


def test_verdict_and_interval_agree_whatever_the_blocks() -> None:
    chance = random.Random(3)
    for _ in range(300):
        series = blocks(
            *(chance.gauss(chance.choice((0.98, 1.0, 1.01)), 0.01) for _ in range(chance.randint(6, 30)))
        )
        interval, (verdict,) = median_ratio(series, 0.3), verdicts([(series, 0.3)], margin=0.02)
        assert interval
        inside = interval.low >= 0.98 and interval.high <= 1.02
        shown = (
            SAME if inside else LOWER if interval.high < 1 else HIGHER if interval.low > 1 else CANNOT_TELL
        )
        assert verdict.word == shown


def test_a_tools_step_keeps_a_verdict_back() -> None:
    series = blocks(0.97, 0.97, 0.96, 0.97, 0.96, 0.97)
    assert [verdicts([(series, step)], 0.02)[0].word for step in (0.0, 1.0, 2.0)] == [
        LOWER,
        LOWER,
        CANNOT_TELL,
    ]
    assert verdicts([(series, 100.0)], 0.02)[0].word == CANNOT_TELL


def test_holm_is_as_in_its_paper() -> None:
    # Holm 1979, 4: p .01, .02, .03 of three: 3·.01, 2·.02, then not below what came before.
    assert holm([0.02, 0.01, 0.03]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert holm([]) == []


def test_six_blocks_hold_one_verdict_and_not_two() -> None:
    clear = (blocks(*(0.9,) * 6), 0.0)
    assert verdicts([clear], 0.02) == [Verdict(LOWER, 0.03125, LOWER)]
    assert verdicts([clear, clear], 0.02) == [Verdict(CANNOT_TELL, None, LOWER)] * 2
    seven = (blocks(*(0.9,) * 7), 0.0)
    assert [v.word for v in verdicts([seven, seven], 0.02)] == [LOWER, LOWER]
    assert [v.word for v in verdicts([seven, seven], 0.02, looks=3)] == [CANNOT_TELL] * 2


@pytest.mark.parametrize(
    ("word", "metric", "better", "said"),
    [
        (LOWER, "goodput", "higher", "slower"),
        (HIGHER, "goodput", "higher", "faster"),
        (HIGHER, "latency_rtt", "lower", "slower"),
        (LOWER, "latency_one_way", "lower", "faster"),
        (HIGHER, "jitter", "lower", "worse"),
        (LOWER, "jitter", "lower", "better"),
        (SAME, "goodput", "higher", "same"),
        (CANNOT_TELL, "goodput", "higher", "cannot tell"),
    ],
)
def test_verdicts_are_worded_as_people_speak_of_the_metric(word, metric, better, said) -> None:
    assert worded(word, metric, better) == said


# -- how many blocks --------------------------------------------------------------------------------


def test_the_fewest_blocks_grow_with_what_is_compared() -> None:
    assert [fewest_blocks(m) for m in (0, 1, 2, 3, 4, 10, 25)] == [6, 6, 7, 7, 8, 9, 10]
    assert [fewest_blocks(m, looks=3) for m in (1, 2, 10)] == [7, 8, 11]


def test_blocks_needed_are_those_of_the_sign_test() -> None:
    # A block lies on the wrong side with Φ(−2) = .0228, and none of 7 does with .851.
    assert blocks_needed(0.02, 0.01, 2) == 7
    assert blocks_needed(0.02, 0.0, 2) == 7
    # With Φ(−1) = .159 three of 15 may and do not with .79; four of 17 may (2·P(B ≤ 4) = .049), .88.
    assert blocks_needed(0.02, 0.02, 1) == 17
    assert blocks_needed(0.02, 0.5, 2) is None


def test_looks_are_fixed_beforehand_and_none_is_too_early() -> None:
    assert looks_at(2) == (8, 16, 32)
    assert looks_at(1) == (7, 14, 28)
    assert looks_at(2, 24) == (12, 24)
    assert looks_at(2, 40) == (10, 20, 40)
    assert looks_at(10, 6) == (6,)


def test_precise_is_what_all_intervals_are() -> None:
    tight, wide = blocks(*(0.99, 1.01) * 4), blocks(*(0.9, 1.1) * 4)
    assert precise([tight, tight], 0.02, looks=3)
    assert not precise([tight, wide], 0.02, looks=3)
    assert precise([tight, wide], 0.2, looks=3)
    assert not precise([tight[:6]], 0.02, looks=3), "six blocks cannot hold at three looks"
    assert precise([tight, []], 0.02, looks=3), "what never gave a value cannot be waited for"


def test_the_worked_example_of_the_documentation() -> None:
    text = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^([abc])  ((?:\d\.\d{3} ?){10})$", text, re.MULTILINE)
    family = [(blocks(*map(float, values.split())), 0.0) for _, values in rows]
    found = [median_ratio(series) for series, _ in family]
    assert [(i.low, i.high, round(i.coverage or 0, 3)) for i in found if i] == [
        (pytest.approx(0.951), pytest.approx(0.961), 0.979),
        (pytest.approx(0.988), pytest.approx(1.001), 0.979),
        (pytest.approx(0.940), pytest.approx(1.020), 0.979),
    ]
    assert 1 - sign_p(2, 10) == pytest.approx(0.89, abs=1e-3)
    a, b, c = (claims(series, step, 0.02) for series, step in family)
    assert (a.lower, b.same, c.lower) == pytest.approx((1 / 512, 1 / 512, 0.754), abs=1e-3)
    assert [v.word for v in verdicts(family, 0.02)] == [LOWER, SAME, CANNOT_TELL]


def test_the_fewest_blocks_of_the_documentation() -> None:
    text = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    (many,) = re.findall(r"^\| comparisons \| (.*) \|$", text, re.MULTILINE)
    (least,) = re.findall(r"^\| blocks at least \| (.*) \|$", text, re.MULTILINE)
    for words, expected in zip(many.split(" | "), least.split(" | "), strict=True):
        for count in words.split("–"):
            assert fewest_blocks(int(count)) == int(expected)
