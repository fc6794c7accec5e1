"""What is written beside a trial's samples so that nobody has to scan them: summary and histogram."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from overlaylab.core.model import Sample

# Each bin is 1.16 % wide. The edges are 10^(k/200) for every trial, so that histograms can be added.
BINS_PER_DECADE = 200
QUANTILES = {"p01": 0.01, "p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True)
class Summary:
    """One metric of one trial, in the metric's unit.

    basis: ``interval`` where the tool gave values over parts of the trial, else ``whole``.
    value: what the trial counts with: the tool's value for the whole trial, else the median of intervals.
    resolution: the largest step among the samples, None where no step is known.
    """

    metric: str
    basis: str
    n: int
    value: float
    mean: float
    # In the order of QUANTILES, between minimum and maximum.
    quantiles: tuple[float, ...]
    low: float
    high: float
    resolution: float | None
    # (lower, upper, count) of interval samples, ascending; empty on basis ``whole``.
    bins: tuple[tuple[float, float, int], ...]


def summarise(samples: Sequence[Sample]) -> list[Summary]:
    """One summary per metric; percentiles that a tool computed itself are not averaged into it."""
    by_metric: dict[str, list[Sample]] = {}
    for sample in samples:
        if sample.quantile is None:
            by_metric.setdefault(sample.metric, []).append(sample)
    return [_summary(metric, own) for metric, own in by_metric.items()]


def _summary(metric: str, samples: list[Sample]) -> Summary:
    whole = [s.value for s in samples if s.t_start is None]
    intervals = [s.value for s in samples if s.t_start is not None]
    values = sorted(intervals or whole)
    return Summary(
        metric=metric,
        basis="interval" if intervals else "whole",
        n=len(values),
        value=statistics.median(whole or intervals),
        mean=statistics.fmean(values),
        quantiles=tuple(quantile(values, q) for q in QUANTILES.values()),
        low=values[0],
        high=values[-1],
        resolution=max((s.resolution for s in samples if s.resolution is not None), default=None),
        bins=histogram(intervals),
    )


def quantile(ascending: Sequence[float], q: float) -> float:
    """Linear interpolation between neighbours (Hyndman and Fan's type 7, as numpy and R do)."""
    place = q * (len(ascending) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ascending) - 1)
    return ascending[below] + (ascending[above] - ascending[below]) * (place - below)


def histogram(values: Sequence[float]) -> tuple[tuple[float, float, int], ...]:
    """Counts in logarithmic bins [lower, upper); zero has a bin of its own, negative values mirrored ones."""
    counts = Counter(_bin(v) for v in values)
    return tuple(sorted((*_edges(key), n) for key, n in counts.items()))


def _bin(value: float) -> tuple[int, int]:
    """(sign, exponent) of the bin that holds value."""
    if value == 0:
        return 0, 0
    # The tiny term keeps a value that is an edge, 10^(k/200), out of the bin below it.
    return (1 if value > 0 else -1), math.floor(math.log10(abs(value)) * BINS_PER_DECADE + 1e-9)


def _edges(key: tuple[int, int]) -> tuple[float, float]:
    sign, exponent = key
    if sign == 0:
        return 0.0, 0.0
    near, far = (10 ** (e / BINS_PER_DECADE) for e in (exponent, exponent + 1))
    return (near, far) if sign > 0 else (-far, -near)
