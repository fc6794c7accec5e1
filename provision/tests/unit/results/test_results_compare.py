"""Two runs against each other: how far ratios moved, what got worse, and what is not to be compared."""

import math
import random
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from overlaylab.cli.main import cli
from overlaylab.core.errors import UserError
from overlaylab.core.model import Sample
from overlaylab.results.compare import DIFFERENCE, RATIO, changed, compare, hindrances
from overlaylab.results.results import report
from overlaylab.stats.inference import CANNOT_TELL, HIGHER, LOWER, SAME
from overlaylab.store.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "results"
sys.path.insert(0, str(FIXTURES))
import maker  # noqa: E402

HOST, FASTDP, SLEEVE = maker.HOST, maker.FASTDP, maker.SLEEVE
# A host of eight blocks.
EVEN = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.1]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_DB", str(tmp_path / "lab.sqlite"))
    monkeypatch.setenv("COLUMNS", "110")
    with Store.open(tmp_path / "lab.sqlite") as opened:
        opened.db.execute("PRAGMA synchronous = OFF")
        yield opened


def measured(store, values, metric="goodput", **changes) -> str:
    """A run of one benchmark: values {variant: [value of block 1, …]}; None is a failed trial."""
    run = replace(maker.RUN, blocks=len(values[HOST]), variants=tuple(values), **changes)
    found = {}
    for trial in maker.plan(run, [maker.TCP]):
        value = values[trial.variant][trial.block - 1]
        usual = maker.result(trial, random.Random(1))
        found[trial.block, trial.variant, trial.benchmark] = (
            maker.failed("no server") if value is None else replace(usual, samples=(Sample(metric, value),))
        )
    return maker.fill(store, run, benchmarks=[maker.TCP], results=found)


def times(factor: float, series=EVEN) -> list[float]:
    return [value * factor for value in series]


def against(store, first, second, margin=0.02, fail_over=None):
    found = compare(report(store, first), report(store, second), margin, fail_over)
    (table,) = found.tables
    return found, {change.variant: change for change in table.changes}


def spread(factor: float, seed: int) -> list[float]:
    """EVEN times about factor, 0.2 % from block to block."""
    chance = random.Random(seed)
    return [value * factor * chance.gauss(1, 0.002) for value in EVEN]


def test_ratios_are_held_against_each_other_and_not_values(store):
    # The second machine hour is half as fast: the overlay's ratio fell from .95 to .90.
    first = measured(store, {HOST: EVEN, FASTDP: spread(0.95, 1), SLEEVE: spread(0.3, 2)})
    second = measured(
        store, {HOST: times(0.5), FASTDP: times(0.5, spread(0.90, 3)), SLEEVE: times(0.5, spread(0.3, 4))}
    )
    found, of = against(store, first, second)
    assert (of[FASTDP].kind, of[FASTDP].first.n, of[FASTDP].second.n) == (RATIO, 8, 8)
    assert of[FASTDP].estimate == pytest.approx(0.90 / 0.95, rel=2e-3)
    assert of[FASTDP].interval.low < 0.9474 < of[FASTDP].interval.high < 0.952
    assert of[FASTDP].interval.coverage == pytest.approx(0.9501, abs=1e-3)
    assert (of[FASTDP].word, of[SLEEVE].word) == (LOWER, SAME)
    assert found.tables[0].host == (pytest.approx(100.05), pytest.approx(50.025))
    assert found.exit_code == 0, "nobody asked"


@pytest.mark.parametrize(
    ("over", "code", "worse", "unsure"),
    [(0.03, 1, True, False), (0.053, 3, False, True), (0.08, 0, False, False)],
)
def test_the_exit_code_says_what_got_worse_for_sure(store, over, code, worse, unsure):
    first = measured(store, {HOST: EVEN, FASTDP: spread(0.95, 1), SLEEVE: spread(0.3, 2)})
    second = measured(store, {HOST: EVEN, FASTDP: spread(0.90, 3), SLEEVE: spread(0.3, 4)})
    found, of = against(store, first, second, fail_over=over)
    assert (found.exit_code, of[FASTDP].worse, of[FASTDP].open) == (code, worse, unsure)
    assert not of[SLEEVE].worse and not of[SLEEVE].open


def test_what_got_better_is_not_worse(store):
    first = measured(store, {HOST: EVEN, FASTDP: spread(0.90, 1)})
    second = measured(store, {HOST: EVEN, FASTDP: spread(0.95, 2)})
    found, of = against(store, first, second, fail_over=0.03)
    assert (of[FASTDP].word, found.exit_code) == (HIGHER, 0)
    # Of latency the same numbers are worse.
    first = measured(store, {HOST: EVEN, FASTDP: spread(0.90, 1)}, metric="latency_rtt")
    second = measured(store, {HOST: EVEN, FASTDP: spread(0.95, 2)}, metric="latency_rtt")
    found, of = against(store, first, second, fail_over=0.03)
    assert (of[FASTDP].word, found.exit_code) == (HIGHER, 1)


def test_a_run_against_itself_is_the_same(store):
    run = measured(store, {HOST: EVEN, FASTDP: spread(0.95, 1)})
    found, of = against(store, run, run, fail_over=0.05)
    assert of[FASTDP].estimate == pytest.approx(1.0)
    assert (of[FASTDP].word, found.exit_code) == (SAME, 0)


def test_few_blocks_claim_nothing_and_are_not_passed(store):
    first = measured(store, {HOST: EVEN[:5], FASTDP: times(0.95, EVEN[:5])})
    second = measured(store, {HOST: EVEN, FASTDP: times(0.5)})
    found, of = against(store, first, second, fail_over=0.05)
    assert of[FASTDP].estimate == pytest.approx(0.5 / 0.95)
    assert (of[FASTDP].interval, of[FASTDP].word, found.exit_code) == (None, CANNOT_TELL, 3)


def test_a_variant_that_fails_now_is_not_passed(store):
    first = measured(store, {HOST: EVEN, FASTDP: spread(0.95, 1), SLEEVE: spread(0.3, 2)})
    second = measured(store, {HOST: EVEN, FASTDP: [None] * 8, SLEEVE: spread(0.3, 2)})
    found, of = against(store, first, second, fail_over=0.05)
    assert (of[FASTDP].estimate, of[FASTDP].second.median, of[FASTDP].open) == (None, None, True)
    assert found.exit_code == 3


def test_a_metric_that_vanished_is_not_passed(store):
    """Also where the host failed with the overlay, as with a tool that broke, so that the second run has no table."""
    first = measured(store, {HOST: EVEN, FASTDP: spread(0.95, 1)})
    second = measured(store, {HOST: [None] * 8, FASTDP: [None] * 8})
    found, of = against(store, first, second, fail_over=0.99)
    assert (of[FASTDP].first.n, of[FASTDP].second.n, of[FASTDP].open) == (8, 0, True)
    assert (found.absent, found.exit_code) == ((), 3)
    assert against(store, first, second)[0].exit_code == 0, "nobody asked"
    done = call(first, second, "--fail-over", "99%")
    assert done.exit_code == 3
    assert re.search(r"^weave fastdp +8, 0 +0.949 +– +– +– +cannot tell", done.stdout, re.M)
    assert "1 of 1 may be. Exit code 3." in done.stdout


def test_what_the_second_run_was_not_asked_for_is_named_and_not_judged(store):
    first = measured(store, {HOST: EVEN, FASTDP: spread(0.95, 1), SLEEVE: spread(0.3, 2)})
    second = measured(store, {HOST: EVEN, FASTDP: spread(0.95, 3)})
    found, of = against(store, first, second, fail_over=0.05)
    assert (list(of), found.exit_code) == ([FASTDP], 0)
    assert found.absent == ("only the first run has the overlay mode weave sleeve",)
    whole = maker.fill(store, maker.RUN)
    alone = maker.fill(store, maker.RUN, benchmarks=[maker.LAT])
    found = compare(report(store, whole), report(store, alone), 0.02, 0.05)
    assert [table.first.benchmark for table in found.tables] == ["tcp-latency"]
    assert found.absent == ("only the first run has tcp-goodput: goodput, tcp-goodput: retransmits",)


def test_nothing_that_arrives_is_the_least_there_is(store):
    first = measured(store, {HOST: EVEN, FASTDP: spread(0.95, 1)})
    second = measured(store, {HOST: EVEN, FASTDP: [0.0] * 8})
    found, of = against(store, first, second, fail_over=0.05)
    assert (of[FASTDP].estimate, of[FASTDP].interval.high, of[FASTDP].word) == (0, 0, LOWER)
    assert found.exit_code == 1
    third = measured(store, {HOST: EVEN, FASTDP: [0.0, *spread(0.48, 2)[1:]]})
    found, of = against(store, first, third, fail_over=0.05)
    assert (found.exit_code, of[FASTDP].estimate) == (1, pytest.approx(0.505, abs=0.005))
    found, of = against(store, second, first, fail_over=0.05)
    assert (of[FASTDP].estimate, of[FASTDP].word, found.exit_code) == (math.inf, HIGHER, 0)


def test_the_estimate_is_that_of_the_values_however_large_the_step(store):
    def stepped(value: float) -> str:
        run = replace(maker.RUN, blocks=8, variants=(HOST, FASTDP))
        results = {}
        for trial in maker.plan(run, [maker.TCP]):
            own = 10.0 if trial.variant == HOST else value
            usual = maker.result(trial, random.Random(1))
            results[trial.block, trial.variant, trial.benchmark] = replace(
                usual, samples=(Sample("goodput", own, resolution=1.0),)
            )
        return maker.fill(store, run, benchmarks=[maker.TCP], results=results)

    _, of = against(store, stepped(2.0), stepped(4.0))
    assert of[FASTDP].estimate == pytest.approx(2.0)
    assert of[FASTDP].interval.holds(2.0)


@pytest.mark.parametrize(
    ("name", "value", "between"),
    [
        ("MARGIN", "0%", "0.05 % and 50 %"),
        ("MARGIN", "100%", "0.05 % and 50 %"),
        ("FAIL_OVER", "100%", "0 % and 99 %"),
        ("FAIL_OVER", "200%", "0 % and 99 %"),
    ],
)
def test_a_margin_that_nobody_can_mean_is_refused(store, name, value, between):
    run = measured(store, {HOST: EVEN, FASTDP: spread(0.95, 1)})
    with pytest.raises(UserError, match=rf"{name}: must lie between {between}"):
        call(run, run, f"--{name.lower().replace('_', '-')}", value)


def test_loss_is_compared_in_points(store):
    first = measured(store, {HOST: [0.0] * 8, FASTDP: [0.0, 0.001] * 4}, metric="loss")
    second = measured(store, {HOST: [0.0] * 8, FASTDP: [0.2, 0.21] * 4}, metric="loss")
    found, of = against(store, first, second, fail_over=0.05)
    assert (of[FASTDP].kind, of[FASTDP].word, found.exit_code) == (DIFFERENCE, HIGHER, 1)
    assert of[FASTDP].estimate == pytest.approx(0.2045, abs=5e-4)


def test_what_forbids_a_comparison_and_what_does_not():
    run = maker.RUN
    assert hindrances(run, run) == [] == changed(run, run)
    other = replace(run, accelerator="kvm", machine="another", profile_digest="q" * 64)
    assert hindrances(run, other) == [
        "another accelerator: tcg, then kvm",
        "another machine: 2 cores, test machine, then another",
        "the profile azure-a1 says something else since",
    ]
    other = replace(run, profile="azure-a0", role_digests={"host": "h" * 64, "weave": "x" * 64}, scale=2.0)
    assert hindrances(run, other) == ["another profile: azure-a1, then azure-a0"]
    assert changed(run, other) == ["another scale: 1.0, then 2.0", "the role of weave has changed"]


# -- the command ------------------------------------------------------------------------------------


def call(*arguments):
    done = CliRunner().invoke(cli, ["results", "compare", *arguments])
    if isinstance(done.exception, UserError):
        raise done.exception
    return done


def test_the_command_prints_it_and_ends_with_the_code(store):
    first = measured(store, {HOST: EVEN, FASTDP: spread(0.95, 1), SLEEVE: spread(0.3, 2)})
    second = measured(store, {HOST: EVEN, FASTDP: spread(0.90, 3), SLEEVE: spread(0.3, 4)})
    done = call(first, second, "--fail-over", "3%")
    assert done.exit_code == 1
    assert re.search(
        r"^weave fastdp +8, 8 +0.949 +0.900 +0.949 \(0.947–0.951\) +slower +worse", done.stdout, re.M
    )
    assert re.search(r"^weave sleeve +8, 8 .* same +no", done.stdout, re.M)
    assert "Worse by more than 3 %: weave fastdp. Exit code 1." in done.stdout
    assert call("--run-a", first, "--fail-over", "8%").exit_code == 0, "the newest is the other"
    assert call("--run-a", first, "--run-b", second).exit_code == 0
    assert "over?" not in call(first).stdout


def test_other_accelerators_are_shown_with_a_warning_and_never_judged(store):
    first = measured(store, {HOST: EVEN, FASTDP: spread(0.95, 1)})
    second = measured(store, {HOST: EVEN, FASTDP: spread(0.90, 3)}, accelerator="kvm")
    done = call(first, second)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[1].startswith(
        "These two cannot be compared: another accelerator: tcg, then kvm."
    )
    with pytest.raises(
        UserError, match=r"FAIL_OVER: is for two runs that differ in nothing .*found: another accelerator"
    ):
        call(first, second, "--fail-over", "5%")


def test_what_is_typed_wrong_is_said(store):
    run = measured(store, {HOST: EVEN, FASTDP: spread(0.95, 1)})
    with pytest.raises(UserError, match=r"RUN_A: must name the run"):
        call()
    with pytest.raises(UserError, match=r"runs: must be two"):
        call(run, run, run)
    with pytest.raises(
        UserError, match=r"FAIL_OVER: must be a number and a percent sign, such as 2% \(found: 5\)"
    ):
        call(run, "--fail-over", "5")


def test_what_only_one_run_has_is_said_and_nothing_is_judged(store):
    first = measured(store, {HOST: EVEN, FASTDP: times(0.95)})
    second = measured(store, {HOST: EVEN, SLEEVE: times(0.3)})
    done = CliRunner().invoke(cli, ["results", "compare", first, second, "--fail-over", "5%"])
    assert done.exit_code == 3
    assert "Only the first run has the overlay mode weave fastdp." in done.stdout
    assert "Only the second run has the overlay mode weave sleeve." in done.stdout
    assert "No overlay was measured in both, so nothing is judged.\nExit code 3.\n" in done.stdout
    assert "overlay mode  n" not in done.stdout and "0 of 0" not in done.stdout
