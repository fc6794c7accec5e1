"""Whether the statistics keep their word: simulated systems whose truth is known, through the functions that runs use.

Each block has a host and, sharing it, several overlays; what the block does to all of them alike (drift of the
machine) is a factor of its own. What differs between scenarios is the noise of a single trial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from overlaylab.stats.inference import (
    ALPHA,
    HIGHER,
    LOWER,
    SAME,
    blocks_needed,
    holm,
    looks_at,
    median_ratio,
    precise,
    verdicts,
)
from overlaylab.stats.samples import Known, p_above, shift

# Logarithms of the factors by which single trials of a system miss its truth.
Noise = Callable[[Generator, tuple[int, ...]], NDArray[np.float64]]
Pairs = list[tuple[float, float]]
# Standard deviation of what a block does to all of its trials alike, as a logarithm.
DRIFT = 0.1


def _normal(chance: Generator, size: tuple[int, ...]) -> NDArray[np.float64]:
    return np.log(1 + 0.02 * chance.standard_normal(size))


def _log_normal(chance: Generator, size: tuple[int, ...]) -> NDArray[np.float64]:
    return 0.1 * chance.standard_normal(size)


def _heavy(chance: Generator, size: tuple[int, ...]) -> NDArray[np.float64]:
    return 0.02 * chance.standard_t(3, size)


def _outliers(chance: Generator, size: tuple[int, ...]) -> NDArray[np.float64]:
    stalls = (chance.random(size) < 0.1) * chance.exponential(0.3, size)
    return 0.01 * chance.standard_normal(size) - stalls


def _skewed(chance: Generator, size: tuple[int, ...]) -> NDArray[np.float64]:
    return -0.05 * (chance.exponential(1.0, size) - math.log(2))


def _capped(chance: Generator, size: tuple[int, ...]) -> NDArray[np.float64]:
    return 0.0005 * chance.standard_normal(size)


@dataclass(frozen=True)
class Scenario:
    """Noise of the host's trials and of an overlay's. The median of a block's log ratio is the truth by symmetry,
    and in the last one because that noise has median 0 and the host's is next to none."""

    name: str
    host: Noise
    overlay: Noise


SCENARIOS = (
    Scenario("normal", _normal, _normal),
    Scenario("log-normal", _log_normal, _log_normal),
    Scenario("heavy tails (t, 3 df)", _heavy, _heavy),
    Scenario("outliers (a stall in 10 %)", _outliers, _outliers),
    Scenario("capped host, skewed overlay", _capped, _skewed),
)


def simulated(scenario: Scenario, chance: Generator, blocks: int, ratios: Sequence[float]) -> list[Pairs]:
    """(overlay, host) of every block, for one overlay per true ratio; all share their block's host."""
    drift = DRIFT * chance.standard_normal(blocks)
    host = np.exp(drift + scenario.host(chance, (blocks,)))
    noise = scenario.overlay(chance, (len(ratios), blocks))
    own = np.asarray(ratios)[:, None] * np.exp(drift + noise)
    return [list(zip(row.tolist(), host.tolist(), strict=True)) for row in own]


@dataclass(frozen=True)
class Rate:
    """How often something happened, against what it may or ought to."""

    count: int
    of: int

    @property
    def share(self) -> float:
        return self.count / self.of

    @property
    def error(self) -> float:
        """Standard error of the share."""
        return math.sqrt(self.share * (1 - self.share) / self.of)

    def exceeds(self, bound: float, sure: float = 1e-4) -> bool:
        """Whether the share is above the bound by more than chance explains."""
        from scipy.stats import binomtest

        return bool(binomtest(self.count, self.of, bound, alternative="greater").pvalue < sure)


# -- coverage of intervals --------------------------------------------------------------------------


@dataclass(frozen=True)
class Coverage:
    """claimed: what the order statistics' interval says of itself. width: median of high / low − 1, per method."""

    scenario: str
    blocks: int
    claimed: float
    held: dict[str, Rate]
    width: dict[str, float]


ORDER, SIGNED_RANK, STUDENT = "order statistics", "signed ranks", "Student's t"


def coverage(scenario: Scenario, blocks: int, trials: int, chance: Generator, truth: float = 0.9) -> Coverage:
    """How often intervals of the median ratio hold the truth: the lab's, and the two that it could have taken."""
    held = dict.fromkeys((ORDER, SIGNED_RANK, STUDENT), 0)
    widths: dict[str, list[float]] = {name: [] for name in held}
    claimed = 0.0
    for _ in range(trials):
        (pairs,) = simulated(scenario, chance, blocks, [truth])
        found = median_ratio(pairs)
        assert found and found.coverage
        claimed = found.coverage
        logs = np.log([own / base for own, base in pairs])
        for name, (low, high) in (
            (ORDER, (found.low, found.high)),
            (SIGNED_RANK, np.exp(signed_ranks(logs))),
            (STUDENT, np.exp(students(logs))),
        ):
            held[name] += low <= truth <= high
            widths[name].append(high / low - 1)
    return Coverage(
        scenario.name,
        blocks,
        claimed,
        {name: Rate(count, trials) for name, count in held.items()},
        {name: float(np.median(own)) for name, own in widths.items()},
    )


def signed_ranks(logs: NDArray[np.float64]) -> tuple[float, float]:
    """95 % interval of Hodges and Lehmann's estimate by Wilcoxon's signed ranks: exact if the noise is symmetric."""
    n = len(logs)
    walsh = np.sort(((logs[:, None] + logs[None, :]) / 2)[np.triu_indices(n)])
    rank = _signed_rank(n)
    return float(walsh[rank - 1]), float(walsh[-rank])


@cache
def _signed_rank(n: int) -> int:
    """The largest r with 2·P(W < r) ≤ 5 %, W the sum of signed ranks where nothing differs: by counting subsets."""
    counts = np.array([1.0])
    for rank in range(1, n + 1):
        longer = np.zeros(len(counts) + rank)
        longer[: len(counts)] += counts
        longer[rank:] += counts
        counts = longer
    below = 2 * np.cumsum(counts) / 2.0**n
    return int(np.searchsorted(below, ALPHA, side="right"))


def students(logs: NDArray[np.float64]) -> tuple[float, float]:
    """95 % interval of the mean, if the noise is normal."""
    half = _quantile(len(logs)) * logs.std(ddof=1) / math.sqrt(len(logs))
    return float(logs.mean() - half), float(logs.mean() + half)


@cache
def _quantile(n: int) -> float:
    from scipy.stats import t

    return float(t.ppf(1 - ALPHA / 2, n - 1))


# -- errors of the whole procedure ------------------------------------------------------------------


@dataclass(frozen=True)
class Errors:
    """Of runs that compare `overlays` with the host: those that called anything different, or the same, in error.

    different: none differs. same: all differ by the margin, so none is the same. blocks: at most, and mean.
    """

    scenario: str
    overlays: int
    precision: float | None
    different: Rate
    same: Rate
    blocks: int
    mean_blocks: float


def errors(
    scenario: Scenario, overlays: int, precision: float | None, trials: int, chance: Generator,
    blocks: int = 12, margin: float = 0.02,
) -> Errors:  # fmt: skip
    """Run after run, with Holm over the overlays and, where precision is asked for, its looks and its rule to stop.

    False differences are counted without any margin: with one, many would be called the same and hide.
    """
    looks = looks_at(overlays) if precision else (blocks,)
    different = same = taken = 0
    for _ in range(trials):
        found, stopped = _run(scenario, [1.0] * overlays, looks, precision, 0.0, chance)
        different += bool({LOWER, HIGHER} & found)
        taken += stopped
        found, _ = _run(scenario, [1 - margin] * overlays, looks, precision, margin, chance)
        same += SAME in found
    return Errors(
        scenario.name,
        overlays,
        precision,
        Rate(different, trials),
        Rate(same, trials),
        looks[-1],
        taken / trials,
    )


def _run(
    scenario: Scenario, ratios: Sequence[float], looks: Sequence[int], precision: float | None, margin: float,
    chance: Generator,
) -> tuple[set[str], int]:  # fmt: skip
    """(all verdicts of one run, the block at which it stopped)."""
    whole = simulated(scenario, chance, looks[-1], ratios)
    stopped = looks[-1]
    for look in looks[:-1]:
        if precision and precise([pairs[:look] for pairs in whole], precision, len(looks)):
            stopped = look
            break
    family = [(pairs[:stopped], 0.0) for pairs in whole]
    return {verdict.word for verdict in verdicts(family, margin, len(looks))}, stopped


# -- two runs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoRuns:
    """held: intervals that hold the true change. failed: comparisons that called anything worse, of 20, in error."""

    scenario: str
    blocks: tuple[int, int]
    held: Rate
    failed: Rate


def two_runs(
    scenario: Scenario,
    blocks: tuple[int, int],
    trials: int,
    chance: Generator,
    spread: float = 1.0,
    rows: int = 20,
) -> TwoRuns:
    """Two runs in which nothing changed; spread: how much wider the second one's noise is. Judged by FAIL_OVER=0."""
    held = failed = 0
    for _ in range(trials):
        series = []
        for count, wider in zip(blocks, (1.0, spread), strict=True):
            whole = simulated(scenario, chance, count, [1.0] * rows)
            series.append([[_known(wider * math.log(own / base)) for own, base in pairs] for pairs in whole])
        found = shift(series[0][0], series[1][0]).interval
        assert found
        held += found.holds(0.0)
        ps = [p_above(second, first, 0.0) for first, second in zip(*series, strict=True)]
        failed += min(holm(ps)) <= ALPHA
    return TwoRuns(scenario.name, blocks, Rate(held, trials), Rate(failed, trials))


def _known(value: float) -> Known:
    return Known(value, value, value)


# -- power ------------------------------------------------------------------------------------------


def power(
    spread: float, overlays: int, trials: int, chance: Generator, margin: float = 0.02
) -> tuple[int, Rate]:
    """(blocks that are called needed, how often they told one overlay that differs by the margin)."""
    blocks = blocks_needed(margin, spread, overlays)
    assert blocks
    found = 0
    for _ in range(trials):
        logs = spread * chance.standard_normal((overlays, blocks)) - margin
        family = [([(value, 1.0) for value in np.exp(row).tolist()], 0.0) for row in logs]
        found += verdicts(family, 0.0)[0].word == LOWER
    return blocks, Rate(found, trials)


def generators(seed: int) -> Iterator[Generator]:
    """A generator of its own for each part, so that leaving one out does not change the next."""
    children = np.random.SeedSequence(seed)
    while True:
        yield np.random.default_rng(children.spawn(1)[0])
