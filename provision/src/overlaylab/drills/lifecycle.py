"""A drill from its ticket to its end: begun, hinted at, checked, solved, stopped."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overlaylab.core import lock, progress
from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.measures import MEASURES
from overlaylab.core.model import JSON, Variant
from overlaylab.drills import attempt, debrief, guards, judge, scripts, stage, state, watch
from overlaylab.drills.attempt import AtHand
from overlaylab.drills.judge import Finding
from overlaylab.drills.score import score
from overlaylab.drills.stage import Checked, Stage
from overlaylab.machine import checkout, ready, services
from overlaylab.nodes.netstate import State
from overlaylab.providers import Provider, Say
from overlaylab.specs import drill as drills
from overlaylab.specs import overlays
from overlaylab.specs.drill import Drill, Hint
from overlaylab.specs.profile import Profile
from overlaylab.store import attempts
from overlaylab.store.attempts import AttemptRecord
from overlaylab.store.store import Store


@dataclass(frozen=True)
class Asked:
    """What is to be begun. trainee: free text, or None; gameday: the first attempt of its series, or None."""

    drill: Drill
    variant: Variant
    profile: Profile
    inventory: Path
    trainee: str | None = None
    gameday: str | None = None


async def begin(asked: Asked, provider: Provider, store: Store, locked: int, say: Say) -> AtHand:
    """Healthy nodes, the fault, its symptom, and the ticket that begins the attempt. locked: the cluster's lock.

    Whatever stands in the way, the nodes are put back and nothing is begun: NotShown, UserError, NodeError.
    """
    drill = asked.drill
    on_it: Stage | None = None
    before: Mapping[str, State] | None = None
    try:
        await provider.renew()
        before = None if provider.capabilities.makes_nodes else await state.of_nodes(provider.nodes)
        on_it = await stage.enter(provider, drill, asked.variant, asked.profile, say)
        with progress.step(
            f"drill-baseline-{drill.name}", "taking the healthy baseline", float(drill.cycles)
        ):
            on_it, healthy = await on_it.take_baseline()
        injected = time.monotonic()
        await on_it.run(drill.inject, "the injection")
        with progress.step(f"drill-shows-{drill.name}", "waiting until it can be felt", float(stage.FEW)):
            felt = await on_it.show()
            by_fault = await guards.judge(on_it.nodes, on_it.places, drill, asked.variant, on_it.healthy)
    except (UserError, NodeError, asyncio.CancelledError, OSError):
        say("no drill is begun; putting the nodes back")
        with contextlib.suppress(UserError, NodeError):
            await stage.put_back(provider, on_it, say)
            await _tell_what_is_left(before, provider, say)
        raise
    # Of one whose cache folder was removed nothing else knows.
    while left := attempts.open_attempt(store, provider.cluster):
        attempts.end_attempt(store, left.attempt_id, attempts.ABANDONED, 0.0, {})
    attempt_id = attempts.begin_attempt(store, _record(asked, provider))
    ticket = time.monotonic()
    hand = AtHand(
        attempt_id=attempt_id,
        database=store.path,
        drill=drill.name,
        digest=drill.digest,
        cluster=provider.cluster,
        provider=provider.name,
        inventory=asked.inventory,
        profile=asked.profile.name,
        variant=asked.variant,
        endpoints={place.node: place.endpoint for place in on_it.places},
        ticket=ticket,
        boot=services.boot_id(),
        baseline=on_it.baseline,
        broken=on_it.windows(felt),
        healthy=on_it.healthy,
        by_fault=tuple(one.guard for one in by_fault),
        before=before,
    )
    attempt.add_cycles(store, hand, attempt.HEALTHY, healthy)
    attempt.add_cycles(store, hand, attempt.BROKEN, felt)
    told = {role: dict(window.values) for role, window in on_it.baseline.items()}
    events: tuple[tuple[str, float, JSON], ...] = (
        ("baseline", healthy[-1].at, {"values": told}),
        ("injected", injected, {}),
        ("shown", felt[-1].at, {"findings": [dataclasses.asdict(one) for one in on_it.judged(felt)]}),
        (
            "ticket",
            ticket,
            {"ticket": drill.ticket, "may_touch": drill.may_touch, "hints": [h.cost for h in drill.hints]},
        ),
    )
    for kind, at, detail in events:
        attempts.add_event(store, attempt_id, kind, at - ticket, detail)
    on_it.nodes.drop()
    attempt.write(hand)
    hand = dataclasses.replace(hand, watcher=watch.start(hand, locked))
    attempt.write(hand)
    return hand


def _record(asked: Asked, provider: Provider) -> AttemptRecord:
    drill = asked.drill
    here = provider.capabilities.on_this_machine
    return AttemptRecord(
        drill=drill.name,
        drill_digest=drill.digest,
        title=drill.title,
        level=drill.level,
        minutes=drill.minutes,
        machine=ready.machine() if here else "SSH hosts",
        provider=provider.name,
        accelerator=provider.accelerator,
        image=provider.image,
        cluster=provider.cluster,
        profile=asked.profile.name,
        profile_digest=asked.profile.digest,
        variant=asked.variant,
        role_digest=overlays.role_digest(asked.variant.overlay),
        lab_version=str(checkout.described()),
        trainee=asked.trainee,
        gameday=asked.gameday,
    )


@contextlib.asynccontextmanager
async def at_hand(cluster: str, say: Say) -> AsyncIterator[AtHand]:
    """The drill at hand, for one command at a time. UserError where there is none."""
    async with lock.turn(watch.commands(cluster), say, "another command is at this drill; waiting for it"):
        hand = attempt.settle(cluster, say)
        if hand is None:
            raise no_drill(cluster)
        yield hand


def no_drill(cluster: str) -> UserError:
    return UserError(
        f"cluster {cluster}",
        "has no drill at hand",
        fix="./task drill:list shows them, ./task drill:start begins one",
    )


def one_at_a_time(hand: AtHand) -> UserError:
    return UserError(
        f"cluster {hand.cluster}", "has one drill at a time", seen=hand.drill,
        fix="./task drill:status says what it is about, ./task drill:stop ends it",
    )  # fmt: skip


async def hint(hand: AtHand, store: Store) -> Hint | None:
    """The first hint that was not given yet and whose condition still holds on its node; None where none is left."""
    nodes = hand.nodes()
    try:
        on_it = hand.stage(nodes)
        for number, one in enumerate(on_it.drill.hints):
            if number in hand.hints:
                continue
            place = scripts.at(on_it.places, one.role)
            done = await scripts.ask(nodes, place, hand.variant, one.condition)
            if done.exit_code == 0:
                attempts.add_event(
                    store,
                    hand.attempt_id,
                    "hint",
                    hand.since,
                    {"number": number + 1, "cost": one.cost, "text": one.text},
                )
                attempt.write(dataclasses.replace(hand, hints=(*hand.hints, number)))
                return one
        return None
    finally:
        nodes.drop()


@dataclass(frozen=True)
class Verdict:
    """What a check came to. score, debrief: once it is repaired."""

    checked: Checked
    duration: float
    score: int | None = None
    debrief: str | None = None


async def check(hand: AtHand, store: Store, cause: str | None, say: Say) -> Verdict:
    """Judge the service and the guards; where all pass, the attempt ends. NodeError where a node does not answer."""
    taken = hand.since  # what a check takes is not the trainee's time
    nodes = hand.nodes()
    try:
        on_it = hand.stage(nodes)
        async with lock.turn(watch.probes(hand.cluster), say, "waiting for the cycle that is being measured"):
            with progress.step(
                f"drill-check-{hand.drill}", "checking probes and guards", float(on_it.drill.cycles)
            ):
                checked = await on_it.check()
        attempt.add_cycles(store, hand, attempt.CHECK, checked.seen)
    finally:
        nodes.drop()
    detail: dict[str, Any] = checked.as_json() | ({"cause": cause} if cause else {})
    attempts.add_event(store, hand.attempt_id, "check", taken, detail)
    if not checked.passes:
        damage = (one.guard for one in checked.refusals if one.guard not in hand.by_fault)
        refused = (*hand.refused, *damage)
        attempt.write(dataclasses.replace(hand, refused=tuple(dict.fromkeys(refused))))
        return Verdict(checked, taken)
    drill = on_it.drill
    stored = attempts.attempt(store, hand.attempt_id)
    points = score(
        taken / 60,
        drill.minutes,
        [drill.hints[number].cost for number in hand.hints],
        stored.failed_checks,
        hand.refused,
    )
    text = debrief.filled(drill.debrief, hand.baseline, hand.broken)
    attempts.end_attempt(
        store, hand.attempt_id, attempts.REPAIRED, taken, end_detail(drill, text), score=points, cause=cause
    )
    await _end(hand)
    return Verdict(checked, taken, points, text)


def end_detail(drill: Drill, text: str) -> JSON:
    """What only the end of an attempt tells."""
    return {"debrief": text, "topics": list(drill.topics), "references": list(drill.references)}


@dataclass(frozen=True)
class Solved:
    """What giving up showed: the solution, {node: what it changed there}, what was felt after it, the debrief."""

    drill: Drill
    changes: dict[str, list[str]]
    findings: tuple[Finding, ...]
    debrief: str
    problem: str | None


async def solve(hand: AtHand, store: Store, cause: str | None, say: Say) -> Solved:
    """Give up: repair it by the drill's first solution, and look at what that changed."""
    nodes = hand.nodes()
    problem = None
    changes: dict[str, list[str]] = {}
    findings: tuple[Finding, ...] = ()
    try:
        on_it = hand.stage(nodes)
        drill = on_it.drill
        solution = drill.solutions[0]
        try:
            async with lock.turn(
                watch.probes(hand.cluster), say, "waiting for the cycle that is being measured"
            ):
                before = await state.of_nodes(nodes)
                await on_it.run(solution.script, f"solution {solution.name}")
                changes = state.differences(before, await state.of_nodes(nodes))
                with progress.step(
                    f"drill-check-{hand.drill}", "looking at the service again", float(drill.cycles)
                ):
                    seen = await on_it.recovered()
            findings = on_it.judged(seen)
            attempt.add_cycles(store, hand, attempt.CHECK, seen)
        except NodeError as error:
            problem = str(error)
    finally:
        nodes.drop()
    detail = {
        "solution": solution.name,
        "does": solution.does,
        "changes": changes,
        "findings": [dataclasses.asdict(one) for one in findings],
    }
    text = debrief.filled(drill.debrief, hand.baseline, hand.broken)
    attempts.end_attempt(
        store, hand.attempt_id, attempts.GIVEN_UP, hand.since, end_detail(drill, text), cause=cause
    )
    # It names the solution: not in the database before the attempt has ended.
    attempts.add_event(store, hand.attempt_id, "solved-step", hand.since, detail)
    await _end(hand)
    return Solved(drill, changes, findings, text, problem)


async def _end(hand: AtHand) -> None:
    attempt.forget(hand.cluster)
    await watch.end(hand)


async def stop(cluster: str, provider: Provider, say: Say) -> str | None:
    """End the drill at hand, whatever it is at, and put the nodes back; the drill's name, None where there was none.

    provider: of the nodes that are put back.
    """
    async with lock.turn(watch.commands(cluster), say, "another command is at this drill; waiting for it"):
        hand = attempt.read(cluster)
        if hand is not None:
            attempt.abandon(hand)
            await watch.end(hand)
        with lock.cluster_lock(cluster, "putting nodes back"):
            on_it = None
            if hand is not None and not provider.capabilities.makes_nodes:
                with contextlib.suppress(UserError):  # its files may have changed
                    on_it = hand.stage(provider.nodes)
            await stage.put_back(provider, on_it, say)
            if hand is not None:
                await _tell_what_is_left(hand.before, provider, say)
            provider.nodes.drop()
    return hand.drill if hand else None


async def leave_hosts(hand: AtHand, say: Say) -> None:
    """Take service and overlay away from hosts that are somebody else's, and say what is left of the drill."""
    provider = hand.made_by(say)
    await stage.put_back(provider, None, say)
    await _tell_what_is_left(hand.before, provider, say)
    provider.nodes.drop()


async def _tell_what_is_left(before: Mapping[str, State] | None, provider: Provider, say: Say) -> None:
    """Of a fault and its repair, on hosts: a repair need not undo all that was done. before: None on the lab's own."""
    if before is None:
        return
    now = await state.of_nodes(provider.nodes)
    for node, differences in state.differences(before, now).items():
        for one in differences:
            if not one.startswith(state.MODULE):
                say(f"{node}: {one}: this is left of the drill, and yours to take back")


def felt(store: Store, hand: AtHand) -> list[tuple[str, str, float | None, float | None]]:
    """(measure, role, healthy, lately) of each probe; lately: of the last cycles that were stored."""
    found = []
    for probe in drills.load(hand.drill).probes:
        measure = MEASURES[probe.measure]
        rows = store.db.execute(
            "SELECT value FROM attempt_value WHERE attempt_id = ? AND role = ? AND measure = ?"
            " ORDER BY ordinal DESC LIMIT ?",
            (hand.attempt_id, probe.role, measure.of, stage.FEW),
        ).fetchall()
        values = [row["value"] for row in rows if row["value"] is not None]
        healthy = hand.baseline[probe.role].values[probe.measure]
        found.append((probe.measure, probe.role, healthy, judge.summary(measure, values)))
    return found
