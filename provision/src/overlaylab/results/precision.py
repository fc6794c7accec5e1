"""How exactly published figures are known, and what is wrong with them: db/published_*.csv beside published.csv."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from overlaylab.core.paths import DB
from overlaylab.stats.inference import CONFIDENCE, Interval
from overlaylab.stats.samples import ratio_of_means

if TYPE_CHECKING:
    from overlaylab.results.published import Pair

# Columns of published_flaws.csv that say which pairs a flaw concerns; an empty one means all.
FLAW_KEYS = ("publication", "cloud", "instance", "overlay", "mode", "protocol", "metric")


@dataclass(frozen=True)
class Precision:
    """How a publication printed a metric. unit: base units in the printed one; digits: significant ones.

    step: of the tool, in base units, 0 where it has none.
    """

    unit: float
    digits: int
    step: float

    def around(self, value: float) -> float:
        """How far the true figure may lie from a printed one: half of its last digit, and one step of the tool."""
        # Not half a step: where a trial begins within a message decides whether that one counts.
        place = math.floor(math.log10(value / self.unit)) - (self.digits - 1)
        return 0.5 * self.unit * 10.0**place + self.step


@cache
def _precisions() -> dict[tuple[str, ...], Precision]:
    with (DB / "published_precision.csv").open(encoding="utf-8", newline="") as stream:
        return {
            (row["publication"], row["tool"], row["protocol"], row["metric"]): Precision(
                float(row["unit_size"]), int(row["digits"]), float(row["step"] or 0)
            )
            for row in csv.DictReader(stream)
        }


def precision_of(pair: Pair) -> Precision | None:
    """None where nobody knows how the figures were rounded."""
    return _precisions().get((pair.publication, pair.tool, pair.protocol, pair.metric))


def step_of(pair: Pair) -> float:
    """The tool's step in base units; 0 where none is known."""
    precision = precision_of(pair)
    return precision.step if precision else 0.0


def published_interval(pair: Pair) -> Interval | None:
    """Where the published ratio lies; None where neither repetitions nor the rounding are known.

    From the repetitions where both sides have some (`ratio_of_means`), never narrower than what was printed
    allows; else from what was printed alone, which says nothing of how far repeated runs would be apart.
    """
    precision = precision_of(pair)
    printed = None
    if precision is not None:
        own, host = precision.around(pair.overlay_value), precision.around(pair.host_value)
        if host < pair.host_value:
            printed = Interval(
                (pair.overlay_value - own) / (pair.host_value + host),
                (pair.overlay_value + own) / (pair.host_value - host),
            )
    if min(len(pair.overlay_values), len(pair.host_values)) < 2:
        return printed
    spread = ratio_of_means(pair.overlay_values, pair.host_values)
    if printed is None:
        return spread
    return Interval(min(spread.low, printed.low), max(spread.high, printed.high), CONFIDENCE)


@cache
def _flaws() -> tuple[dict[str, str], ...]:
    with (DB / "published_flaws.csv").open(encoding="utf-8", newline="") as stream:
        return tuple(csv.DictReader(stream))


def flaws_of(pair: Pair) -> tuple[str, ...]:
    """What is wrong with the publication's numbers of this pair, one sentence each, in our own words."""
    return tuple(
        row["flaw"] for row in _flaws() if all(row[key] in ("", getattr(pair, key)) for key in FLAW_KEYS)
    )
