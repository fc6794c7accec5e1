"""A drill on nodes that are up: its overlay, its service, what was healthy; broken, repaired and judged."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import Variant
from overlaylab.drills import guards, judge, probing, scripts, services
from overlaylab.drills.guards import Healthy, Refusal
from overlaylab.drills.judge import Finding, Window
from overlaylab.drills.probing import Seen
from overlaylab.drills.scripts import Place
from overlaylab.nodes.ssh import Nodes
from overlaylab.providers import Provider, Say
from overlaylab.providers.shaped import on_nodes
from overlaylab.run import proof
from overlaylab.shaping import shaper
from overlaylab.specs.drill import Drill
from overlaylab.specs.profile import Profile

# Cycles of a window that is to show a symptom.
FEW = 3


class NotShown(UserError):
    """A fault that nobody feels: no drill."""


@dataclass(frozen=True)
class Checked:
    """What a check found. seen: every cycle that it took."""

    findings: tuple[Finding, ...]
    refusals: tuple[Refusal, ...]
    seen: tuple[Seen, ...]

    @property
    def passes(self) -> bool:
        return not self.refusals and all(finding.passes for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        return {
            "passes": self.passes,
            "findings": [dataclasses.asdict(finding) for finding in self.findings],
            "refusals": [dataclasses.asdict(refusal) for refusal in self.refusals],
        }


@dataclass(frozen=True)
class Stage:
    """One drill on its nodes. baseline: {role: window}; empty before it was taken."""

    nodes: Nodes
    places: tuple[Place, ...]
    drill: Drill
    variant: Variant
    baseline: Mapping[str, Window]
    healthy: Healthy

    @property
    def roles(self) -> tuple[str, ...]:
        """The ends at which something is probed."""
        return tuple(dict.fromkeys(probe.role for probe in self.drill.probes))

    @property
    def limits(self) -> dict[str, float]:
        """{role: seconds that a fetch may take}."""
        return {role: judge.fetch_limit(self.baseline.get(role)) for role in self.roles}

    async def look(self, count: int) -> tuple[Seen, ...]:
        """So many cycles of each role. NodeError where a node does not answer."""
        return await probing.window(self.nodes, self.places, count, self.limits)

    def windows(self, seen: Sequence[Seen]) -> dict[str, Window]:
        return {role: judge.window([one.cycle for one in seen if one.role == role]) for role in self.roles}

    def judged(self, seen: Sequence[Seen]) -> tuple[Finding, ...]:
        return judge.judge(self.drill.probes, self.baseline, self.windows(seen))

    async def take_baseline(self) -> tuple[Stage, tuple[Seen, ...]]:
        """The same with its baseline, and what that was taken of. UserError where all is not well."""
        seen = await self.look(self.drill.cycles)
        baseline = self.windows(seen)
        wrong = [*judge.unhealthy(self.drill.probes, baseline)]
        if guards.OVERLAY in self.drill.guards:
            wrong += await guards.overlay(self.nodes, self.places, self.variant)
        if wrong:
            raise UserError(
                self.drill.name, "can only be begun where all is well", seen="; ".join(wrong),
                fix="Is the machine busy with something else? ./task doctor shows the idle CPU; then type it again",
            )  # fmt: skip
        healthy = await guards.note(self.nodes, self.drill.guards)
        return dataclasses.replace(self, baseline=baseline, healthy=healthy), seen

    async def run(self, text: str, what: str) -> None:
        """Run a script on every node. NodeError where it fails."""
        await scripts.run(self.nodes, self.places, self.variant, text, what)

    async def show(self) -> tuple[Seen, ...]:
        """Wait until the fault is felt; what was seen when it was. NotShown."""
        deadline = time.monotonic() + self.drill.shows_within
        while True:
            seen = await self.look(FEW)
            findings = self.judged(seen)
            if judge.symptom_shows(findings):
                return seen
            if time.monotonic() >= deadline:
                still = ", ".join(f.measure for f in findings if f.symptom and f.passes)
                raise NotShown(
                    self.drill.name,
                    f"must be felt within {self.drill.shows_within:g} s of its injection",
                    seen=f"as good as before: {still}",
                    fix="Type it again; where it stays so, take another drill: ./task drill:list",
                )

    async def check(self) -> Checked:
        """Probes and guards; after those of a restart the probes once more. NodeError where a node does not answer."""
        seen = await self.look(self.drill.cycles)
        findings = self.judged(seen)
        refusals = await guards.judge(self.nodes, self.places, self.drill, self.variant, self.healthy)
        checked = Checked(findings, refusals, seen)
        if not checked.passes or guards.RESTART not in self.drill.guards:
            return checked
        reason = await guards.restart(self.nodes, self.variant)
        if reason is None:
            again = await self.look(self.drill.cycles)
            seen += again
            worse = [
                f"{finding.measure} from the {finding.role} {finding.reason}"
                for finding in self.judged(again)
                if not finding.passes
            ]
            reason = f"after a restart of the daemons: {guards.told(worse)}" if worse else None
        refusals = () if reason is None else (Refusal(guards.RESTART, reason),)
        return Checked(findings, refusals, seen)


async def enter(provider: Provider, drill: Drill, variant: Variant, profile: Profile, say: Say) -> Stage:
    """Healthy nodes with the drill's overlay, tier and service on them; no baseline yet."""
    await provider.prepare([variant], say)
    await provider.enter(variant)
    if not profile.is_none:
        await _shape(provider, variant, profile, say)
    addresses = await proof.endpoints(provider.nodes.values())
    places = scripts.places(provider.inventory, addresses)
    await services.start(provider.nodes, places)
    return Stage(provider.nodes, places, drill, variant, {}, Healthy())


async def _shape(provider: Provider, variant: Variant, profile: Profile, say: Say) -> None:
    """Put the tier in force, its latency too. UserError where it is not."""
    found = on_nodes(provider, profile)
    for check in await found.calibrate():
        if check.verdict == "fail":
            say(f"{check.name} between {check.client_node} and {check.server_node}: {check.reason}")
    if wrong := shaper.problems(await found.apply_and_read_back()):
        raise UserError(
            f"PROFILE={profile.name}", f"is not in force: {wrong}", fix="Try it again, or without PROFILE"
        )


async def put_back(provider: Provider, stage: Stage | None, say: Say) -> None:
    """Nodes as they were before any drill. stage: what is on hosts that no snapshot and no boot puts back."""
    if provider.capabilities.makes_nodes:
        await provider.up()
        return
    if stage is not None:
        for solution in stage.drill.solutions[:1]:
            try:
                await stage.run(solution.script, f"solution {solution.name}")
            except NodeError as error:
                say(f"the fault could not be taken away: {error}")
    await services.remove(provider.nodes)
    await asyncio.shield(provider.leave())
