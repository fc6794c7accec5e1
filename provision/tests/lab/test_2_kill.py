"""Killed at any moment, a run keeps every finished trial, and lab:resume completes the plan."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from overlaylab.core import paths


@pytest.mark.turn("nodes")
def test_kill_and_resume(lab_in, quickest) -> None:
    lab = lab_in(BLOCKS="2", **quickest)
    with lab.started("lab:macvlan") as process:
        lab.wait_for_trials(3)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    finished = lab.query(
        "SELECT trial_id, status, started_at FROM trial WHERE status IN ('ok', 'failed', 'void')"
    )
    assert len(finished) >= 3
    assert lab.query("PRAGMA integrity_check") == [("ok",)]

    lab.run("lab:resume")
    trials = lab.query("SELECT trial_id, status, started_at FROM trial ORDER BY trial_id")
    assert len(trials) == 8
    assert {status for _, status, _ in trials} == {"ok"}
    assert set(finished) <= set(trials), "a finished trial is not measured again"
    per_trial = lab.query(
        "SELECT trial_id, count(*) FROM result"
        " WHERE metric IN ('goodput', 'latency_one_way') AND t_start IS NULL GROUP BY trial_id"
    )
    assert per_trial == [(trial_id, 1) for trial_id, *_ in trials]
    assert lab.query("SELECT state FROM run") == [("done",)]


@pytest.mark.turn("nodes")
def test_interrupt_leaves_nothing_behind(lab_in, quickest) -> None:
    lab = lab_in(BLOCKS="2", **quickest)
    with lab.started("lab:host") as process:
        lab.wait_for_trials(1)
        os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=60)
    assert process.returncode != 0
    assert lab.query("SELECT state FROM run") == [("interrupted",)]
    assert [path.name for path in lab.database.parent.iterdir()] == ["lab.sqlite"]
    processes = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    left = [pid for pid in processes if _belongs_to(pid, process.pid)]
    assert left == []


def _belongs_to(pid: int, session: int) -> bool:
    try:
        return os.getsid(pid) == session
    except (ProcessLookupError, PermissionError):
        return False


@pytest.mark.turn("nodes")
def test_resume_refuses_a_changed_suite(lab_in, quickest) -> None:
    lab = lab_in(BLOCKS="2", **quickest)
    with lab.started("lab:host") as process:
        lab.wait_for_trials(1)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    suite = paths.SUITES / "quick.yml"
    before = suite.read_text()
    try:
        suite.write_text(before.replace("duration: 2 s", "duration: 3 s"))
        assert "the suite quick has changed" in lab.run("lab:resume", code=2)
    finally:
        suite.write_text(before)
