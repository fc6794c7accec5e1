"""Measuring several tiers from the command line, on nodes that answer from a list."""

import re

import pytest
from lab_commands import lab, refused
from test_commands_measure import Provider, Shaper

from overlaylab.cli.commands import measure
from overlaylab.core import paths
from overlaylab.core.lock import cluster_lock
from overlaylab.results import tiers
from overlaylab.run import experiment
from overlaylab.run.options import Options
from overlaylab.run.runner import RunStopped
from overlaylab.store.store import Store

pytestmark = pytest.mark.usefixtures("machine")

TWO = {"PROFILES": "azure-a1,azure-a0", "SEED": "7", "BLOCKS": "1"}


class Nodes:
    """A provider for each tier, as a run makes it. interrupt: tier -> what its preparing raises."""

    def __init__(self) -> None:
        self.made: list[tuple[str, tuple[str, str] | None]] = []
        self.trouble: dict[str, BaseException] = {}

    def __call__(self, asked: experiment.Request, chosen: tuple[str, str] | None = None) -> Provider:
        self.made.append((asked.profile.name, chosen))
        provider = Provider()
        if asked.profile.name in self.trouble:
            wrong = self.trouble[asked.profile.name]

            async def prepare(variants, say) -> None:
                raise wrong

            provider.prepare = prepare  # type: ignore[method-assign]
        return provider


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Nodes:
    made = Nodes()
    monkeypatch.setattr(measure, "provider_for", made)
    monkeypatch.setattr(measure, "on_nodes", lambda provider, profile: Shaper(profile))
    monkeypatch.setattr(measure.ready, "ensure", lambda needs, meanwhile: None)
    return made


def runs() -> list[tuple[str, str]]:
    """(profile, state) of every run, in the order of their beginning."""
    with Store.open(paths.database()) as store:
        return [
            tuple(row)
            for row in store.db.execute("SELECT profile, state FROM _run ORDER BY rowid").fetchall()
        ]


def test_one_run_for_each_tier_then_the_grid(nodes) -> None:
    result = lab("measure", "weave", MODES="fastdp", **TWO)
    assert result.exit_code == 0, result.output
    assert runs() == [("azure-a1", "done"), ("azure-a0", "done")]
    # The provider is chosen once, and each tier has an object of its own.
    chosen = ("libvirt", "provider: as typed")
    assert nodes.made == [("azure-a1", chosen), ("azure-a0", chosen)]
    own, other, grid = re.split(r"^(?=quick on pair)", result.stdout, flags=re.M)[1:]
    assert own.startswith("quick on pair, profile azure-a1")
    assert other.startswith("quick on pair, profile azure-a0")
    assert grid.startswith("quick on pair, 2 tiers\n")
    assert re.search(r"^azure-a1 +95.0 +ratio += \(within one step\) *$", grid, re.M)
    assert re.search(r"^azure-a0 +95.0 +ratio += \(within one step\) *$", grid, re.M)
    assert "Unfinished" not in grid
    assert result.stderr.count("provider: as typed") == 1
    assert "tier azure-a0, 2 of 2" in result.stderr


def test_the_grid_is_shown_again_by_its_group(nodes) -> None:
    first = lab("measure", "host", **TWO)
    grid = first.stdout[first.stdout.index("quick on pair, 2 tiers") :]
    assert lab("results", "show", "--group", "newest").stdout == grid
    with Store.open(paths.database()) as store:
        group = tiers.groups(store)[0].group
    assert lab("results", "show", GROUP=group[-4:]).stdout == grid
    wrong = refused("results", "show", "abc", GROUP="newest")
    assert (wrong.where, wrong.seen) == ("GROUP", "GROUP=newest and RUN=abc")


def test_profile_beside_profiles_is_refused(nodes) -> None:
    wrong = refused("measure", "weave", PROFILE="azure-a2", **TWO)
    assert (wrong.where, wrong.seen) == ("PROFILES", "PROFILES=azure-a1,azure-a0 and PROFILE=azure-a2")
    assert nodes.made == []


def test_a_wrong_name_is_refused_before_anything_starts(nodes) -> None:
    assert refused("measure", "weave", PROFILES="azure-a0,azure-a99").seen == '"azure-a99"'
    assert nodes.made == []


def test_ctrl_c_between_two_tiers_is_carried_on(nodes) -> None:
    nodes.trouble["azure-a0"] = KeyboardInterrupt()
    result = lab("measure", "host", **TWO)
    assert result.exit_code == 1
    assert "not measured to the end: azure-a0; ./task lab:resume carries on" in result.stderr
    assert runs() == [("azure-a1", "done")]

    nodes.trouble.clear()
    nodes.made.clear()
    result = lab("resume")
    assert result.exit_code == 0, result.output
    assert runs() == [("azure-a1", "done"), ("azure-a0", "done")]
    assert [name for name, _ in nodes.made] == ["azure-a0"]
    grid = result.stdout[result.stdout.index("quick on pair, 2 tiers") :]
    assert re.search(r"^azure-a1 +95.0", grid, re.M) and re.search(r"^azure-a0 +95.0", grid, re.M)
    assert refused("resume").rule == "must hold an unfinished run"


def test_ctrl_c_before_the_first_tier_leaves_nothing_to_carry_on(nodes) -> None:
    nodes.trouble["azure-a1"] = KeyboardInterrupt()
    result = lab("measure", "host", **TWO)
    assert result.exit_code == 1
    assert "lab:resume" not in result.stderr


@pytest.fixture
def unproven(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Tiers whose profile fails its check."""
    prove = Shaper.prove
    names: set[str] = set()

    async def proves(self, say):
        if self.profile.name in names:
            raise RunStopped(f"profile {self.profile.name} failed its check (goodput)")
        return await prove(self, say)

    monkeypatch.setattr(Shaper, "prove", proves)
    return names


def test_a_tier_that_stops_does_not_keep_the_others_from_being_measured(nodes, unproven) -> None:
    unproven.add("azure-a1")
    result = lab("measure", "host", **TWO)
    assert runs() == [("azure-a1", "interrupted"), ("azure-a0", "done")]
    assert result.exception.rule == "stopped: azure-a1: profile azure-a1 failed its check (goodput)"
    assert "lab:resume" in result.exception.fix
    grid = result.stdout[result.stdout.index("quick on pair, 2 tiers") :]
    assert re.search(r"^azure-a1 +– *\nblock 0 of 1 *$", grid, re.M)

    unproven.clear()
    nodes.made.clear()
    assert lab("resume").exit_code == 0
    assert runs() == [("azure-a1", "done"), ("azure-a0", "done")]
    assert [name for name, _ in nodes.made] == ["azure-a1"]


def test_the_run_that_was_named_goes_first(nodes, unproven) -> None:
    unproven |= {"azure-a0", "azure-a2"}
    nodes.trouble["azure-a3"] = KeyboardInterrupt()
    lab("measure", "host", PROFILES="azure-a0,azure-a1,azure-a2,azure-a3", SEED="7", BLOCKS="1")
    with Store.open(paths.database()) as store:
        known = dict(store.db.execute("SELECT profile, run_id FROM _run").fetchall())
    assert sorted(known) == ["azure-a0", "azure-a1", "azure-a2"]
    unproven.clear()
    nodes.trouble["azure-a0"] = nodes.trouble.pop("azure-a3")
    nodes.made.clear()
    assert lab("resume", RUN=known["azure-a2"]).exit_code == 1
    assert [name for name, _ in nodes.made] == ["azure-a2", "azure-a0"]

    nodes.trouble.clear()
    nodes.made.clear()
    assert lab("resume", RUN=known["azure-a1"]).exit_code == 0  # done itself, but of a group that is not
    assert [name for name, _ in nodes.made] == ["azure-a0", "azure-a3"]
    assert sorted(runs()) == [(f"azure-a{n}", "done") for n in range(4)]


def test_a_role_that_changed_between_two_tiers_is_told_of(nodes, monkeypatch) -> None:
    nodes.trouble["azure-a0"] = KeyboardInterrupt()
    lab("measure", "host", **TWO)
    nodes.trouble.clear()
    monkeypatch.setattr(experiment.overlays, "role_digest", lambda name: "another")
    assert lab("resume").exit_code == 0
    assert "another role of host (it has changed) than azure-a1" in " ".join(
        lab("results", "show", GROUP="newest").stdout.split()
    )


def test_the_lock_is_taken_for_each_run(nodes) -> None:
    with cluster_lock("pair", "measuring something else"):
        wrong = refused("measure", "host", **TWO)
    assert "measuring something else" in str(wrong.seen)
    assert runs() == []


def test_a_dry_run_prints_the_plan_all_tiers_and_the_whole_time(nodes) -> None:
    result = lab("measure", "weave", DRY_RUN="1", MODES="fastdp", **TWO)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("./task lab:weave PROFILES=azure-a1,azure-a0 MODES=fastdp")
    assert lines[1] == "4 trials in 1 block on each tier, seed 7, accelerator tcg"
    one = experiment.request("weave", Options(modes="fastdp", blocks=1, seed=7))
    seconds = experiment.estimate(
        one, experiment.plan(one, experiment.planning_inventory(one)), "tcg"
    ).seconds
    each, both = measure.readable(seconds), measure.readable(2 * seconds)
    assert [line for line in lines if line.startswith("  tier")] == [
        f"  tier 1. azure-a1: Azure A1, 100 Mbit/s: about {each}",
        f"  tier 2. azure-a0: Azure A0, 5 Mbit/s: about {each}",
    ]
    assert f"time: about {both} with nodes up and converged, 2 tiers together" in lines
    assert nodes.made == []


def test_each_tier_has_an_estimate_of_its_own(nodes) -> None:
    """A flood of datagrams of 8 KiB is waited for at an MTU of 1500, where it goes in fragments, and not at 9001."""
    names = ["azure-a1", "aws-t2.medium"]
    asked = [
        experiment.request("host", Options(suite="skybet-2017", profile=name, blocks=1, seed=7))
        for name in names
    ]
    trials = experiment.plan(asked[0], experiment.planning_inventory(asked[0]))
    seconds = [experiment.estimate(one, trials, "tcg").seconds for one in asked]
    assert seconds[0] - seconds[1] == 3 * 2 * 30  # pairs of zones, floods before another UDP trial
    printed = lab("measure", "host", SUITE="skybet-2017", DRY_RUN="1", **TWO | {"PROFILES": ",".join(names)})
    told = [line.rsplit("about ", 1)[1] for line in printed.stdout.splitlines() if line.startswith("  tier")]
    assert told == [measure.readable(each) for each in seconds]
    assert f"time: about {measure.readable(sum(seconds))} with nodes up" in printed.stdout
