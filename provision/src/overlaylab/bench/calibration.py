"""From what a pair of hosts carried to a tier's numbers: pure functions, nothing here talks to a node.

Rates are goodput in bit/s until `l2_factor` makes L2 rates of them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from overlaylab.core.model import Sample
from overlaylab.shaping import theory
from overlaylab.shaping.checks import BATCHES, Rtt, rtt_of
from overlaylab.stats.samples import proportion

# Ratio by which the lower of two levels must lie below the upper one.
LEAST_DROP = 0.1
# How many times the noise two levels must lie apart.
NOISES = 5
# Seconds that the lower level must last: a shorter one may be the neighbours' doing.
LEAST_LOW = 10
# Intervals, at most, of what is no level but a moment: a pause of a host, and what it had kept then.
SPIKE = 2
# Ratio by which intervals of one rate may differ however little they do.
ALIKE = 0.01
# Intervals at the beginning that may lie below what follows and do not count: TCP finds the rate first.
SLOW_START = 5
CONFIDENCE = 0.95


class CalibrationError(Exception):
    """What was measured gives no number; str() says why, in a sentence."""


@dataclass(frozen=True)
class Carried:
    """What one TCP transfer carried.

    rate: bit/s of a typical interval until the drop, or of the whole transfer; see `_typical`. lowest, highest:
    of the single intervals that it was taken from.
    sustained, bucket: bit/s after the drop, and bytes above it before; None where no drop was accepted.
    late: bit/s after a drop too near the end to be accepted; None where there is none.
    head: bytes above `rate` in the intervals at the beginning that do not count; not below zero.
    seconds, amount: of the whole transfer, s and bytes.
    """

    rate: float
    lowest: float
    highest: float
    sustained: float | None
    bucket: float | None
    late: float | None
    head: float
    seconds: float
    amount: float


@dataclass(frozen=True)
class Rates:
    """What counts of several transfers, L2: bit/s and bytes; sustained and bucket None for one rate."""

    rate: float
    sustained: float | None
    bucket: float | None


@dataclass(frozen=True)
class Loss:
    """lost of sent datagrams, and the bounds of their ratio: exact, 95 %."""

    sent: int
    lost: int
    low: float
    high: float

    @property
    def ratio(self) -> float:
        return self.lost / self.sent


def carried(samples: Sequence[Sample], grain: float = 0.0) -> Carried:
    """Levels of the goodput that iperf3's receiver counted, interval by interval. Raises CalibrationError.

    grain: bit/s that one counted block more in an interval makes.
    Two levels are those of the step that leaves the least squares, accepted where they differ by more than
    LEAST_DROP and NOISES × noise and the lower one lasts LEAST_LOW seconds.
    """
    intervals = [
        (s.t_start, s.t_end, s.value)
        for s in samples
        if s.metric == "goodput" and s.t_start is not None and s.t_end is not None
    ]
    intervals.sort(key=lambda one: one[0])
    if len(intervals) < 4:
        raise CalibrationError(f"{len(intervals)} intervals are too few to tell a rate from")
    values = [value for _, _, value in intervals]
    times = [end - start for start, end, _ in intervals]
    amounts = [value * time / 8 for value, time in zip(values, times, strict=True)]
    whole = {"seconds": sum(times), "amount": sum(amounts)}
    begin, end = _settled(values), len(values)
    while (step := _step(values[begin:end], grain)) and end - begin > 2 * SPIKE:
        at = step[0]
        if at > SPIKE and end - begin - at > SPIKE:
            break
        # What is over after a moment, or begins a moment before the end, is no level.
        begin, end = (begin + at, end) if at <= SPIKE else (begin, begin + at)
    if step is None:
        counted = values[begin:end]
        rate = _typical(counted, grain)
        head = _above(amounts[:begin], times[:begin], rate)
        return Carried(rate, min(counted), max(counted), None, None, None, head, **whole)
    at, high, low = step
    before = values[begin : begin + max(1, at - 1)]
    head = _above(amounts[:begin], times[:begin], high)
    levels = (high, min(before), max(before))
    if sum(times[begin + at :]) < LEAST_LOW:
        return Carried(*levels, None, None, low, head, **whole)
    # The interval that the change lies in belongs to either side; above the lower level it counts.
    upto = begin + at + 1
    bucket = _above(amounts[:upto], times[:upto], low)
    return Carried(*levels, low, bucket, None, head, **whole)


def _settled(values: Sequence[float]) -> int:
    """How many intervals at the beginning do not count: the first (slow start, or a burst) and what climbs."""
    begin = 1
    while begin < SLOW_START and begin < len(values) - 3:
        following = statistics.median(values[begin + 1 : begin + 1 + LEAST_LOW])
        if values[begin] >= (1 - LEAST_DROP) * following:
            break
        begin += 1
    return begin


def _step(values: Sequence[float], grain: float) -> tuple[int, float, float] | None:
    """(index of the first value of the lower level, upper level, lower level); None for one level."""
    count = len(values)
    sums = [0.0, *accumulate(values)]
    # The sum of squares is least where what the means explain is most.
    at = max(range(1, count), key=lambda k: sums[k] ** 2 / k + (sums[count] - sums[k]) ** 2 / (count - k))
    # The change lies within an interval, whose value is neither level's.
    before, after = values[: max(1, at - 1)], values[min(at + 1, count - 1) :]
    high, low = _typical(before, grain), _typical(after, grain)
    noise = _noise([abs(v - high) for v in before] + [abs(v - low) for v in after])
    if high - low <= LEAST_DROP * high or high - low <= NOISES * noise:
        return None
    return at, high, low


def _typical(values: Sequence[float], grain: float) -> float:
    """The mean of the intervals that are like the median.

    Not of all: a host that pauses for a moment makes a mean too low (measured on a busy machine: 99.2 for a cap
    of 100, and 99.6 this way). Not the median itself: it is known to one grain only.
    """
    if len(values) < 3:
        return statistics.fmean(values)
    # Quartiles: the median of residuals is nothing where half of the intervals are equal, however the others are.
    first, middle, third = statistics.quantiles(values, n=4)
    near = max(grain, ALIKE * middle, 3 * (third - first) / 1.349)
    return statistics.fmean(v for v in values if abs(v - middle) <= near)


def _noise(residuals: Sequence[float]) -> float:
    """A standard deviation that outliers do not move: 1.4826 × median absolute residual."""
    return 1.4826 * statistics.median(residuals)


def _above(amounts: Sequence[float], times: Sequence[float], level: float) -> float:
    """Bytes above a level, bit/s; what lies below it is no refill, as TCP may have been slow to offer more."""
    return sum(max(0.0, amount - level * time / 8) for amount, time in zip(amounts, times, strict=True))


def l2_factor(mtu: int) -> float:
    """L2 bytes, as a qdisc counts them, per application byte of TCP in packets of `mtu` bytes."""
    return 1 / theory.goodput_theory(1.0, mtu, 0)


def slower(transfers: Sequence[Carried], mtu: int) -> Rates:
    """The smaller of what both directions carried counts, as an L2 rate.

    A direction with one rate may have met a bucket that the other had emptied, or have emptied none: then the
    one with two rates tells more. It counts only where it is slower than the sustained rate of the other.
    """
    factor = l2_factor(mtu)
    two = [
        (c.rate, c.sustained, c.bucket) for c in transfers if c.sustained is not None and c.bucket is not None
    ]
    one = min((c.rate for c in transfers if c.sustained is None), default=math.inf)
    if two:
        sustained = min(lower for _, lower, _ in two)
        if one >= (1 - LEAST_DROP) * sustained:
            rate, bucket = min(upper for upper, _, _ in two), min(bytes_ for _, _, bytes_ in two)
            return Rates(rate * factor, sustained * factor, bucket * factor)
    return Rates(one * factor, None, None)


def loss(sent: int, lost: int) -> Loss:
    """With its interval, exact for independent losses. ValueError unless 0 ≤ lost ≤ sent, sent > 0."""
    return Loss(sent, lost, *proportion(lost, sent))


def jitter(rtts: Sequence[float]) -> float:
    """J, s, of a one-way delay uniform in ±J each way, from the interquartile range of RTTs."""
    # Two such delays add up to a triangle in ±2J with quartiles at ±2J·(1 − √½). The standard deviation, J·√(2/3), is
    # spoilt by single replies that wait for a host: on a path without jitter it said 0.54 ms, quartiles 0.07 ms.
    first, _, third = statistics.quantiles(rtts, n=4)
    return (third - first) / (4 * (1 - math.sqrt(1 / 2)))


def rtt(rtts: Sequence[float]) -> tuple[Rtt, float]:
    """Median RTT with its standard error, and half its 95 % interval, s: batches are few, so Student's t."""
    from scipy.stats import t

    found = rtt_of(list(rtts))
    return found, float(t.ppf((1 + CONFIDENCE) / 2, BATCHES - 1)) * found.error


async def largest(low: int, high: int, passes: Callable[[int], Awaitable[bool]]) -> int | None:
    """The largest size from low to high that passes, by bisection; None where not even `low` does.

    passes: whether a size gets through; every size below one that passes is taken to pass.
    """
    if await passes(high):
        return high
    if not await passes(low):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if await passes(middle):
            low = middle
        else:
            high = middle
    return low
