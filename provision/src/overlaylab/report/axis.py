"""A drawing's axis: where a value stands, and the round numbers beside it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Pixels from tick to tick at least; on a log axis numbers are shorter.
APART, LOG_APART = 64, 44
# Values that span more than this factor stand on a log axis: a linear one would crowd all but the largest.
DECADE = 10.0
MANTISSAS = (1.0, 2.0, 5.0)
SLACK = 1e-9


@dataclass(frozen=True)
class Axis:
    """From left to right in pixels; first and last: the values there. ticks: (x, text)."""

    left: float
    right: float
    first: float
    last: float
    log: bool
    ticks: tuple[tuple[float, str], ...]

    def place(self, value: float) -> float:
        """The pixel at which a value stands."""
        return _place(self.left, self.right, self.first, self.last, self.log, value)


def _place(left: float, right: float, first: float, last: float, log: bool, value: float) -> float:
    along = math.log(value / first) / math.log(last / first) if log else (value - first) / (last - first)
    return round(left + along * (right - left), 1)


def axis(
    values: Sequence[float], left: float, right: float, whole: bool = False, decade: float = DECADE
) -> Axis:
    """One that holds all values. whole: they are counts, between which no tick can be. decade: see DECADE."""
    low, high = min(values), max(values)
    log = low > 0 and high / low > decade
    most = max(3, int((right - left) / (LOG_APART if log else APART)) + 1)
    if log:
        numbers = log_ticks(low, high, most)
        first, last = _around(low, high)
        shown = [(number, plain(number)) for number in numbers if first <= number <= last]
    else:
        start, step, count = linear_ticks(low, high, most, whole)
        decimals = max(0, -math.floor(math.log10(step) + SLACK))
        numbers = [start + i * step for i in range(count)]
        first, last = numbers[0], numbers[-1]
        shown = [(number, f"{number:.{decimals}f}") for number in numbers]
    ticks = tuple((_place(left, right, first, last, log, number), text) for number, text in shown)
    return Axis(left, right, first, last, log, ticks)


def linear_ticks(low: float, high: float, most: int, whole: bool = False) -> tuple[float, float, int]:
    """(first, step, how many) of round numbers, 1, 2 or 5 times a power of ten apart, that hold low to high.

    Steps as P. Heckbert has them, Graphics Gems (1990), 61-63.
    """
    span = high - low
    if span <= abs(high) * SLACK:  # one value, or as good as one: leave room beside it
        low, high = (low - abs(low) * 0.01, high + abs(high) * 0.01) if high else (0.0, 1.0)
        span = high - low
    power = 10.0 ** math.floor(math.log10(span / (most - 1)))
    step = next(f * power for f in (1, 2, 5, 10) if f * power * (1 + SLACK) >= span / (most - 1))
    step = max(1.0, step) if whole else step
    first = math.floor(low / step + SLACK) * step
    return first, step, max(2, math.ceil((high - first) / step - SLACK) + 1)


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """1, 2 and 5 times powers of ten from below low to above high; only the powers, or some, where those are too many."""
    first, last = _around(low, high)
    fine = [number for number in _mantissas(first, last) if first <= number <= last]
    if len(fine) <= most:
        return fine
    powers = range(math.ceil(math.log10(first) - SLACK), math.floor(math.log10(last) + SLACK) + 1)
    return [10.0**power for power in powers[:: math.ceil(len(powers) / most)]]


def _around(low: float, high: float) -> tuple[float, float]:
    numbers = list(_mantissas(low, high))
    below = [number for number in numbers if number <= low * (1 + SLACK)]
    return max(below), min(number for number in numbers if number >= high * (1 - SLACK))


def _mantissas(low: float, high: float) -> Iterator[float]:
    for power in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2):
        yield from (mantissa * 10.0**power for mantissa in MANTISSAS)


def plain(number: float) -> str:
    """A power of ten, or 2 or 5 times one, without an exponent."""
    return f"{number:.{max(0, -math.floor(math.log10(number) + SLACK))}f}"
