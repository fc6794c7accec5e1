"""``profile``: list, show, apply, verify and clear the tiers that are emulated."""

from __future__ import annotations

import asyncio
import itertools
import math
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace

import click

from overlaylab.cli.calibrate import calibrate
from overlaylab.cli.commands.cluster import (
    cluster_option,
    inventory_option,
    provider_of,
    provider_option,
    provider_there,
    system_option,
)
from overlaylab.core import lock
from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.documents import names_in
from overlaylab.core.errors import UserError
from overlaylab.core.model import ProfileCheck
from overlaylab.core.paths import PROFILES, typed
from overlaylab.core.progress import output, readable, say
from overlaylab.nodes import servers
from overlaylab.providers import Provider, registry
from overlaylab.providers.shaped import on_nodes
from overlaylab.report import profile_table
from overlaylab.shaping import checks as profile_checks
from overlaylab.shaping import record as profile_record
from overlaylab.shaping import shaper
from overlaylab.shaping.shaper import Shaper
from overlaylab.specs import profile

_profile = click.option("--profile", "name", envvar="PROFILE", required=True, help="Which of profiles/.")


@click.group()
def command() -> None:
    """Tiers as data: what a cloud's network is like, and nodes that behave like it."""


command.add_command(calibrate)


@command.command("list")
def list_profiles() -> None:
    """Every profile, with what it caps and what it stands for."""
    out = output()
    out.print(profile_table.listing(map(profile.load_profile, names_in(PROFILES))))
    for line in profile_table.LEGEND:
        out.print(line, style="dim")


@command.command()
@_profile
def show(name: str) -> None:
    """Each number of a profile with its source and how far to trust it."""
    tier = profile.load_profile(name)
    out = output()
    out.print(profile_table.details(tier))
    for line in profile_table.remarks(tier):
        out.print(line, markup=False, soft_wrap=True)


@command.command()
@_profile
@cluster_option
@provider_option
@inventory_option
@click.option(
    "--fast", envvar="FAST", is_flag=True, help="Without the latency, and without a proof: a few seconds."
)
def apply(name: str, cluster: str, provider_name: str | None, inventory: str | None, fast: bool) -> None:
    """Put a profile in force on nodes that are up, and prove it. Exit code 1 where a check fails.

    A latency is a target, so the RTT without it is measured first. Where the same profile is in force and proven,
    nothing is measured again.
    """
    failed = 0

    async def work(found: Shaper) -> None:
        nonlocal failed
        failed = await (_apply_fast(found) if fast else _apply(found))

    _with_nodes(name, cluster, provider_name, inventory, work, keep=True, sparse=not fast)
    if failed:
        sys.exit(1)


@command.command()
@_profile
@cluster_option
@provider_option
@system_option
@inventory_option
def verify(
    name: str, cluster: str, provider_name: str | None, system: str | None, inventory: str | None
) -> None:
    """Apply a profile and prove it: what one node sends is counted at the other. Exit code 1 if it fails."""
    verdicts: list[str] = []

    async def work(found: Shaper) -> None:
        verdicts.extend(check.verdict for check in await _proven(found))

    _with_nodes(name, cluster, provider_name, inventory, work, overlay="host", system=system, sparse=True)
    if "fail" in verdicts:
        sys.exit(1)


@command.command()
@cluster_option
@provider_option
@inventory_option
def clear(cluster: str, provider_name: str | None, inventory: str | None) -> None:
    """Take any profile away: `none` leaves no trace."""

    async def work(found: Shaper) -> None:
        await found.clear()

    _with_nodes("none", cluster, provider_name, inventory, work)


async def _apply(found: Shaper) -> int:
    """Put it in force with its latency; how many of the checks that prove it failed."""
    known = await _records(found)
    first = next(iter(known.values()))
    if (
        first is not None
        and not first.failed
        and all(_tells(record, found, first) for record in known.values())
    ):
        found.baseline = first.of_pairs
        if not any((await found.apply()).values()):
            await _read_back(found)
            say(
                f"{found.profile.name} is in force as it was proven {first.when}; ./task profile:verify proves it again"
            )
            return 0
    if found.profile.is_none:
        await found.clear()
        say("no profile is in force")
        return 0
    async with servers.own_network(found.nodes) as found.namespace:
        checks = await _proven(found)
    await _keep(found, profile_record.made(found.profile, found.baseline, checks))
    return sum(check.verdict == "fail" for check in checks)


async def _apply_fast(found: Shaper) -> int:
    await found.clear()
    # A baseline beyond any target: nothing lacks to it, so nothing is delayed.
    found.baseline = {frozenset(pair): math.inf for pair in itertools.combinations(found.nodes, 2)}
    await found.apply()
    await _read_back(found)
    await _keep(found, profile_record.made(found.profile, found.baseline, None))
    say(f"{found.profile.name} is in force without its latency, and not proven (FAST=1)")
    return 0


async def _proven(found: Shaper) -> list[ProfileCheck]:
    """Put it in force and prove it, check by check on standard output."""
    most = 5 + 20 * math.comb(len(found.nodes), 2)
    say(f"verifying {found.profile.name} (about {readable(most)})")
    checks = await found.prove(say)
    for check in checks:
        print(profile_checks.readable(check))
    return checks


async def _read_back(found: Shaper) -> None:
    if wrong := shaper.problems(await found.apply_and_read_back()):
        raise UserError(
            "profile", f"is not in force: {wrong}", fix="Try ./task profile:clear, then apply again"
        )


async def _records(found: Shaper) -> dict[str, profile_record.Record | None]:
    """{node: what it remembers of the profile in force on it}."""
    printed = await found.nodes.sh(profile_record.READ)
    return {name: profile_record.on_node(done.stdout)[0] for name, done in printed.items()}


def _tells(record: profile_record.Record | None, found: Shaper, first: profile_record.Record) -> bool:
    """Whether a node was told this profile with its latency, together with the others."""
    if record is None or (record.at, record.baseline) != (first.at, first.baseline):
        return False
    return record.delayed and record.profile_digest == found.profile.digest


async def _keep(found: Shaper, record: profile_record.Record) -> None:
    for name, node in found.nodes.items():
        shaping = found.shaping_of(name)
        if shaping.restored:  # somebody else's host would keep the record over a reboot, and not the profile
            await node.sh(profile_record.keep_script(replace(record, digest_in_force=shaping.digest)))


def _with_nodes(
    name: str,
    cluster: str,
    provider_name: str | None,
    inventory: str | None,
    work: Callable[[Shaper], Awaitable[None]],
    overlay: str | None = None,
    system: str | None = None,
    keep: bool = False,
    sparse: bool = False,
) -> None:
    """Run `work` with a Shaper on nodes that are up; with `overlay`, on that overlay's converged state.

    keep: what `work` did stays in force; SSH hosts take it away by themselves when their timer runs out. sparse: say
    for which traffic a latency holds.
    """
    from overlaylab.core.model import Variant

    tier = profile.load_profile(name)
    if inventory:
        provider: Provider = registry.hosts(typed(inventory), say)
    else:
        # With an overlay, the nodes are made where there are none.
        wanted = None if tier.is_none else tier
        provider = (
            provider_of(cluster, provider_name, wanted, system)
            if overlay
            else provider_there(cluster, provider_name, tier=wanted)
        )
    profile.check_zones(tier, provider.inventory if inventory else provider.spec)

    async def main() -> None:
        if overlay:
            await provider.prepare([Variant(overlay)], say)
            await provider.enter(Variant(overlay))
        elif not inventory:
            states = await provider.status()
            if set(states.values()) != {"running"}:
                await provider.up()
            elif provider.capabilities.limits_at_creation and not tier.is_none:
                await provider.prepare([], say)  # anew, where they were made for another tier
            else:
                await provider.attach()
        await provider.nodes.connect()
        if inventory:
            await provider.renew()  # should this end in the middle, the hosts clean up by themselves
        await work(on_nodes(provider, tier))
        if sparse and ACCELERATORS[provider.accelerator].is_emulated and profile_table.has_latency(tier):
            say(profile_table.SPARSE)
        if not keep:
            await provider.leave()
        elif (patience := provider.capabilities.patience) is not None:
            await provider.renew()
            say(f"the hosts take it away by themselves in {readable(patience)}")
        provider.nodes.drop()

    with lock.cluster_lock(provider.cluster, f"profile {name}"):
        asyncio.run(main())
