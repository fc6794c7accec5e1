"""Intervals of medians over blocks and of ratios of small series, against values worked out elsewhere."""

import pytest

from overlaylab.inference import MEDIAN_TAKES, Interval, median_rank, median_ratio
from overlaylab.inference_samples import ratio_of_means


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
