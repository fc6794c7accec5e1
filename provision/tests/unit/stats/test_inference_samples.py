"""Two independent series against each other: Mann and Whitney's table, Hodges and Lehmann's estimate."""

import math

import pytest

from overlaylab.stats.samples import Known, p_above, shift, shift_rank, u_p


def exact(*values: float) -> list[Known]:
    return [Known(v, v, v) for v in values]


@pytest.mark.parametrize(
    ("m", "n", "rank"),
    # Hollander and Wolfe, table A.6: critical U of the two-sided test at 5 % is one less than the rank.
    [(6, 6, 6), (6, 10, 12), (8, 8, 14), (10, 10, 24), (20, 20, 128)],
)
def test_the_shift_lies_between_ordered_differences(m, n, rank) -> None:
    found = shift_rank(m, n)
    assert found and found[0] == rank
    assert found[1] >= 0.95 > 1 - 2 * u_p(rank, m, n)


def test_u_is_counted_exactly() -> None:
    # Of 20 arrangements of 3 and 3, one has U 0, one U 1, two U 2.
    assert [u_p(u, 3, 3) for u in (0, 1, 2, 9)] == pytest.approx([1 / 20, 2 / 20, 4 / 20, 1])


def test_below_six_there_is_none() -> None:
    assert shift_rank(5, 30) is None
    assert shift(exact(1, 2), exact(3, 4)).interval is None
    assert p_above(exact(*range(5)), exact(*range(100, 106)), 0) == 1.0


def test_the_shift_and_its_interval() -> None:
    first, second = exact(0, 1, 2, 3, 4, 5), exact(10, 11, 12, 13, 14, 15)
    found = shift(first, second)
    assert found.estimate == 10
    # Of the 36 differences the 6th smallest: 5, 6 6, 7 7 7.
    assert found.interval and (found.interval.low, found.interval.high) == (7, 13)


def test_steps_widen_both_ends() -> None:
    first = [Known(v - 1, v, v + 1) for v in range(6)]
    second = [Known(v - 1, v, v + 1) for v in range(10, 16)]
    found = shift(first, second)
    assert found.estimate == 10
    assert found.interval and (found.interval.low, found.interval.high) == (5, 15)


def test_above_by_more_than_an_amount() -> None:
    first, second = exact(0, 1, 2, 3, 4, 5), exact(10, 11, 12, 13, 14, 15)
    assert p_above(first, second, 4) == pytest.approx(1 / 924)
    assert p_above(first, second, 10) > 0.4
    assert p_above(second, first, 0) == pytest.approx(1.0)


def test_zero_lies_below_everything_and_beside_itself() -> None:
    """Of logarithms: ranks need no finite number."""
    zero, some = exact(*[-math.inf] * 6), exact(0, 1, 2, 3, 4, 5)
    fallen = shift(some, zero)
    assert (fallen.estimate, fallen.interval and (fallen.interval.low, fallen.interval.high)) == (
        -math.inf,
        (-math.inf, -math.inf),
    )
    assert p_above(zero, some, 4) == pytest.approx(1 / 924)
    same = shift(zero, zero)
    assert (same.estimate, same.interval and (same.interval.low, same.interval.high)) == (0, (0, 0))
    assert p_above(zero, zero, 0) == 1.0
    # Half of the pairs fell from something to nothing, half rose: nothing lies between.
    assert shift(exact(-math.inf, 1), exact(1, -math.inf)).estimate == 0


def test_the_estimate_is_of_the_values_and_not_of_what_they_can_be() -> None:
    first, second = [Known(-1, 2, 3)] * 6, [Known(0, 5, 5.5)] * 6
    assert shift(first, second).estimate == 3
