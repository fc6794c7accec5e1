"""Whether a repair broke something else: what held while all was well, and does not hold any more."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import JSON, Variant
from overlaylab.drills import scripts, services
from overlaylab.drills.scripts import Place
from overlaylab.live import policy_lab, running_overlay
from overlaylab.nodes import netstate
from overlaylab.nodes.ssh import Nodes
from overlaylab.run import proof
from overlaylab.specs import overlays
from overlaylab.specs.drill import Drill

Found = TypeVar("Found")

OVERLAY, POLICY, FIREWALL, DAEMONS, RESTART = "overlay", "policy", "firewall", "daemons", "restart"

# What is asked of a path; not the MTU: a smaller one may be the right repair.
KINDS = ("status", "wire", "path")
# Bytes of the packets that prove it, which any MTU carries.
SMALL = 600

# Seconds that an overlay has to be healthy again after a restart.
SETTLES = 90.0

# Of services that a machine starts and ends by itself.
PASSING = (
    "user@",
    "session-",
    "systemd-hostnamed",
    "systemd-timedated",
    "systemd-localed",
    "getty@",
    "serial-getty@",
)

# nftables' view of what iptables made, which is compared as iptables writes it.
OF_IPTABLES = tuple(
    f"rules of {family} {table} "
    for family in ("ip", "ip6")
    for table in ("filter", "nat", "mangle", "raw", "security")
)
COMMENT = re.compile(r' -m comment --comment (?:"[^"]*"|\S+)')

UNITS = """
systemctl list-units --type=service --state=running --no-legend --plain --full | while read -r unit _; do echo "runs $unit"; done
systemctl list-unit-files --type=service --state=enabled --no-legend --plain --full | while read -r unit _; do echo "enabled $unit"; done
"""


@dataclass(frozen=True)
class Healthy:
    """What the guards of a drill hold a repair against, {node: …} each; empty where no guard asks for it."""

    # As `netstate.firewall` has it.
    firewall: Mapping[str, JSON] = field(default_factory=dict)
    # ``runs x.service``, ``enabled x.service``.
    units: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # What `overlay-policy show` prints.
    policy: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"firewall": dict(self.firewall), "units": dict(self.units), "policy": dict(self.policy)}


@dataclass(frozen=True)
class Refusal:
    """A guard that a repair does not get past."""

    guard: str
    reason: str


async def note(nodes: Nodes, guards: Collection[str]) -> Healthy:
    """What holds now, while all is well, as far as these guards ask for it."""
    return Healthy(
        firewall=await _firewall(nodes) if FIREWALL in guards else {},
        units=await _units(nodes) if DAEMONS in guards else {},
        policy=await _policy(nodes) if POLICY in guards else {},
    )


async def _firewall(nodes: Nodes) -> dict[str, JSON]:
    printed = await nodes.sh(netstate.FIREWALL)
    return {name: netstate.firewall(json.loads(done.stdout)) for name, done in printed.items()}


async def _units(nodes: Nodes) -> dict[str, list[str]]:
    printed = await nodes.sh(UNITS)
    return {
        name: [line for line in done.stdout.splitlines() if not line.split()[1].startswith(PASSING)]
        for name, done in printed.items()
    }


async def _policy(nodes: Nodes) -> dict[str, str]:
    printed = await nodes.sh(f"[ ! -x {policy_lab.COMMAND} ] || {policy_lab.COMMAND} show", timeout=120)
    return {name: done.stdout for name, done in printed.items()}


async def judge(
    nodes: Nodes, places: Sequence[Place], drill: Drill, variant: Variant, healthy: Healthy
) -> tuple[Refusal, ...]:
    """The guards that refuse, in the drill's order; `restart` is asked by itself. NodeError where a node does not answer."""
    found: list[Refusal] = []
    for guard in drill.guards:
        reasons: Sequence[str] = ()
        if guard == OVERLAY:
            reasons = await overlay(nodes, places, variant)
        elif guard == FIREWALL:
            reasons = _of_each(healthy.firewall, await _firewall(nodes), opened)
        elif guard == DAEMONS:
            reasons = _of_each(healthy.units, await _units(nodes), ended)
        elif guard == POLICY:
            reasons = _of_each(healthy.policy, await _policy(nodes), loosened)
        if reasons:
            found.append(Refusal(guard, told(reasons)))
    for guard, text in drill.own_guards.items():
        reasons = []
        for place in places:
            done = await scripts.ask(nodes, place, variant, text)
            if done.exit_code != 0:
                said = (done.stdout or done.stderr).strip() or f"ended with {done.exit_code}"
                reasons.append(f"{place.node}: {said}")
        if reasons:
            found.append(Refusal(guard, told(reasons)))
    return tuple(found)


def _of_each(
    was: Mapping[str, Found], now: Mapping[str, Found], lost: Callable[[Found, Found], Iterable[str]]
) -> list[str]:
    """What each node has lost. was, now: {node: what was found there}."""
    return [f"{name}: {reason}" for name, before in was.items() for reason in lost(before, now[name])]


def loosened(was: str, now: str) -> list[str]:
    """Which lines of the overlay's network policy are gone."""
    left = now.splitlines()
    return [
        f"of the overlay's network policy, {line} is gone" for line in was.splitlines() if line not in left
    ]


def told(reasons: Sequence[str]) -> str:
    """The first few in one sentence."""
    more = f"; and {len(reasons) - 3} more" if len(reasons) > 3 else ""
    return "; ".join(reasons[:3]) + more


async def overlay(nodes: Nodes, places: Sequence[Place], variant: Variant) -> list[str]:
    """Why the overlay is not what it was: another one, in another mode, not healthy, or its packets go elsewhere."""
    try:
        running = await running_overlay.find(nodes)
    except UserError as error:
        return [str(error)]
    if running is None:
        return [f"{variant} does not run any more"]
    if running.variant != variant:
        return [f"{running.variant} runs, and not {variant}"]
    sick = [
        f"{name}: {status.get('reason') or 'the overlay says that it is not healthy'}"
        for name, status in running.statuses.items()
        if not status.get("healthy")
    ]
    if sick:
        return sick
    client, server = (nodes[scripts.at(places, role).node] for role in (scripts.CLIENT, scripts.SERVER))
    try:
        ends = await proof.find_ends(client, server, variant, SMALL)
        point = await proof.point(replace(ends, mtu=min(ends.mtu, SMALL)), last=True)
    except NodeError as error:
        return [str(error)]
    return [
        f"{one.node}: {one.reason}"
        for one in point.evidence
        if one.kind in KINDS and not one.ok and one.reason
    ]


def opened(was: JSON, now: JSON) -> list[str]:
    """Which packet filters were taken away or opened. was, now: as `netstate.firewall` has them."""
    reasons = []
    for section, before in was.items():
        after = now.get(section, {})
        for what, value in before.items():
            if what.startswith(OF_IPTABLES):
                continue
            if isinstance(value, list):
                left = [_text(rule) for rule in after.get(what, ())]
                for rule in value:
                    if not _still(rule, left):
                        reasons.append(f"{section}: {_rule(what, rule)} is gone")
            elif isinstance(value, dict) and value.get("policy") == "drop":
                if after.get(what, {}).get("policy") != "drop":
                    reasons.append(f"{section}: {what} drops no more what no rule names")
            elif what not in after and what.startswith(("set ", "map ")):
                reasons.append(f"{section}: {what} is gone")
    return reasons


def _still(rule: Any, left: list[str]) -> bool:
    """Whether that rule is among those that are left; it counts once. A chain may have become stricter."""
    text = _text(rule)
    if isinstance(rule, str) and rule.startswith(":") and " ACCEPT" in rule:
        text = next((one for one in left if one.startswith(rule.split()[0] + " ")), text)
    if text not in left:
        return False
    left.remove(text)
    return True


def _text(rule: Any) -> str:
    """A rule without its comment: what a daemon hashes into it changes with the rules around it."""
    return COMMENT.sub("", rule) if isinstance(rule, str) else json.dumps(rule, sort_keys=True)


def _rule(where: str, rule: Any) -> str:
    if not isinstance(rule, str):
        return f"one of the {where}"
    if rule.startswith(":"):
        chain, policy, *_ = rule[1:].split()
        return (
            f"in {where}, the policy {policy} of {chain}" if policy != "-" else f"in {where}, chain {chain}"
        )
    return f"in {where}, {rule}"


def ended(was: Sequence[str], now: Sequence[str]) -> list[str]:
    """Which units run no more, or are not started any more with the node."""
    words = {"runs": "does not run", "enabled": "is not enabled any more"}
    return [f"{unit} {words[state]}" for state, unit in (line.split() for line in was if line not in now)]


async def restart(nodes: Nodes, variant: Variant) -> str | None:
    """Restart the overlay's daemons and the service on all nodes; why the overlay is not healthy afterwards, else None."""
    units = shlex.join([*overlays.units_of(variant), *services.UNITS])
    script = f"""
for unit in {units}; do
    ! systemctl is-active --quiet $unit || systemctl restart $unit || {{ echo "$unit does not start again"; exit 1; }}
done"""
    for name, done in (await nodes.sh(script, check=False, timeout=180)).items():
        if done.exit_code != 0:
            return f"{name}: {(done.stdout or done.stderr).strip()[-300:]}"
    deadline = time.monotonic() + SETTLES
    while True:
        try:
            running = await running_overlay.find(nodes)
            if running is not None and running.variant == variant:
                sick = {n: s.get("reason") for n, s in running.statuses.items() if not s.get("healthy")}
                if not sick:
                    return None
                why = "; ".join(f"{name}: {reason}" for name, reason in sick.items())
            else:
                why = "it does not run" if running is None else f"{running.variant} runs"
        except (UserError, NodeError) as error:
            why = str(error)
        if time.monotonic() > deadline:
            return f"{SETTLES:.0f} s after a restart {variant} is not healthy: {why}"
        await asyncio.sleep(1)
