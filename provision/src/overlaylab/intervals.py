"""Intervals of ratios: of a median over blocks, and of the means of two small series."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
MEDIAN_TAKES = 6
"""The fewest values whose smallest and largest hold the median 95 % of the time: 1 − 2·0.5⁶ = 0.969."""


@dataclass(frozen=True)
class Interval:
    """Bounds of a ratio. coverage: how often such bounds hold the truth; None for bounds of rounding alone."""

    low: float
    high: float
    coverage: float | None = None

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


def median_rank(n: int) -> tuple[int, float] | None:
    """(r, coverage): the r-th smallest and r-th largest of n values hold the median that often, at least 0.95.

    1 − 2·P(B < r), B binomial with n and ½: exact for any continuous distribution (David and Nagaraja, Order
    Statistics, 7.1). None below six values, where not even smallest and largest do.
    """
    from scipy.stats import binom  # takes a second to import

    ranks = [r for r in range(1, n // 2 + 1) if 1 - 2 * binom.cdf(r - 1, n, 0.5) >= CONFIDENCE]
    return (ranks[-1], 1 - 2 * float(binom.cdf(ranks[-1] - 1, n, 0.5))) if ranks else None


def median_ratio(blocks: Sequence[tuple[float, float]], step: float = 0.0) -> Interval | None:
    """Of the median over blocks of own / base, where each value is known to one step of its tool.

    Order statistics are the same for ratios and for their logarithms. None below six blocks, or where the
    step is as large as the values.
    """
    found = median_rank(len(blocks))
    if found is None or min(base for _, base in blocks) <= step:
        return None
    rank, coverage = found
    low = sorted((own - step) / (base + step) for own, base in blocks)[rank - 1]
    high = sorted((own + step) / (base - step) for own, base in blocks)[-rank]
    return Interval(low, high, coverage)


def ratio_of_means(own: Sequence[float], base: Sequence[float]) -> Interval:
    """95 % of the ratio of two series' means, two values each at least, by Welch's t on their logarithms.

    B. L. Welch, Biometrika 34 (1947), 28–35: variances need not be equal, and three runs are few, so that the
    interval is wide. Smallest over largest and its reverse would grow with the number of runs.
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
