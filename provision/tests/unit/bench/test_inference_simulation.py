"""The statistics on simulated systems: a short, seeded version of ./task bench:statistics.

Each bound leaves room for chance: a rate that may be p is refused where so many of n have a probability below 1e-4.
"""

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binomtest

from overlaylab.bench.simulation import (
    ORDER,
    SCENARIOS,
    SIGNED_RANK,
    Rate,
    coverage,
    errors,
    generators,
    power,
    signed_ranks,
    simulated,
    two_runs,
)
from overlaylab.cli.main import cli

by_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)


def is_about(rate: Rate, expected: float) -> bool:
    return bool(binomtest(rate.count, rate.of, expected).pvalue > 1e-4)


@by_scenario
@pytest.mark.parametrize("blocks", [6, 10, 30])
def test_intervals_cover_as_often_as_they_claim(scenario, blocks) -> None:
    found = coverage(scenario, blocks, 600, next(generators(blocks)))
    assert found.claimed >= 0.95
    # Not more often either: order statistics are exact, whatever the noise.
    assert is_about(found.held[ORDER], found.claimed)


@by_scenario
@pytest.mark.parametrize(("overlays", "precision", "blocks"), [(1, None, 6), (8, None, 12), (4, 0.02, 0)])
def test_whole_runs_err_in_one_of_twenty_at_most(scenario, overlays, precision, blocks) -> None:
    found = errors(scenario, overlays, precision, 200, next(generators(overlays)), blocks)
    assert not found.different.exceeds(0.05) and not found.same.exceeds(0.05)


def test_one_comparison_of_six_blocks_errs_as_often_as_its_sign_test() -> None:
    # 2·½⁶: the tests above would pass as well if nothing were ever called different.
    found = errors(SCENARIOS[2], 1, None, 3000, next(generators(5)), 6)
    assert is_about(found.different, 0.03125)


@by_scenario
def test_two_runs_of_the_same_differ_in_one_of_twenty_at_most(scenario) -> None:
    found = two_runs(scenario, (6, 10), 200, next(generators(7)), rows=6)
    assert is_about(found.held, 1 - 0.0420)
    assert not found.failed.exceeds(0.05)


def test_the_blocks_that_are_called_needed_tell_as_often_as_they_are_to() -> None:
    blocks, told = power(0.02, 2, 500, next(generators(8)))
    assert blocks == 19 and told.share > 0.8 - 3 * told.error


def test_precision_stops_early_where_it_can() -> None:
    calm = errors(SCENARIOS[0], 1, 0.1, 20, next(generators(9)))
    assert (calm.blocks, calm.mean_blocks) == (28, 7.0)
    assert errors(SCENARIOS[0], 1, 0.001, 20, next(generators(9))).mean_blocks == 28


def test_signed_ranks_lose_what_is_not_symmetric() -> None:
    """Why the lab does not take them: with noise like a busy CPU's they miss the median far too often."""
    found = coverage(SCENARIOS[-1], 30, 600, next(generators(10)))
    assert found.held[SIGNED_RANK].share < 0.9


def test_overlays_of_a_block_share_its_host() -> None:
    first, second = simulated(SCENARIOS[0], next(generators(11)), 5, [1.0, 0.5])
    assert [host for _, host in first] == [host for _, host in second]
    assert np.median([own / host for own, host in second]) == pytest.approx(0.5, rel=0.05)


def test_the_alternative_is_wilcoxons() -> None:
    # Hollander and Wolfe 3.2: of 10 values the 9th smallest of 55 Walsh averages.
    values = np.arange(1.0, 11.0) ** 2
    walsh = sorted((a + b) / 2 for i, a in enumerate(values) for b in values[i:])
    assert signed_ranks(values) == (walsh[8], walsh[-9])


def test_a_rate_above_its_bound_is_seen() -> None:
    assert Rate(90, 1000).exceeds(0.05) and not Rate(60, 1000).exceeds(0.05)


def test_the_task_prints_every_part_and_ends_well(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    for name, value in {"TRIALS": "5", "INTERVALS": "20", "SEED": "3"}.items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(cli, ["bench", "statistics"])
    assert done.exit_code == 0, done.output
    for title in ("Intervals that hold", "Runs that called", "Two runs in which", "Runs of 5 that told"):
        assert title in done.output
