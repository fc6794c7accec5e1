"""Hints that follow the state, checks that end an attempt or do not, and giving up."""

import asyncio
import json
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from lab_drills import BROKEN, FLANNEL, HEALTHY, Hand
from lab_fakes import failed

from overlaylab.core.errors import NodeError
from overlaylab.drills import attempt, guards, lifecycle, scripts, stage, state, watch
from overlaylab.drills.attempt import AtHand
from overlaylab.drills.guards import Refusal
from overlaylab.drills.judge import Cycle
from overlaylab.drills.probing import Seen
from overlaylab.specs.profile import load_profile
from overlaylab.store import attempts


@pytest.fixture
def hand(tmp_path, own_cache, monkeypatch) -> Hand:
    made = Hand(tmp_path)
    monkeypatch.setattr(AtHand, "nodes", lambda self: made.nodes)
    attempt.write(replace(made.now, ticket=time.monotonic() - 60))

    async def nothing(*_: object) -> tuple[Refusal, ...]:
        return ()

    monkeypatch.setattr(guards, "judge", nothing)
    return made


def details(hand: Hand, kind: str) -> list[dict]:
    (stored,) = attempts.attempts(hand.store)
    found = attempts.events(hand.store, stored.attempt_id)
    return [json.loads(row["detail"]) for row in found if row["kind"] == kind]


# -- the beginning ----------------------------------------------------------------------------------


class Renewed:
    """A provider, as far as a beginning asks for it."""

    name, accelerator, image, cluster = "lxc", "shared-kernel", "1a5d", "pair"
    capabilities = SimpleNamespace(on_this_machine=True, makes_nodes=True)

    async def renew(self) -> None:
        """As a provider's."""


async def test_whatever_ends_the_beginning_puts_the_nodes_back(hand, monkeypatch) -> None:
    put_back: list[object] = []
    entered = asyncio.Event()

    async def enter(*_: object) -> None:
        entered.set()
        await asyncio.sleep(60)

    async def back(provider: object, on_it: object, say: object) -> None:
        put_back.append(provider)

    monkeypatch.setattr(stage, "enter", enter)
    monkeypatch.setattr(stage, "put_back", back)
    provider = Renewed()
    asked = lifecycle.Asked(hand.drill, FLANNEL, load_profile("none"), hand.folder / "inventory.yml")
    said: list[str] = []
    beginning = asyncio.create_task(lifecycle.begin(asked, provider, hand.store, 0, said.append))
    await entered.wait()
    beginning.cancel()  # Ctrl-C
    with pytest.raises(asyncio.CancelledError):
        await beginning
    assert (put_back, said) == ([provider], ["no drill is begun; putting the nodes back"])
    assert len(attempts.attempts(hand.store)) == 1  # the fixture's


async def test_the_beginning_notes_which_guards_the_fault_alone_makes_refuse(hand, monkeypatch) -> None:
    hand.nodes.print(*[BROKEN] * 50)
    hand.nodes.answers[hand.drill.inject] = ""
    on_it = hand.now.stage(hand.nodes)

    async def enter(*_: object) -> stage.Stage:
        return on_it

    async def take_baseline(self: stage.Stage) -> tuple[stage.Stage, tuple[Seen, ...]]:
        return self, (Seen("client", time.monotonic(), Cycle.parse(HEALTHY)),)

    async def refuse(*_: object) -> tuple[Refusal, ...]:
        return (Refusal("firewall", "node2: a rule is gone"),)

    monkeypatch.setattr(stage, "enter", enter)
    monkeypatch.setattr(stage.Stage, "take_baseline", take_baseline)
    monkeypatch.setattr(guards, "judge", refuse)
    monkeypatch.setattr(watch, "start", lambda begun, locked: 4711)
    asked = lifecycle.Asked(hand.drill, FLANNEL, load_profile("none"), hand.folder / "inventory.yml")
    begun = await lifecycle.begin(asked, Renewed(), hand.store, 0, print)
    assert (begun.by_fault, begun.refused) == (("firewall",), ())
    assert hand.now.by_fault == ("firewall",)


# -- hints ------------------------------------------------------------------------------------------


async def test_the_first_hint_whose_condition_holds_is_given_once(hand) -> None:
    first, second, *_ = hand.drill.hints
    hand.nodes.answers |= {one.condition: "" for one in hand.drill.hints}
    hand.nodes.answers[first.condition] = failed(1)
    assert await lifecycle.hint(hand.now, hand.store) == second
    assert hand.now.hints == (1,)
    assert details(hand, "hint") == [{"number": 2, "cost": second.cost, "text": second.text}]
    asked = hand.nodes[scripts.at(hand.now.stage(hand.nodes).places, second.role).node].log[-1]
    assert asked.startswith("NODE=node") and asked.endswith(second.condition)
    assert await lifecycle.hint(hand.now, hand.store) != second


async def test_where_nothing_of_it_is_wrong_any_more_there_is_no_hint(hand) -> None:
    hand.nodes.answers |= {one.condition: failed(1) for one in hand.drill.hints}
    assert await lifecycle.hint(hand.now, hand.store) is None
    assert details(hand, "hint") == []


# -- checks -----------------------------------------------------------------------------------------


async def test_a_check_that_fails_goes_on(hand) -> None:
    hand.nodes.print(*[BROKEN] * 10)
    found = await lifecycle.check(hand.now, hand.store, "it is DNS", print)
    assert not found.checked.passes
    assert (found.score, found.debrief) == (None, None)
    (stored,) = attempts.attempts(hand.store)
    assert (stored.state, stored.failed_checks) == ("running", 1)
    (told,) = details(hand, "check")
    assert told["cause"] == "it is DNS"
    failing = [one["measure"] for one in told["findings"] if not one["passes"]]
    assert failing == ["fetched", "goodput"]


async def test_a_check_that_passes_ends_it(hand) -> None:
    found = await lifecycle.check(hand.now, hand.store, "ICMP was dropped", print)
    assert found.checked.passes and found.score == 100
    assert "{" not in found.debrief and "800 Mbit/s" in found.debrief
    (stored,) = attempts.attempts(hand.store)
    assert (stored.state, stored.score, stored.cause) == ("repaired", 100, "ICMP was dropped")
    assert stored.duration == pytest.approx(60, abs=5)
    (end,) = details(hand, "repaired")
    assert (end["debrief"], end["topics"]) == (found.debrief, list(hand.drill.topics))
    assert attempt.read("pair") is None


async def test_hints_failed_checks_and_guards_cost_points(hand, monkeypatch) -> None:
    attempt.write(replace(hand.now, hints=(0,)))

    async def refuse(*_: object) -> tuple[Refusal, ...]:
        return (Refusal("firewall", "node1: a rule is gone"),)

    with monkeypatch.context() as patched:
        patched.setattr(guards, "judge", refuse)
        for _ in range(2):
            refused = await lifecycle.check(hand.now, hand.store, None, print)
    assert [one.guard for one in refused.checked.refusals] == ["firewall"]
    assert hand.now.refused == ("firewall",)
    found = await lifecycle.check(hand.now, hand.store, None, print)
    assert found.score == 100 - hand.drill.hints[0].cost - 2 * 5 - 10


async def test_what_the_fault_itself_broke_is_no_damage_of_a_repair(hand, monkeypatch) -> None:
    """A lease that was lost takes rules of the firewall along: each failed check had cost ten points for them."""
    attempt.write(replace(hand.now, by_fault=("firewall",)))

    async def refuse(*_: object) -> tuple[Refusal, ...]:
        return (Refusal("firewall", "node2: a rule is gone"), Refusal("daemons", "node1: web does not run"))

    with monkeypatch.context() as patched:
        patched.setattr(guards, "judge", refuse)
        found = await lifecycle.check(hand.now, hand.store, None, print)
    assert [one.guard for one in found.checked.refusals] == ["firewall", "daemons"]
    assert hand.now.refused == ("daemons",)
    assert (await lifecycle.check(hand.now, hand.store, None, print)).score == 100 - 5 - 10


async def test_a_node_that_does_not_answer_keeps_the_clock(hand) -> None:
    hand.nodes["node1"].printed, hand.nodes["node1"].after = (), NodeError("node1: no SSH")
    with pytest.raises(NodeError, match="no SSH"):
        await lifecycle.check(hand.now, hand.store, None, print)
    assert attempts.attempts(hand.store)[0].state == "running"
    assert details(hand, "check") == []


async def test_what_breaks_with_a_restart_is_refused(hand, monkeypatch) -> None:
    on_it = hand.now.stage(hand.nodes)
    on_it = replace(on_it, drill=replace(on_it.drill, guards=("restart",)))

    async def restart(*_: object) -> None:
        hand.nodes.print(*[BROKEN] * 10)

    monkeypatch.setattr(guards, "restart", restart)
    found = await on_it.check()
    assert all(one.passes for one in found.findings)
    assert [one.guard for one in found.refusals] == ["restart"]
    assert "fetched from the client must be at least" in found.refusals[0].reason


# -- the end ----------------------------------------------------------------------------------------


async def test_giving_up_repairs_and_explains(hand, monkeypatch) -> None:
    looks = iter([{"node1": {"route": {"a": 1}}}, {"node1": {"route": {}}}])

    async def look(nodes: object) -> dict:
        return next(looks)

    monkeypatch.setattr(state, "of_nodes", look)
    solution = hand.drill.solutions[0]
    hand.nodes.answers[solution.script] = ""
    found = await lifecycle.solve(hand.now, hand.store, None, print)
    assert found.changes == {"node1": ["route a is gone (1)"]}
    assert found.problem is None and all(one.passes for one in found.findings)
    (step,) = details(hand, "solved-step")
    assert (step["does"], step["changes"]) == (solution.does, found.changes)
    (stored,) = attempts.attempts(hand.store)
    assert (stored.state, stored.score) == ("given-up", None)
    assert attempt.read("pair") is None


async def test_giving_up_ends_it_where_nodes_are_gone_too(hand, monkeypatch) -> None:
    async def look(nodes: object) -> dict:
        raise NodeError("node1: no SSH")

    monkeypatch.setattr(state, "of_nodes", look)
    found = await lifecycle.solve(hand.now, hand.store, None, print)
    assert (found.problem, found.changes) == ("node1: no SSH", {})
    assert attempts.attempts(hand.store)[0].state == "given-up"


async def test_what_is_felt_lately(hand) -> None:
    felt = {
        (measure, role): (healthy, lately)
        for measure, role, healthy, lately in lifecycle.felt(hand.store, hand.now)
    }
    assert felt["fetched", "client"] == (1.0, 0.0)
    assert felt["goodput", "client"] == (8e8, 0.0)


# -- somebody's hosts -------------------------------------------------------------------------------


async def test_what_is_left_on_hosts_is_said(hand, monkeypatch) -> None:
    """A drop rule beside the one that a repair had put before it stayed, and nobody heard of it."""
    clean = {"nftables": {}, "module": {}}
    now = {"node1": clean, "node2": {"nftables": {"table inet filter": True}, "module": {"nf_tables": True}}}

    async def nothing(*_: object) -> None:
        """Service and overlay are gone."""

    async def of_nodes(_: object) -> dict:
        return now

    attempt.write(replace(hand.now, before={"node1": clean, "node2": clean}))
    monkeypatch.setattr(AtHand, "made_by", lambda self, say: SimpleNamespace(nodes=hand.nodes))
    monkeypatch.setattr(stage, "put_back", nothing)
    monkeypatch.setattr(state, "of_nodes", of_nodes)
    said: list[str] = []
    await lifecycle.leave_hosts(hand.now, said.append)
    told = "node2: nftables table inet filter is new: this is left of the drill, and yours to take back"
    assert said == [told]

    # A drill that could not be begun may have got as far as its fault.
    seen = iter(({"node1": clean, "node2": clean}, now))

    async def before_and_after(_: object) -> dict:
        return next(seen)

    async def fail(*_: object) -> None:
        raise NodeError("node2: no SSH")

    monkeypatch.setattr(state, "of_nodes", before_and_after)
    monkeypatch.setattr(stage, "enter", fail)
    provider = Renewed()
    provider.capabilities = SimpleNamespace(on_this_machine=False, makes_nodes=False)
    provider.nodes = hand.nodes
    asked = lifecycle.Asked(hand.drill, FLANNEL, load_profile("none"), hand.folder / "inventory.yml")
    with pytest.raises(NodeError):
        await lifecycle.begin(asked, provider, hand.store, 0, said.append)
    assert said[1:] == ["no drill is begun; putting the nodes back", told]
