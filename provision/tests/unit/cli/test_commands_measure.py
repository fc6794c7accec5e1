"""Measuring and resuming from the command line, on nodes that answer from a list."""

import os
import random
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from lab_commands import lab, refused
from lab_fakes import iperf3
from lab_run import IPERF3, Lab, Shaper

from overlaylab.cli.commands import measure
from overlaylab.core import paths
from overlaylab.core.errors import NodeError
from overlaylab.core.lock import cluster_lock
from overlaylab.run import experiment
from overlaylab.run.options import Options
from overlaylab.store.store import Store

pytestmark = pytest.mark.usefixtures("machine")


class Provider(Lab):
    """The nodes of `lab_run`, as a provider that `measure` can bring up and leave."""

    prepared = 0
    left = 0
    cpu = None

    @property
    def inventory(self):
        return self.nodes.inventory

    def describe(self) -> dict:
        return {n.name: {"underlay_address": str(n.underlay_address)} for n in self.inventory.nodes}

    async def prepare(self, variants, say) -> None:
        self.prepared += 1

    async def leave(self) -> None:
        self.left += 1


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Provider:
    made = Provider()
    monkeypatch.setattr(measure, "provider_for", lambda asked, chosen=None: made)
    monkeypatch.setattr(measure, "on_nodes", lambda provider, profile: Shaper(profile))
    return made


def stored() -> tuple[str, list[str]]:
    """State of the newest run, and of its trials."""
    with Store.open(paths.database()) as store:
        run_id = store.find_run(None)
        rows = store.db.execute("SELECT status FROM _trial WHERE run_id = ? ORDER BY trial_id", (run_id,))
        return store.run(run_id).state, [row[0] for row in rows]


def compared() -> set[tuple]:
    """(provisional, finished blocks, overlay) of the newest run's goodput in the view `comparison`."""
    with Store.open(paths.database()) as store:
        rows = store.db.execute(
            "SELECT provisional, blocks_done, overlay FROM comparison WHERE run_id = ? AND metric = 'goodput'",
            (store.find_run(None),),
        )
        return {tuple(row) for row in rows}


def test_measuring_shows_the_table_after_each_block(provider) -> None:
    result = lab("measure", "weave", SEED="7", BLOCKS="2", MODES="fastdp")
    assert result.exit_code == 0, result.output
    assert stored() == ("done", ["ok"] * 8)
    assert compared() == {(0, 2, "host"), (0, 2, "weave")}
    first, second = result.stdout.split("Provisional, block 1 of 2 (4 of 8 trials done).")
    whole = second.split("quick on pair", 1)[1]
    assert "weave fastdp  1 " in second and "weave fastdp  2 " in whole
    assert "Provisional" not in first + whole
    assert (provider.prepared, provider.left) == (1, 1)
    assert "8 trials" in result.stderr
    assert "where the time went: 4 s in trials" in result.stderr


def test_a_run_that_stops_is_resumed_to_its_end(provider) -> None:
    qperf = "endpoint qperf --listen_port 19765 --ip_port"
    right = provider.nodes.answers[qperf]
    provider.nodes.answers[qperf] = NodeError("node1: the SSH connection broke")
    wrong = refused("measure", "weave", SEED="7", BLOCKS="1", MODES="fastdp")
    assert wrong.rule == "stopped: node1: the SSH connection broke; tried 2 times"
    assert "lab:resume" in wrong.fix
    assert stored() == ("interrupted", ["ok", "running", "planned", "planned"])
    assert {row[:2] for row in compared()} == {(1, 0)}
    assert provider.left == 1

    provider.nodes.answers[qperf] = right
    result = lab("resume")
    assert result.exit_code == 0, result.output
    assert stored() == ("done", ["ok"] * 4)
    assert {row[:2] for row in compared()} == {(0, 1)}
    assert "3 trials" in result.stderr
    assert "fastdp" in result.stdout


def test_resuming_is_refused_where_a_role_has_changed(provider, monkeypatch) -> None:
    provider.nodes.answers["tcpdump -i"] = NodeError("node1: gone")
    refused("measure", "weave", SEED="7", BLOCKS="1", MODES="fastdp")
    before = stored()
    monkeypatch.setattr(experiment.overlays, "role_digest", lambda name: "another")
    wrong = refused("resume")
    assert wrong.rule == "can only be resumed with what it was begun with"
    assert wrong.seen == "the role of host has changed; the role of weave has changed"
    assert stored() == before


def test_resuming_nothing_says_what_to_do(provider) -> None:
    assert "lab.sqlite" in str(refused("resume"))  # no database yet
    assert lab("measure", "host", SEED="7", BLOCKS="1").exit_code == 0
    wrong = refused("resume")
    assert wrong.rule == "must hold an unfinished run"
    assert refused("resume", CLUSTER="trio").rule == "must hold an unfinished run of cluster trio"
    assert "20200101T000000Z-0000" in refused("resume", RUN="20200101T000000Z-0000").seen


def test_a_run_on_another_cluster_is_carried_on_without_naming_it(provider, monkeypatch) -> None:
    provider.nodes.answers["tcpdump -i"] = NodeError("node1: gone")
    refused("measure", "host", SEED="7", BLOCKS="1")
    with Store.open(paths.database()) as store:
        store.db.execute("UPDATE _run SET cluster = 'three-zones'")
        run_id = store.find_run(None)
    assert refused("resume", CLUSTER="pair").rule == "must hold an unfinished run of cluster pair"
    carried: list[str | None] = []
    monkeypatch.setattr(
        "overlaylab.cli.commands.resume.carry_out", lambda asked, resume=None: carried.append(resume)
    )
    for typed in ({}, {"CLUSTER": ""}, {"CLUSTER": "three-zones"}):
        assert lab("resume", **typed).exit_code == 0
    assert carried == [run_id] * 3


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_so_leaves_the_nodes_and_is_resumed(provider, how) -> None:
    answers = provider.nodes.answers
    right = answers["endpoint qperf --listen_port 19765 --ip_port"]

    def interrupt(script: str):
        os.kill(os.getpid(), how)
        answers["endpoint qperf --listen_port 19765 --ip_port"] = right
        return right

    answers["endpoint qperf --listen_port 19765 --ip_port"] = interrupt
    result = lab("measure", "host", SEED="7", BLOCKS="2")
    assert isinstance(result.exception, SystemExit) and result.exit_code == 1
    assert "is interrupted; ./task lab:resume carries on" in result.stderr
    state, trials = stored()
    assert (state, trials[0], trials[-1]) == ("interrupted", "ok", "planned")
    assert provider.left == 1
    assert lab("resume").exit_code == 0
    assert stored() == ("done", ["ok"] * 4)


def test_a_run_that_is_done_is_not_begun_again(provider) -> None:
    assert lab("measure", "host", SEED="7", BLOCKS="1").exit_code == 0
    with Store.open(paths.database()) as store:
        run_id = store.find_run(None)
        ended = store.run(run_id).ended_at
    wrong = refused("resume", RUN=run_id[-4:])
    assert (wrong.where, wrong.seen) == (f"run {run_id}", "done")
    with Store.open(paths.database()) as store:
        assert store.run(run_id).ended_at == ended


def test_what_stopped_a_run_is_said_though_the_nodes_cannot_be_left_clean(provider, monkeypatch) -> None:
    async def leave() -> None:
        raise NodeError("node2: no SSH")

    monkeypatch.setattr(provider, "leave", leave)
    provider.nodes.answers["tcpdump -i"] = NodeError("node1: gone")
    assert refused("measure", "host", SEED="7").rule == "stopped: node1: gone; tried 2 times"


def test_one_run_at_a_time(provider) -> None:
    with cluster_lock("pair", "measuring something else"):
        wrong = refused("measure", "host", SEED="7", BLOCKS="1")
    assert "measuring something else" in str(wrong.seen)
    assert provider.prepared == 0


def test_a_precise_run_ends_at_its_first_look_also_when_it_was_interrupted(provider) -> None:
    answers, qperf = provider.nodes.answers, "endpoint qperf --listen_port 19765 --ip_port"
    right, calls = answers[qperf], []

    def interrupt_third(script: str):
        calls.append(script)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return right(script) if callable(right) else right

    answers[qperf] = interrupt_third
    assert lab("measure", "weave", SEED="7", MODES="fastdp", PRECISION="2%").exit_code == 1
    state, trials = stored()
    assert (state, len(trials)) == ("interrupted", 28 * 4), "all blocks up to the last look are planned"

    result = lab("resume")
    assert result.exit_code == 0, result.output
    state, trials = stored()
    assert (state, trials) == ("done", ["ok"] * 28 + ["planned"] * 84)
    assert "after 7 blocks every ratio is known to ±2 %: enough" in result.stderr
    assert "Ended after block 7 of at most 28: every ratio is known to ±2 % (PRECISION)." in result.stdout
    assert refused("resume").rule == "must hold an unfinished run"


def test_an_imprecise_run_goes_on_to_its_last_look(provider) -> None:
    chance = random.Random(4)
    provider.nodes.answers[IPERF3] = lambda _: iperf3(95e6 * chance.uniform(0.5, 1.5))
    result = lab("measure", "weave", SEED="7", MODES="fastdp", PRECISION="2%", BLOCKS="14")
    assert result.exit_code == 0, result.output
    assert stored() == ("done", ["ok"] * 14 * 4)
    assert "after 7 blocks not every ratio is known to ±2 %: going on" in result.stderr
    assert "All 14 blocks were taken; not every ratio is known to ±2 % (PRECISION)." in result.stdout


@pytest.mark.parametrize(
    ("provider", "accelerator"), [("libvirt", "tcg"), ("lxc", "shared-kernel"), ("virtualbox", "kvm")]
)
def test_a_plan_is_reckoned_with_the_accelerator_that_its_run_would_have(provider, accelerator) -> None:
    told = lab("measure", "host", DRY_RUN="1", SEED="7", PROVIDER=provider).stdout
    assert f"seed 7, accelerator {accelerator}\n" in told


@pytest.mark.parametrize(("inventory", "made_for"), [(None, "libvirt"), ("hosts.yml", "hosts")])
def test_the_machine_is_made_ready_before_daemons_are_built(
    machine, monkeypatch, inventory, made_for
) -> None:
    """As the first command on a bare machine: the compiler comes with its packages."""
    steps: list[str] = []
    asked = experiment.request("weave", Options(blocks=1))
    asked = replace(asked, inventory=Path(inventory) if inventory else None)
    monkeypatch.setattr(
        measure.registry, "make_ready", lambda provider: steps.append(f"packages for {provider}")
    )
    monkeypatch.setattr(measure.daemons, "begin", lambda names: steps.append(f"building {', '.join(names)}"))
    monkeypatch.setattr(measure.registry, "make", lambda *_, **__: steps.append("nodes"))
    monkeypatch.setattr(measure.registry, "hosts", lambda *_, **__: steps.append("nodes"))
    measure.provider_for(asked)
    assert steps == [f"packages for {made_for}", "building weave, weave", "nodes"]
