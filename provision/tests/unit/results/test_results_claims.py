"""Intervals and verdicts under a run's tables: what is claimed, and where nothing is."""

import random
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from lab_results import ALL, THREE, headers, printed, table_of

from overlaylab.core.model import Variant
from overlaylab.results.results import report
from overlaylab.results.verdicts import enough
from overlaylab.run.design import rules_of
from overlaylab.store.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "results"
sys.path.insert(0, str(FIXTURES))
import maker  # noqa: E402


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "lab.sqlite") as opened:
        opened.db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        yield opened


def blocks_of(factor, count, spread=0.002, seed=1):
    chance = random.Random(seed)
    return [factor * 1e8 * chance.gauss(1, spread) for _ in range(count)]


def test_the_verdict_stands_in_the_table_with_its_interval_and_margin(store):
    run = replace(maker.RUN, blocks=8, variants=ALL[:4])
    values = {
        maker.HOST: [1e8] * 8,
        maker.FASTDP: blocks_of(0.96, 8),
        maker.FASTDP_ENCRYPTED: blocks_of(0.995, 8),
        maker.SLEEVE: blocks_of(0.99, 8, 0.1),
    }
    table, rows = table_of(store, run, values)
    assert table.primary
    assert [rows[v].ratio.verdict.word for v in ALL[1:4]] == ["lower", "same", "cannot tell"]
    assert rows[maker.HOST].ratio.verdict is None
    assert rows[maker.FASTDP].ratio.interval.coverage == pytest.approx(0.9922, abs=1e-4)
    text = printed(store, width=110)
    assert re.search(r"^weave fastdp +8 .* 0\.9[56]\d \(0\.95\d–0\.96\d\) +slower ", text, re.M)
    assert re.search(r"^weave fastdp encrypted +8 .* same ", text, re.M)
    assert re.search(r"^weave sleeve +8 .* cannot tell ", text, re.M)
    words = " ".join(text.split())
    assert (
        "by the margin of 2 % that was given before the run: same where all of the interval lies between 0.980"
        in words
    )
    assert "Verdicts on tcp-goodput: goodput hold together (95 %, Holm over 3 comparisons)" in words


def test_the_margin_is_the_runs_own(store):
    run = replace(maker.RUN, blocks=8, variants=(maker.HOST, maker.FASTDP), arguments={"margin": 0.05})
    _, rows = table_of(store, run, {maker.HOST: [1e8] * 8, maker.FASTDP: blocks_of(0.96, 8)})
    assert rows[maker.FASTDP].ratio.verdict.word == "same"
    assert "by the margin of 5 %" in " ".join(printed(store).split())


def test_below_six_blocks_nothing_is_claimed(store):
    table_of(store, THREE, {maker.HOST: [100e6] * 3, maker.FASTDP: [90e6, 91e6, 92e6]})
    text = printed(store)
    assert "verdict" not in text.split("\n\n")[1]
    assert re.search(r"^weave fastdp .* 0\.910 \[0\.900–0\.920\]", text, re.M)
    assert "From fewer than six blocks (3 blocks) nothing is claimed" in " ".join(text.split())


def test_an_unfinished_run_has_no_verdict(store):
    maker.fill(store, replace(maker.RUN, blocks=12), until=66)
    text = printed(store, width=110)
    assert "slower" not in text and "Intervals and verdicts come with the last block" in text
    assert "slower" in printed(store, width=110, provisional=False)


def test_the_suite_says_what_is_primary(store):
    said = {"primary": {"benchmark": "tcp-latency", "metric": "latency_one_way"}}
    for arguments, expected in (({}, "goodput"), (said, "latency_one_way")):
        run_id = maker.fill(store, replace(maker.RUN, arguments=arguments))
        assert [t.metric for t in report(store, run_id, headers).tables if t.primary] == [expected]


def test_a_second_measuring_of_the_host_is_judged_like_an_overlay(store):
    again = Variant("host", "again")
    maker.MTU.setdefault(again, None)
    maker.GOODPUT.setdefault(again, 1e8)
    run = replace(maker.RUN, blocks=8, variants=(again, maker.HOST))
    table, rows = table_of(store, run, {maker.HOST: [1e8] * 8, again: blocks_of(1.0, 8)})
    assert [row.variant for row in table.rows] == [maker.HOST, again]
    assert rows[again].ratio.verdict.word == "same"
    assert re.search(r"^host again +8 .* same", printed(store, width=110), re.M)


def test_a_run_that_was_precise_enough_says_so(store):
    rules = {"precision": 0.02, "looks": [7, 14, 28], "margin": 0.02}
    run = replace(maker.RUN, blocks=28, variants=(maker.HOST, maker.FASTDP), arguments=rules)
    run_id = maker.fill(store, run, benchmarks=[maker.TCP], until=14)
    store.set_run_state(run_id, "done")
    text = printed(store, width=110)
    assert "Ended after block 7 of at most 28: every ratio is known to ±2 % (PRECISION)." in text
    assert "lies with 95 % or more at all 3 looks together" in text
    (table,) = [t for t in report(store, run_id, headers).tables if t.primary]
    assert [enough(report(store, run_id, headers).tables, rules_of(rules), n) for n in (6, 7)] == [
        False,
        True,
    ]
    assert table.rows[1].ratio.interval.coverage == pytest.approx(1 - 2 / 2**7)


@pytest.mark.parametrize(
    ("dead", "words"),
    [
        ((maker.SLEEVE,), "every ratio is known to ±2 %, and weave sleeve has none (PRECISION)."),
        (
            (maker.SLEEVE, maker.FASTDP),
            "no overlay has a ratio to the host, which more blocks would not mend (PRECISION).",
        ),
    ],
)
def test_precision_is_not_claimed_of_what_has_no_value(store, dead, words):
    rules = {"precision": 0.02, "looks": [7, 14, 28], "margin": 0.02}
    run = replace(maker.RUN, blocks=28, variants=(maker.HOST, maker.FASTDP, maker.SLEEVE), arguments=rules)
    broken = {
        (block, variant, "tcp-goodput"): maker.failed("dead") for block in range(1, 8) for variant in dead
    }
    run_id = maker.fill(store, run, benchmarks=[maker.TCP], results=broken, until=21)
    store.set_run_state(run_id, "done")
    assert f"Ended after block 7 of at most 28: {words}" in printed(store, width=130)


def test_a_host_of_zero_is_no_host_value_and_is_counted(store):
    run = replace(maker.RUN, blocks=10, variants=(maker.HOST, maker.FASTDP))
    _, rows = table_of(store, run, {maker.HOST: [0.0] * 3 + [1e8] * 7, maker.FASTDP: blocks_of(0.9, 10)})
    assert (rows[maker.FASTDP].n, rows[maker.FASTDP].ratio.n, rows[maker.FASTDP].left_out) == (10, 7, 3)
    assert "3 blocks have no host value and are not in the ratio of weave fastdp." in printed(
        store, width=110
    )


def test_without_the_primary_metric_each_verdict_stands_alone_and_that_is_said(store):
    rules = {"primary": {"benchmark": "tcp-goodput", "metric": "goodput"}}
    run = replace(maker.RUN, blocks=6, variants=(maker.HOST, maker.FASTDP, maker.SLEEVE), arguments=rules)
    broken = {
        (block, variant, "tcp-goodput"): maker.failed("dead")
        for block in range(1, 7)
        for variant in run.variants
    }
    maker.fill(store, run, results=broken)
    text = printed(store, width=130)
    assert re.search(r"^weave sleeve .* slower", text, re.M)
    assert "The primary metric has no ratio: each verdict holds for itself alone" in text
    assert "hold together" not in text
