"""Percentiles of single trials: printed beside the medians, never computed over trials."""

import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from overlaylab.core.model import Sample
from overlaylab.report.table import under
from overlaylab.results.results import report
from overlaylab.results.rows import Tail
from overlaylab.store.store import Store

sys.path.insert(0, str(Path(__file__).parents[2] / "fixtures" / "results"))
import maker

RR = {"benchmark": "tcp-rr", "tool": "netperf", "parameters": {"test": "tcp_rr"}}
PING = {"benchmark": "ping", "tool": "ping", "parameters": {"count": 200}}


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "lab.sqlite") as opened:
        yield opened


def measured(store, benchmark, samples):
    """Two blocks of the host and fastdp; samples: (trial) -> its samples."""
    run = replace(maker.RUN, blocks=2, variants=(maker.HOST, maker.FASTDP))
    results = {
        (trial.block, trial.variant, trial.benchmark): replace(
            maker.result(replace(trial, benchmark="tcp-latency", tool="qperf"), random.Random(1)),
            samples=tuple(samples(trial)),
        )
        for trial in maker.plan(run, [benchmark])
    }
    (table,) = report(store, maker.fill(store, run, benchmarks=[benchmark], results=results)).tables
    return table, {row.variant: row.tail for row in table.rows}


def test_a_tools_own_percentile_is_told_trial_by_trial(store):
    table, tails = measured(
        store,
        RR,
        lambda trial: [
            Sample("latency_rtt", 1e-3),
            Sample("latency_rtt", 0.9e-3, quantile=0.5),
            Sample(
                "latency_rtt", (2 if trial.variant == maker.HOST else 3 + trial.block) * 1e-3, quantile=0.99
            ),
        ],
    )
    assert tails == {maker.HOST: Tail(2e-3, 2e-3, 2), maker.FASTDP: Tail(4e-3, 5e-3, 2)}
    assert (
        "p99 of each trial's own messages, least to largest, in ms: host 2.00, weave fastdp 4.00–5.00."
        in under(table)
    )
    assert table.tools == ("netperf 0.0, closed loop, mean of each trial",)


def test_else_that_of_the_messages_where_they_are_a_hundred(store):
    def messages(trial):
        count = 200 if trial.variant == maker.HOST else 99
        return [Sample("latency_rtt", (i + 1) * 1e-6, i * 0.01, i * 0.01) for i in range(count)]

    table, tails = measured(store, PING, messages)
    assert tails[maker.FASTDP] is None, "the 99th percentile of 99 messages is the largest by another name"
    assert tails[maker.HOST] == Tail(pytest.approx(198.01e-6), pytest.approx(198.01e-6), 2)
    assert "p99 of each trial's own messages, least to largest, in µs: host 198.0." in under(table)
    assert table.tools == ("ping 0.0, median of each trial",)
