"""``bench statistics``: whether intervals and verdicts keep their word, on simulated systems whose truth is known."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click
from rich import box
from rich.table import Table

from overlaylab.bench.simulation import (
    ORDER,
    SCENARIOS,
    SIGNED_RANK,
    STUDENT,
    Rate,
    coverage,
    errors,
    generators,
    power,
    two_runs,
)
from overlaylab.core.progress import PlainConsole, output
from overlaylab.stats.inference import ALPHA, LOOKS, POWER

BLOCKS = (6, 10, 30)
# A million intervals of 30 blocks take 240 MB an array.
COUNT = click.IntRange(1, 1_000_000)


@click.command("statistics")
@click.option("--trials", envvar="TRIALS", type=COUNT, default=1000, show_default=True, help="Runs per row.")
@click.option(
    "--intervals",
    envvar="INTERVALS",
    type=COUNT,
    default=10_000,
    show_default=True,
    help="Intervals per row.",
)
@click.option(
    "--seed",
    envvar="SEED",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Seed of all that is drawn.",
)
def command(trials: int, intervals: int, seed: int) -> None:
    """How often intervals hold the truth, and how often identical systems are called different.

    Exit code 1 where an error is more frequent than it may be, by more than chance explains.
    """
    out, chance, wrong = output(PlainConsole), generators(seed), []

    table = _table(
        f"Intervals that hold the true ratio, of {intervals} (width: median of high over low, less 1)",
        "noise", "blocks", "claimed", *(f"{name}, width" for name in (ORDER, SIGNED_RANK, STUDENT)),
    )  # fmt: skip
    for scenario in SCENARIOS:
        for blocks in BLOCKS:
            found = coverage(scenario, blocks, intervals, next(chance))
            cells = [f"{found.held[n].share:.1%}, {found.width[n]:.1%}" for n in found.held]
            table.add_row(scenario.name, str(blocks), f"{found.claimed:.1%}", *cells)
            missed = Rate(intervals - found.held[ORDER].count, intervals)
            if missed.exceeds(1 - found.claimed):
                wrong.append(f"intervals, {scenario.name}, {blocks} blocks")
    out.print(table)

    table = _table(
        f"Runs that called anything wrong, of {trials} (may: {ALPHA:.0%})",
        "noise", "overlays", "blocks", "different, though identical", "same, though 2 % apart",
    )  # fmt: skip
    for scenario in SCENARIOS:
        for overlays, precision, blocks in (
            (1, None, 6),
            (3, None, 10),
            (10, None, 30),
            (1, 0.02, 0),
            (10, 0.02, 0),
        ):
            seen = errors(scenario, overlays, precision, trials, next(chance), blocks)
            taken = f"{LOOKS} looks, {seen.mean_blocks:.1f} of {seen.blocks}" if precision else str(blocks)
            # Two systems with different noise and the same median are not identical, but neither is slower.
            table.add_row(scenario.name, str(overlays), taken, _rate(seen.different), _rate(seen.same))
            wrong += _judged(
                f"{scenario.name}, {overlays} overlays, {taken} blocks", seen.different, seen.same
            )
    out.print(table)

    table = _table(
        f"Two runs in which nothing changed, of {trials}",
        "noise", "blocks", "intervals of the change that hold 1", "comparisons that fail, 20 rows (may: 5%)",
    )  # fmt: skip
    for scenario in SCENARIOS:
        for both, spread in (((6, 6), 1.0), ((10, 30), 1.0), ((10, 10), 3.0)):
            two = two_runs(scenario, both, trials, next(chance), spread)
            wider = "" if spread == 1 else f", the second {spread:g} times as noisy"
            table.add_row(
                f"{scenario.name}{wider}", f"{both[0]}, {both[1]}", _rate(two.held), _rate(two.failed)
            )
            if spread == 1:  # beyond what the method promises
                wrong += _judged(f"two runs, {scenario.name}, {both}", two.failed)
    out.print(table)

    table = _table(
        f"Runs of {trials} that told a difference of 2 % with the blocks that were called needed (aim: {POWER:.0%})",
        "spread of a ratio", "overlays", "blocks", "told",
    )  # fmt: skip
    for spread in (0.005, 0.01, 0.02, 0.05):
        for overlays in (2, 10):
            blocks, told = power(spread, overlays, trials, next(chance))
            table.add_row(f"{spread:.1%}", str(overlays), str(blocks), _rate(told))
    out.print(table)
    for words in wrong:
        click.echo(f"more errors than there may be: {words}")
    if wrong:
        sys.exit(1)  # click's own Exit does not reach the shell from here


def _table(title: str, *columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left", title_style="bold")
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left")
    return table


def _rate(rate: Rate) -> str:
    return f"{rate.share:.1%} ± {rate.error:.1%}"


def _judged(what: str, *rates: Rate) -> Iterable[str]:
    return [what] if any(rate.exceeds(ALPHA) for rate in rates) else []
