"""What trials will take that are told a number of transactions: as long as these take on the path."""

from types import SimpleNamespace

import pytest

from overlaylab.core.model import PlannedTrial, Variant
from overlaylab.providers import requirements
from overlaylab.run import expected_time, experiment
from overlaylab.run.options import Options
from overlaylab.specs.profile import load_profile

ZONES = {"node1": "a", "node2": "a"}
SMALL = {"test": "tcp_rr", "transactions": 50000, "request": 1000}


def trial(placement: str = "remote", tool: str = "netperf", **parameters) -> PlannedTrial:
    return PlannedTrial(1, 0, Variant("host"), "x", tool, parameters or SMALL, placement=placement)


def seconds(one: PlannedTrial, profile: str, accelerator: str) -> float:
    return expected_time.of_trials([one], load_profile(profile), ZONES, accelerator)


@pytest.fixture
def netem(monkeypatch) -> SimpleNamespace:
    """A kernel with netem, or without where `soft` says what is not applied then."""
    found = SimpleNamespace(soft=())
    monkeypatch.setattr(requirements, "not_applied", lambda profile: found.soft)
    return found


def test_a_round_trip_is_the_slower_of_the_paths_own_and_the_tiers(netem) -> None:
    bits = 16000
    # azure-a1: 0.966 ms, 100 Mbit/s.
    assert seconds(trial(), "azure-a1", "tcg") == pytest.approx(50000 * (0.0015 + bits / 1e8))
    assert seconds(trial(), "azure-a1", "kvm") == pytest.approx(50000 * (0.000966 + bits / 100e6))
    assert seconds(trial(), "azure-a1", "shared-kernel") == pytest.approx(50000 * (0.000966 + bits / 100e6))
    netem.soft = ("latency",)
    assert seconds(trial(), "azure-a1", "shared-kernel") == pytest.approx(50000 * (0.00005 + bits / 100e6))
    assert seconds(trial(), "none", "shared-kernel") == pytest.approx(50000 * (0.00005 + bits / 1e10))


def test_within_a_node_no_tier_counts() -> None:
    assert seconds(trial("local"), "azure-a1", "kvm") == pytest.approx(50000 * (0.0003 + 16000 / 1e9))
    assert seconds(trial("local"), "azure-a1", "tcg") == pytest.approx(50000 * (0.0005 + 16000 / 5e8))


def test_a_tool_that_is_told_a_time_takes_it() -> None:
    asked = trial(tool="qperf", test="tcp_lat", duration=2.0)
    assert seconds(asked, "azure-a1", "tcg") == seconds(asked, "none", "shared-kernel") == 2.0


@pytest.mark.usefixtures("machine")
def test_deitcher_2016_in_containers_is_minutes(netem) -> None:
    """It was estimated as on 1 ms and 100 Mbit/s wherever it ran: 58 minutes for a tenth of three blocks."""
    asked = experiment.request(
        "host", Options(suite="deitcher-2016", profile="none", provider="lxc", blocks=3, scale=0.1, seed=7)
    )
    trials = experiment.plan(asked, experiment.planning_inventory(asked))
    assert len(trials) == 3 * 32
    assert 60 < experiment.estimate(asked, trials, "shared-kernel").seconds < 8 * 60
