"""How long a run will take, and what its nodes need: from its plan, and from cells on this machine."""

from dataclasses import replace

import pytest
from lab_builders import inventory

from overlaylab.core import progress
from overlaylab.run import experiment
from overlaylab.run.options import Options
from overlaylab.specs.inventory import write_inventory
from overlaylab.tools import base


@pytest.fixture(autouse=True)
def routes(monkeypatch: pytest.MonkeyPatch, own_cache) -> None:
    monkeypatch.setattr(experiment.routes, "known", list)


def test_an_estimate_without_experience() -> None:
    asked = experiment.request("weave", Options(blocks=2))
    trials = experiment.plan(asked, experiment.planning_inventory(asked))
    inside = 2 * 3 * (6 + 2)  # blocks, variants, iperf3 with its omitted second and qperf
    assert experiment.estimate(asked, trials, "tcg").seconds == inside + 25 + 2 * 3 * 8
    assert experiment.estimate(asked, trials, "shared-kernel").seconds == inside + 25 + 2 * 3 * 20
    assert experiment.estimate(asked, trials, "bare").seconds == inside + 25 + 2 * 3 * 13
    found = experiment.estimate(asked, trials, "kvm")
    assert found.memory == 2 * 1024 * 2**20
    assert found.disk == 2 * 4 * 500_000_000  # nodes, times the clean state and each variant


def test_an_estimate_learns_from_cells_on_this_machine(tmp_path) -> None:
    hosts = tmp_path / "hosts.yml"
    write_inventory(hosts, replace(inventory("a", "a"), name="hosts", provider="external"))
    progress.remember("cell-overhead-weave-tcg", 20)
    asked = experiment.request("weave", Options(blocks=2))
    trials = experiment.plan(asked, experiment.planning_inventory(asked))
    inside = 2 * 3 * (6 + 2)
    assert experiment.estimate(asked, trials, "tcg").seconds == inside + 25 + 2 * (8 + 20 + 20)
    left = [trial for trial in trials if trial.block == 2]  # what a run that is resumed still has to do
    assert experiment.estimate(asked, left, "tcg").seconds == inside / 2 + 25 + (8 + 20 + 20)
    on_hosts = experiment.request("weave", Options(blocks=2, inventory=str(hosts)))
    found = experiment.estimate(on_hosts, trials, "bare")
    assert (found.memory, found.disk) == (0, 0)
    assert found.seconds == inside + 25 + 2 * 3 * 13


def test_every_pair_of_zones_is_in_the_estimate() -> None:
    asked = experiment.request("host", Options(cluster="three-zones", blocks=2))
    trials = experiment.plan(asked, experiment.planning_inventory(asked))
    assert len(trials) == 2 * 3 * 2  # blocks, pairs, benchmarks
    inside, proof = 2 * 3 * (6 + 2), 25 + 2 * 17
    assert experiment.estimate(asked, trials, "tcg").seconds == inside + proof + 2 * 8 * (1 + 2 * 0.5)
    progress.remember("cell-overhead-host-tcg", 10)
    assert experiment.estimate(asked, trials, "tcg").seconds == inside + proof + 2 * 10 * (1 + 2 * 0.5)
    progress.remember("cell-overhead-host-tcg-3-pairs", 12)
    assert experiment.estimate(asked, trials, "tcg").seconds == inside + proof + 2 * 12


def test_floods_in_fragments_are_waited_for_in_the_estimate() -> None:
    """On azure-a1, 100 Mbit/s: UDP at 1000 and 3000 Mbit/s in datagrams of 8 KiB, each before another UDP trial."""
    asked = experiment.request(
        "host", Options(cluster="pair", suite="skybet-2017", profile="azure-a1", blocks=1)
    )
    trials = experiment.plan(asked, experiment.planning_inventory(asked))
    order = [trial.benchmark for trial in trials]
    waits = 30 * sum(name in ("udp-1000-8k", "udp-3000-8k") for name in order[:-1])
    assert waits in (30, 60)  # a flood at the end of the cell keeps nobody waiting
    assert experiment.estimate(asked, trials, "tcg").seconds == 10 * 10 + 25 + 8 + waits


def test_every_tool_of_a_plan_says_how_long_it_takes() -> None:
    asked = experiment.request("weave", Options(suite="schaaf-2015", scale=2))
    trials = experiment.plan(asked, experiment.planning_inventory(asked))
    tools = {t.tool for t in trials}
    assert tools == {"qperf"}
    assert sum(base.load(t.tool).duration(t.parameters) for t in trials) == 3 * 4 * (4 + 4)
