"""Proves a drill on nodes: healthy passes, broken fails, wrong fixes are refused, solutions pass, no trace stays."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.drills import judge, proofs, stage, state
from overlaylab.drills.proofs import Proof
from overlaylab.drills.stage import Checked, Stage
from overlaylab.nodes import netstate
from overlaylab.providers import Provider, Say
from overlaylab.specs.drill import Drill, Solution, Wrong
from overlaylab.specs.profile import Profile
from overlaylab.store import database

# How often healthy nodes have to pass.
WINDOWS = 3
# Seconds that daemons have to come back after a solution.
SETTLES = 90.0
# Seconds that a wrong fix has to do what it does.
PAUSE = 5.0


class Unproven(UserError):
    """The drill does not do what it says: that is what proving found."""


def progress_file(drill: str) -> Path:
    return paths.cache() / "drills" / f"{drill}.json"


class Progress:
    """What was proven so far, by what it is of: proving that was interrupted carries on."""

    def __init__(self, drill: str, key: Mapping[str, Any]) -> None:
        self.path, self.key = progress_file(drill), dict(key)
        try:
            known = json.loads(self.path.read_text())
        except (OSError, ValueError):
            known = {}
        self.done: dict[str, Any] = known.get("done", {}) if known.get("key") == self.key else {}

    def note(self, name: str, found: object) -> None:
        self.done[name] = found
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"key": self.key, "done": self.done}, indent=1))
        new.replace(self.path)

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Prover:
    """Proves one drill over one variant."""

    drill: Drill
    variant: Variant
    profile: Profile
    provider: Provider
    say: Say

    async def prove(self) -> Proof:
        """Raises Unproven with what does not hold; what holds is kept, so that the next try begins there."""
        key = proofs.key(self.drill, self.variant, self.provider.name, self.provider.image)
        progress = Progress(self.drill.name, key)
        if progress.done:
            self.say(f"carrying on: {', '.join(progress.done)} are proven")
        await self.provider.prepare([self.variant], self.say)
        await self._clean()
        nodes, machine = await state.of_nodes(self.provider.nodes), self._machine()
        try:
            await self._rounds(progress)
        finally:
            await asyncio.shield(self._clean())
        left = [
            f"{node}: {one}"
            for node, found in state.differences(nodes, await state.of_nodes(self.provider.nodes)).items()
            for one in found
        ]
        now = self._machine()
        if machine is not None and now is not None:
            left += [f"this machine: {one}" for one in state.of_its_own(netstate.difference(machine, now))]
        if left:
            raise self._wrong("must leave no trace after a reset", "; ".join(left[:5]))
        self.say("after a reset no trace is left")
        done = progress.done
        progress.forget()
        return Proof(
            **key,
            accelerator=self.provider.accelerator,
            at=database.now(),
            values=done["broken"],
            wrong={wrong.name: done[f"wrong {wrong.name}"] for wrong in self.drill.wrong},
            solutions={one.name: done[f"solution {one.name}"] for one in self.drill.solutions},
        )

    async def sample(self, number: int) -> None:
        """A part of it that takes a minute: healthy nodes pass once, the fault is felt, one repair is judged, another one
        with each number. Raises Unproven; nothing of it is kept."""
        await self.provider.prepare([self.variant], self.say)
        try:
            on_it = await self._entered()
            await self._healthy(on_it, 1)
            await on_it.run(self.drill.inject, "the injection")
            await on_it.show()
            wrong, solutions = self.drill.wrong, self.drill.solutions
            at = number % (len(wrong) + len(solutions))
            if at < len(wrong):
                await self._refused(wrong[at], on_it)
            else:
                await self._passes(solutions[at - len(wrong)], on_it)
        finally:
            await asyncio.shield(self._clean())

    async def _rounds(self, progress: Progress) -> None:
        """All that was not proven before; what an injection leaves is to be seen in any case."""
        injected = False
        if "broken" not in progress.done:
            await self._healthy_and_broken(progress)
            injected = True
        for wrong in self.drill.wrong:
            if (name := f"wrong {wrong.name}") not in progress.done:
                progress.note(name, await self._refused(wrong, await self._broken()))
                injected = True
        for solution in self.drill.solutions:
            if (name := f"solution {solution.name}") not in progress.done:
                await self._passes(solution, await self._broken())
                progress.note(name, "passes")
                injected = True
        if not injected:
            await self._broken()

    def _machine(self) -> netstate.State | None:
        return state.of_machine() if self.provider.capabilities.shares_kernel else None

    async def _clean(self) -> None:
        await self.provider.up()
        await self.provider.nodes.connect()

    async def _entered(self) -> Stage:
        """Healthy nodes with a baseline of this moment."""
        on_it = await stage.enter(self.provider, self.drill, self.variant, self.profile, self.say)
        return (await on_it.take_baseline())[0]

    async def _broken(self) -> Stage:
        on_it = await self._entered()
        await on_it.run(self.drill.inject, "the injection")
        await on_it.show()
        return on_it

    async def _healthy(self, on_it: Stage, windows: int) -> None:
        for number in range(1, windows + 1):
            checked = await on_it.check()
            if not checked.passes:
                raise self._wrong(
                    f"must pass while all is well, window {number} of {windows}", in_words(checked)
                )
        times = "once" if windows == 1 else f"{windows} times"
        self.say(f"healthy nodes pass all probes and guards, {times}")

    async def _healthy_and_broken(self, progress: Progress) -> None:
        on_it = await self._entered()
        await self._healthy(on_it, WINDOWS)
        await on_it.run(self.drill.inject, "the injection")
        await on_it.show()
        findings = on_it.judged(await on_it.look(self.drill.cycles))
        if not judge.symptom_shows(findings):
            felt = ", ".join(one.measure for one in findings if one.symptom and one.passes)
            raise self._wrong("must fail at each probe of its symptom for a whole window", f"passes: {felt}")
        values = {
            f"{one.measure} from {one.role}": {"healthy": one.healthy, "broken": one.seen, "ratio": one.ratio}
            for one in findings
        }
        progress.note("broken", values)
        self.say(f"the injection is felt: {', '.join(one.measure for one in findings if one.symptom)}")

    async def _refused(self, wrong: Wrong, on_it: Stage) -> str:
        """Why the wrong fix was refused. on_it: broken nodes."""
        await on_it.run(wrong.script, f"the wrong fix {wrong.name}")
        await asyncio.sleep(PAUSE)
        checked = await on_it.check()
        reasons = {one.guard: one.reason for one in checked.refusals}
        reasons |= {one.measure: one.reason for one in checked.findings if one.reason}
        if wrong.refused_by not in reasons:
            raise self._wrong(
                f"the wrong fix {wrong.name} must be refused by {wrong.refused_by}", in_words(checked)
            )
        self.say(f"the wrong fix {wrong.name} is refused by {wrong.refused_by}: {reasons[wrong.refused_by]}")
        return reasons[wrong.refused_by]

    async def _passes(self, solution: Solution, on_it: Stage) -> None:
        await on_it.run(solution.script, f"solution {solution.name}")
        deadline = time.monotonic() + SETTLES
        while not (checked := await on_it.check()).passes:
            if time.monotonic() > deadline:
                raise self._wrong(f"solution {solution.name} must pass", in_words(checked))
        self.say(f"solution {solution.name} passes all probes and guards")

    def _wrong(self, rule: str, seen: str) -> Unproven:
        fix = f"Correct provision/drills/{self.drill.name}; what holds is kept until its files change"
        return Unproven(f"{self.drill.name} over {self.variant}", rule, seen=seen, fix=fix)


def in_words(checked: Checked) -> str:
    """What a check did not like."""
    told = [f"{one.measure} from {one.role} {one.reason}" for one in checked.findings if one.reason]
    told += [f"{one.guard}: {one.reason}" for one in checked.refusals]
    return "; ".join(told) or "nothing"
