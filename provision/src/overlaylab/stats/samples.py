"""What is not in blocks with its host: two independent series (a publication's runs, two runs of the lab), and shares."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from overlaylab.stats.inference import ALPHA, CONFIDENCE, MEDIAN_TAKES, Interval

# Pairs up to which Mann and Whitney's U is taken exactly; beyond, its normal approximation is as good.
EXACT = 10_000


class Known(NamedTuple):
    """A value, and what it can be at least and at most, given the tool's step; -inf: the logarithm of zero."""

    least: float
    value: float
    greatest: float


Series = Sequence[Known]


@dataclass(frozen=True)
class Shift:
    """How much the second series lies above the first. interval: None below six values in either."""

    estimate: float
    interval: Interval | None


@cache
def u_p(u: int, m: int, n: int) -> float:
    """P(U ≤ u) where nothing differs: U counts the pairs in which a value of the m exceeds one of the n.

    H. B. Mann and D. R. Whitney, Ann. Math. Statist. 18 (1947), 50–60; scipy's, asked with two series that have
    that U.
    """
    from scipy.stats import mannwhitneyu  # takes a second to import

    above, rest = divmod(u, n)
    own = [n + 1.0 + i for i in range(above)]
    own += [rest - 0.5] if above < m else []
    own += [-1.0 - i for i in range(m - len(own))]
    method = "exact" if m * n <= EXACT else "asymptotic"
    return float(mannwhitneyu(own, range(n), alternative="less", method=method).pvalue)


@cache
def shift_rank(m: int, n: int, alpha: float = ALPHA) -> tuple[int, float] | None:
    """(r, coverage): the r-th smallest and r-th largest of all m·n differences hold the shift that often, or more.

    1 − 2·P(U < r) (L. E. Moses, in Walker and Lev, Statistical Inference, 1953; M. Hollander and D. A. Wolfe,
    Nonparametric Statistical Methods, 4.3). None below six values in either.
    """
    if min(m, n) < MEDIAN_TAKES:
        return None
    low, high = 0, m * n // 2  # u_p(low − 1) is within alpha / 2, u_p(high) is not
    while low < high:
        middle = (low + high) // 2
        if 2 * u_p(middle, m, n) <= alpha:
            low = middle + 1
        else:
            high = middle
    return (low, 1 - 2 * u_p(low - 1, m, n)) if low else None


def shift(first: Series, second: Series, alpha: float = ALPHA) -> Shift:
    """Of the second series above the first: the median of all differences, with Mann and Whitney's interval.

    J. L. Hodges and E. L. Lehmann, Ann. Math. Statist. 34 (1963), 598–611. Exact for two series of the same shape, of
    any shape: what two runs of one thing are, unless it has changed.
    """
    estimate = statistics.median(_less(b.value, a.value) for a in first for b in second)
    found = shift_rank(len(first), len(second), alpha)
    if found is None:
        return Shift(estimate, None)
    rank, coverage = found
    least = sorted(_less(b.least, a.greatest) for a in first for b in second)
    most = sorted(_less(b.greatest, a.least) for a in first for b in second)
    return Shift(estimate, Interval(least[rank - 1], most[-rank], coverage))


def _less(one: float, other: float) -> float:
    """one - other, and 0 of two infinities: zero against zero did not move."""
    return 0.0 if one == other else one - other


def p_above(first: Series, second: Series, amount: float) -> float:
    """One-sided p of: the second lies more than `amount` above the first. 1 below six values in either."""
    if min(len(first), len(second)) < MEDIAN_TAKES:
        return 1.0
    # Zero against zero gives nan, which is above nothing.
    above = sum(b.least - a.greatest > amount for a in first for b in second)
    return u_p(len(first) * len(second) - above, len(first), len(second))


def proportion(count: int, of: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Exact interval of a share (C. J. Clopper and E. S. Pearson, Biometrika 26 (1934), 404–413).

    Raises ValueError unless 0 ≤ count ≤ of and of > 0.
    """
    from scipy.stats import binomtest  # takes a second to import

    found = binomtest(count, of).proportion_ci(confidence, method="exact")
    return float(found.low), float(found.high)


def ratio_of_means(own: Sequence[float], base: Sequence[float]) -> Interval:
    """95 % of the ratio of two series' means, two values each at least, by Welch's t on their logarithms.

    B. L. Welch, Biometrika 34 (1947), 28–35: variances need not be equal, and three runs are few, so that the
    interval is wide. Smallest over largest and its reverse would grow with the number of runs. For publications
    alone, which printed three runs; our own blocks are held to nothing normal.
    """
    from scipy.stats import t

    logs = [[math.log(value) for value in series] for series in (own, base)]
    parts = [statistics.variance(series) / len(series) for series in logs]
    centre = statistics.fmean(logs[0]) - statistics.fmean(logs[1])
    if sum(parts) == 0:
        return Interval(math.exp(centre), math.exp(centre), CONFIDENCE)
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(series) - 1) for part, series in zip(parts, logs, strict=True)
    )
    half = float(t.ppf((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(sum(parts))
    return Interval(math.exp(centre - half), math.exp(centre + half), CONFIDENCE)
