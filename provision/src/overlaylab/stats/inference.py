"""What blocks say: intervals, verdicts, and how many blocks a verdict takes. The one home of statistics over blocks.

The unit is the block. In each, a variant is held against the host of the same block: one ratio, which what the block
had in common with itself (the hour, the machine's other work) has been divided out of. Samples, intervals and
percentiles inside a trial are never repetitions. Nothing is taken to be normal, or symmetric: docs/statistics.md says
why, and shows by simulation (``bench.simulation``) that what is said here of errors and coverage is so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from overlaylab.core.metrics import is_speed

CONFIDENCE = 0.95
ALPHA = 0.05
# The fewest values whose smallest and largest hold the median 95 % of the time: 1 − 2·0.5⁶ = 0.969.
MEDIAN_TAKES = 6
# What is the same for all practical purposes, where nobody said otherwise before the run.
MARGIN = 0.02

LOWER, HIGHER, SAME, CANNOT_TELL = "lower", "higher", "same", "cannot tell"
# (own value, host's value) of each block that has both, in the metric's unit.
Blocks = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Interval:
    """Bounds of a ratio. coverage: how often such bounds hold the truth; None for bounds of rounding alone."""

    low: float
    high: float
    coverage: float | None = None

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


# -- the median over blocks -------------------------------------------------------------------------


@cache
def sign_p(beyond: int, n: int) -> float:
    """Two-sided p of the sign test where `beyond` of n values do not lie on the side that is claimed."""
    # 2·P(B ≤ beyond), B binomial with n and ½ (W. J. Conover, Practical Nonparametric Statistics, 3.4).
    from scipy.special import bdtr  # the binomial distribution; scipy.stats takes two seconds to import

    return min(1.0, 2 * float(bdtr(beyond, n, 0.5)))


@cache
def median_rank(n: int, alpha: float = ALPHA) -> tuple[int, float] | None:
    """(r, coverage): the r-th smallest and r-th largest of n values hold the median that often, at least 1 − alpha.

    None below six values, and where not even smallest and largest do.
    """
    # 1 − 2·P(B < r), B binomial with n and ½: exact for any continuous distribution (H. A. David and H. N. Nagaraja,
    # Order Statistics, 7.1).
    if n < MEDIAN_TAKES:
        return None
    ranks = [r for r in range(1, n // 2 + 1) if sign_p(r - 1, n) <= alpha]
    return (ranks[-1], 1 - sign_p(ranks[-1] - 1, n)) if ranks else None


def bounds(blocks: Blocks, step: float) -> list[tuple[float, float]] | None:
    """(least, greatest) of each block's ratio, where values are known to one step; None where a host's is no larger."""
    if any(base <= step for _, base in blocks):
        return None
    return [((own - step) / (base + step), (own + step) / (base - step)) for own, base in blocks]


def median_ratio(blocks: Blocks, step: float = 0.0, alpha: float = ALPHA) -> Interval | None:
    """Of the median over blocks of own / base, where each value is known to one step of its tool.

    Order statistics are the same for ratios and for their logarithms. None below six blocks, where so few cannot
    reach 1 − alpha, or where the step is as large as the values.
    """
    found, each = median_rank(len(blocks), alpha), bounds(blocks, step)
    if found is None or each is None:
        return None
    rank, coverage = found
    low = sorted(least for least, _ in each)[rank - 1]
    high = sorted(greatest for _, greatest in each)[-rank]
    return Interval(low, high, coverage)


# -- verdicts ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What is claimed of a ratio."""

    # LOWER, HIGHER, SAME (within the margin) or CANNOT_TELL.
    word: str
    # Of what is claimed, corrected.
    p: float | None = None
    # What would be said if nothing else had been compared: what the printed interval shows.
    alone: str = CANNOT_TELL


@dataclass(frozen=True)
class Claims:
    """p of each thing that could be said of a ratio to the host: the level at which its interval just says it."""

    # All of the interval lies below 1, above 1.
    lower: float = 1.0
    higher: float = 1.0
    # All of it lies inside the margin.
    same: float = 1.0


def claims(blocks: Blocks, step: float, margin: float) -> Claims:
    """Sign tests that turn `median_ratio` round: p ≤ alpha if and only if the interval for that alpha says it.

    The one for `same` is two one-sided tests, each at alpha / 2 (D. J. Schuirmann, J. Pharmacokin. Biopharm. 15
    (1987), 657–680), so that the interval that is printed and the verdict agree.
    """
    n, each = len(blocks), bounds(blocks, step)
    if n < MEDIAN_TAKES or each is None:
        return Claims()
    outside = (sum(low < 1 - margin for low, _ in each), sum(high > 1 + margin for _, high in each))
    return Claims(
        lower=sign_p(sum(high >= 1 for _, high in each), n),
        higher=sign_p(sum(low <= 1 for low, _ in each), n),
        same=sign_p(max(outside), n),
    )


def holm(ps: Sequence[float]) -> list[float]:
    """The p-values, corrected so that of all claims with p ≤ alpha any is wrong with probability alpha at most.

    S. Holm, Scand. J. Statist. 6 (1979), 65–70: the smallest counts as often as there are claims, the next once
    less, and so on. Takes any dependence, so also a host that all ratios of a block share.
    """
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    found, worst = [0.0] * len(ps), 0.0
    for place, i in enumerate(order):
        worst = max(worst, min(1.0, ps[i] * (len(ps) - place)))
        found[i] = worst
    return found


def verdicts(family: Sequence[tuple[Blocks, float]], margin: float, looks: int = 1) -> list[Verdict]:
    """What can be said of each (blocks, step) of a family, so that all of it holds together with 95 %.

    Two families of hypotheses, each under Holm: that a ratio is 1 (refuted: lower, higher), and that it lies outside
    the margin (refuted: same). What is both different and inside the margin is `same`: it is what was asked.
    looks: at how many block counts the run could have stopped; each had its share of alpha (Bonferroni).
    """
    found = [claims(blocks, step, margin) for blocks, step in family]
    different = [min(1.0, looks * min(c.lower, c.higher)) for c in found]
    same = [min(1.0, looks * c.same) for c in found]
    together = zip(found, holm(different), holm(same), strict=True)
    alone = [_word(*each)[0] for each in zip(found, different, same, strict=True)]
    return [Verdict(*_word(*each), word) for each, word in zip(together, alone, strict=True)]


def _word(claimed: Claims, different: float, same: float) -> tuple[str, float | None]:
    if same <= ALPHA:
        return SAME, same
    if different <= ALPHA:
        return (LOWER if claimed.lower < claimed.higher else HIGHER), different
    return CANNOT_TELL, None


def worded(word: str, metric: str, better: str) -> str:
    """The verdict as people say it of that metric."""
    if word not in (LOWER, HIGHER):
        return word
    good = (word == HIGHER) == (better == "higher")
    if is_speed(metric):
        return "faster" if good else "slower"
    return "better" if good else "worse"


# -- how many blocks --------------------------------------------------------------------------------


def fewest_blocks(comparisons: int, looks: int = 1) -> int:
    """Below this, no verdict stands whatever is measured: all blocks on one side have p = 2·½ⁿ, times Holm's share."""
    n = MEDIAN_TAKES
    while sign_p(0, n) * max(1, comparisons) * looks > ALPHA:
        n += 1
    return n


# How likely a difference of the margin is to be told with the number of blocks that is called needed.
POWER = 0.8
# Blocks of a run, at most.
MOST = 1000


def blocks_needed(difference: float, spread: float, comparisons: int, looks: int = 1) -> int | None:
    """Blocks that tell a ratio apart from 1 by `difference` with probability POWER; None where 1000 do not.

    spread: standard deviation of a block's log ratio. The sign test's own power, exact but for taking the spread
    to be normal: a block lies on the right side with Φ(difference / spread) (G. E. Noether, JASA 82 (1987), 645–647).
    """
    from scipy.special import bdtr, ndtr

    wrong = float(ndtr(-difference / spread)) if spread > 0 else 0.0
    for n in range(fewest_blocks(comparisons, looks), MOST + 1):
        found = median_rank(n, ALPHA / (max(1, comparisons) * looks))
        if found and bdtr(found[0] - 1, n, wrong) >= POWER:
            return n
    return None


LOOKS = 3


def looks_at(comparisons: int, most: int | None = None) -> tuple[int, ...]:
    """Block counts at which a run with PRECISION looks at its intervals, fixed before it begins; most: the last.

    A quarter, half and all of the blocks, but for those at which no verdict can stand yet.
    """
    least = fewest_blocks(comparisons, LOOKS)
    last = most or 4 * least
    earlier = (n for n in (math.ceil(last / 4), math.ceil(last / 2)) if n >= least)
    return (*earlier, last)


def precise(family: Sequence[Blocks], precision: float, looks: int) -> bool:
    """Whether every median ratio is known to ± precision, by intervals that hold at all looks together.

    Each look has alpha / looks, so the interval at which a run stops covers with 95 % whatever the rule for stopping:
    Bonferroni, the plainest of group-sequential corrections (C. Jennison and B. W. Turnbull, Group Sequential Methods,
    1.3 and 9). The tool's step is left out, because no number of blocks makes that narrower. So is a
    variant without any value, which more blocks do not mend.
    """
    for blocks in family:
        if not blocks:
            continue
        found = median_ratio(blocks, alpha=ALPHA / looks)
        if found is None or found.low <= 0 or math.sqrt(found.high / found.low) > 1 + precision:
            return False
    return True
