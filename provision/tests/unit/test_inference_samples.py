"""Two independent series against each other: Mann and Whitney's table, Hodges and Lehmann's estimate."""

import pytest

from overlaylab.inference_samples import p_above, shift, shift_rank, u_p


def exact(*values: float) -> list[tuple[float, float]]:
    return [(v, v) for v in values]


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
    first = [(v - 1, v + 1) for v in range(6)]
    second = [(v - 1, v + 1) for v in range(10, 16)]
    found = shift(first, second)
    assert found.estimate == 10
    assert found.interval and (found.interval.low, found.interval.high) == (5, 15)


def test_above_by_more_than_an_amount() -> None:
    first, second = exact(0, 1, 2, 3, 4, 5), exact(10, 11, 12, 13, 14, 15)
    assert p_above(first, second, 4) == pytest.approx(1 / 924)
    assert p_above(first, second, 10) > 0.4
    assert p_above(second, first, 0) == pytest.approx(1.0)
