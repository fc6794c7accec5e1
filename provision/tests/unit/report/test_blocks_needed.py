"""What a plan says of its number of blocks, from what earlier runs showed."""

import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from overlaylab.core.model import Sample
from overlaylab.report import blocks_needed
from overlaylab.run import experiment
from overlaylab.run.options import Options
from overlaylab.specs.suite import load_suite
from overlaylab.store.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "results"
sys.path.insert(0, str(FIXTURES))
import maker  # noqa: E402

QUICK = load_suite("quick")


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """measured({variant: [goodput, …]}): a run of quick under azure-a1 as both are now."""
    path = tmp_path / "lab.sqlite"
    monkeypatch.setenv("LAB_DB", str(path))
    asked = experiment.request("weave", Options(modes="fastdp,sleeve"))

    def measured(values, resolution=None, **changes):
        run = replace(
            maker.RUN, blocks=len(values[maker.HOST]), variants=tuple(values),
            suite_digest=QUICK.digest, profile_digest=asked.profile.digest, **changes,
        )  # fmt: skip
        found = {}
        for trial in maker.plan(run, [maker.TCP]):
            usual = maker.result(trial, random.Random(1))
            sample = Sample("goodput", values[trial.variant][trial.block - 1], resolution=resolution)
            found[trial.block, trial.variant, trial.benchmark] = replace(usual, samples=(sample,))
        with Store.open(path) as store:
            store.db.execute("PRAGMA synchronous = OFF")
            maker.fill(store, run, benchmarks=[maker.TCP], results=found)

    return asked, measured


def told(asked) -> list[str]:
    return list(blocks_needed.lines([asked], "tcg"))


def test_without_a_run_nothing_is_made_up(lab) -> None:
    asked, measured = lab
    assert told(asked) == [
        "verdicts: by a margin of 2 %; 2 comparisons with the host take 7 blocks at least",
        "blocks needed: not known: no run of quick under azure-a1 was seen yet on this accelerator whose ratios show "
        "how far blocks are apart",
    ]
    measured({maker.HOST: [100.0] * 6, maker.FASTDP: [90.0] * 6}, accelerator="kvm")
    assert "not known" in told(asked)[1]


def test_the_variant_that_spreads_most_decides(lab) -> None:
    asked, measured = lab
    even, apart = [96.0, 96.1, 96.0, 95.9], [29.0, 30.0, 31.0, 30.0]
    measured({maker.HOST: [100.0] * 4, maker.FASTDP: even, maker.SLEEVE: apart})
    # Logarithms of 29, 30, 31, 30 have a standard deviation of 2.72 %; Φ(−2/2.72) = .231, and 9 of 32 may be wrong.
    assert told(asked)[1] == (
        "blocks needed: about 32 to tell a difference of 2 % with 80% probability: weave sleeve's ratio is ±2.72 % "
        "from block to block (4 blocks seen)"
    )
    assert blocks_needed.seen(asked, "tcg")[maker.SLEEVE].spread == pytest.approx(0.0272, abs=1e-4)


def test_what_was_never_seen_is_named(lab) -> None:
    asked, measured = lab
    measured({maker.HOST: [100.0] * 3, maker.FASTDP: [96.0, 96.1, 95.9]})
    assert told(asked)[1].startswith("blocks needed: about 7 to tell")
    assert told(asked)[1].endswith("; nothing seen yet of weave sleeve")


def test_a_step_as_large_as_the_margin_is_told(lab) -> None:
    asked, measured = lab
    measured({maker.HOST: [100.0] * 3, maker.FASTDP: [96.0, 96.1, 95.9]}, resolution=1.5)
    assert "no number tells 2 % of weave fastdp: the tool's step is 1.5 % of the value" in told(asked)[1]


def test_too_few_blocks_are_told_of(lab) -> None:
    asked, _ = lab
    assert told(replace(asked, blocks=3))[1] == "   so 3 claim nothing: the table will show min–max"
    assert told(replace(asked, blocks=6))[1] == "   so 6 give intervals, and no verdict"
    assert told(experiment.request("host")) == []


def test_looks_are_told(lab) -> None:
    asked = experiment.request("weave", Options(modes="fastdp", precision=0.01))
    assert (
        told(asked)[0]
        == "precision: ends after block 7, 14, 28, the first at which every ratio is known to ±1 %"
    )
