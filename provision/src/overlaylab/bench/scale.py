"""Runs of many samples for `bench:store` and `bench:stats`: made up, stored as a real run is, and timed."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from overlaylab.core.model import PlannedTrial, RunRecord, Sample, TrialResult, Variant
from overlaylab.store.store import Store

# Samples.
SIZES = (10_000, 100_000, 1_000_000)
VARIANTS = (Variant("host"), Variant("weave", "fastdp"))
NODES = ("node1", "node2")
# Different results that the trials take in turn, so that making them up is no part of what is timed.
MADE = 4


@dataclass(frozen=True)
class Filled:
    """seconds: from planning the run to its end, everything on disk."""

    run_id: str
    trials: int
    samples: int
    seconds: float


def record(blocks: int) -> RunRecord:
    """Of a run that measured nothing, and says so."""
    return RunRecord(
        cluster="pair", provider="none", accelerator="bare", machine="made up by bench:store", image=None,
        profile="none", profile_digest="0" * 64, stands_for=None, suite="bench:store", suite_digest="0" * 64,
        scale=1.0, seed=1, blocks=blocks, variants=VARIANTS, role_digests={}, zones=dict.fromkeys(NODES, "a"),
        nodes={},
    )  # fmt: skip


def plan(blocks: int) -> list[PlannedTrial]:
    """One trial of each variant in each block."""
    return [
        PlannedTrial(block, position, variant, "rtt", "sockperf", {"duration": 10.0}, repetition=1)
        for block in range(1, blocks + 1)
        for position, variant in enumerate(VARIANTS)
    ]


def result(number: int, per_trial: int) -> TrialResult:
    """Latencies with a long tail over one 10 s trial, and a line of raw output for each."""
    chance = random.Random(number)
    step = 10 / per_trial
    values = [chance.lognormvariate(-8, 0.5) for _ in range(per_trial - 1)]
    return TrialResult(
        status="ok", reason=None, started_at="2000-01-01T00:00:00.000Z", duration=10.0,
        argv=("sockperf", "under-load"), exit_code=0,
        stdout="".join(f"{i * step:.9f}, {v:.9f}\n" for i, v in enumerate(values)),
        stderr="", tool_version="made up", underlay_mtu=1500,
        samples=(
            Sample("latency_rtt", sorted(values)[len(values) // 2]),
            *(Sample("latency_rtt", v, i * step, i * step) for i, v in enumerate(values)),
        ),
    )  # fmt: skip


def fill(store: Store, samples: int, per_trial: int) -> Filled:
    """Plan, begin, store and end a run of that many samples."""
    blocks = samples // per_trial // len(VARIANTS)
    results = [result(number, per_trial) for number in range(MADE)]
    trials = plan(blocks)
    started = time.perf_counter()
    run_id = store.begin_run(record(blocks), trials)
    store.set_run_state(run_id, "running")
    for number, (trial_id, _) in enumerate(store.pending_trials(run_id)):
        store.start_trial(trial_id, "2000-01-01T00:00:00.000Z")
        store.finish_trial(trial_id, results[number % MADE])
    store.set_run_state(run_id, "done")
    return Filled(run_id, len(trials), len(trials) * per_trial, time.perf_counter() - started)
