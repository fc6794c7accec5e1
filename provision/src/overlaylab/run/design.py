"""What is settled before a run and judged by afterwards: margin, precision, looks, primary metric, number of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from overlaylab.core.errors import UserError
from overlaylab.core.model import JSON, Variant
from overlaylab.core.quantities import QuantityError, percent
from overlaylab.specs.suite import Suite
from overlaylab.stats.inference import LOOKS, MARGIN, MEDIAN_TAKES, fewest_blocks, looks_at


class Percent(click.ParamType[float]):
    """``2%`` on the command line, 0.02 behind it. Raises UserError."""

    name = "percent"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        name = param.name.upper() if param and param.name else "percentage"
        try:
            return percent(str(value))
        except QuantityError as wrong:
            raise UserError(name, str(wrong), seen=value, fix=f"{name}=2%, for example") from None


PERCENT = Percent()


@dataclass(frozen=True)
class Rules:
    """As a run's arguments have them. margin, precision: ratios.

    primary: (benchmark, metric) as the suite says, else None. looks: block counts at which the run can stop.
    """

    margin: float = MARGIN
    precision: float | None = None
    looks: tuple[int, ...] = ()
    primary: tuple[str, str] | None = None

    @property
    def shares(self) -> int:
        """In how many parts the 5 % were divided among looks."""
        return max(1, len(self.looks))

    def arguments(self) -> dict[str, object]:
        """What `rules_of` reads again."""
        primary = dict(zip(("benchmark", "metric"), self.primary, strict=True)) if self.primary else None
        return {
            "margin": self.margin,
            "precision": self.precision,
            "looks": list(self.looks) or None,
            "primary": primary,
        }


def rules_of(arguments: JSON) -> Rules:
    """Of a stored run. One of before there were margins has the usual one."""
    primary = arguments.get("primary")
    return Rules(
        margin=arguments.get("margin", MARGIN),
        precision=arguments.get("precision"),
        looks=tuple(arguments.get("looks") or ()),
        primary=(primary["benchmark"], primary["metric"]) if primary else None,
    )


def settle(
    suite: Suite, comparisons: int, margin: float | None, precision: float | None, blocks: int | None
) -> tuple[Rules, int]:
    """(rules, number of blocks) for what was typed; blocks None where nothing was. Raises UserError.

    A suite with blocks enough to claim anything gets as many as its comparisons take together. One with fewer keeps
    them: it repeats what somebody did, and claims nothing.
    """
    for name, value in (("MARGIN", margin), ("PRECISION", precision)):
        in_range(name, value)
    rules = Rules(MARGIN if margin is None else margin, precision, (), suite.primary)
    if precision is None:
        own = suite.blocks
        return rules, blocks or (max(own, fewest_blocks(comparisons)) if own >= MEDIAN_TAKES else own)
    least = fewest_blocks(comparisons, LOOKS)
    if blocks is not None and blocks < least:
        raise UserError(
            "BLOCKS",
            f"must be at least {least} with PRECISION and {comparisons} comparisons: fewer can claim nothing",
            seen=blocks,
            fix="Leave it out for a number that fits, or leave PRECISION out",
        )
    looks = looks_at(comparisons, blocks)
    return Rules(rules.margin, precision, looks, suite.primary), looks[-1]


def in_range(name: str, value: float | None, least: float = 0.0005, most: float = 0.5) -> None:
    """Raises UserError for a margin, as a ratio, that nobody can mean; None: nothing was typed."""
    if value is not None and not least <= value <= most:
        low, high = (f"{bound * 100:g} %" for bound in (least, most))
        raise UserError(
            name, f"must lie between {low} and {high}", seen=f"{value * 100:g} %", fix=f"{name}=2% is usual"
        )


def comparisons_of(variants: Sequence[Variant], pairs: int) -> int:
    """How many ratios to the host the primary metric will have: one per variant and pair of endpoints."""
    return sum(not variant.is_baseline for variant in variants) * pairs
