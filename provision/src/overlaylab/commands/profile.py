"""``profile``: list, show, apply, verify and clear the tiers that are emulated."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from functools import partial

import click

from overlaylab import lock, profile, profile_checks, profile_table, shaper, shaping_scripts
from overlaylab.commands.cluster import (
    cluster_option,
    inventory_option,
    provider_of,
    provider_option,
    provider_there,
)
from overlaylab.documents import names_in
from overlaylab.errors import UserError
from overlaylab.paths import PROFILES, typed
from overlaylab.progress import output, readable, say
from overlaylab.shaper import Shaper
from overlaylab.tier_calibration_command import calibrate

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
def apply(name: str, cluster: str, asked: str | None, inventory: str | None) -> None:
    """Put a profile in force on nodes that are up. Applying it twice changes nothing."""

    async def work(found: Shaper) -> None:
        measured = await _need_baseline(found)  # by putting the profile in force
        for node, changed in (await found.apply()).items():
            say(f"{node}: {'changed' if changed or measured else 'unchanged'}")
        wrong = shaper.problems(await found.apply_and_read_back())
        if wrong:
            raise UserError(
                "profile", f"is not in force: {wrong}", fix="Try ./task profile:clear, then apply again"
            )

    _with_nodes(name, cluster, asked, inventory, work, keep=True)


@command.command()
@_profile
@cluster_option
@provider_option
@inventory_option
def verify(name: str, cluster: str, asked: str | None, inventory: str | None) -> None:
    """Apply a profile and prove it: what one node sends is counted at the other. Exit code 1 if it fails."""
    verdicts = []

    async def work(found: Shaper) -> None:
        say(f"verifying {name} (about {readable(5 + 20 * math.comb(len(found.nodes), 2))})")
        for check in await found.prove(say):
            print(profile_checks.readable(check))
            verdicts.append(check.verdict)

    _with_nodes(name, cluster, asked, inventory, work, overlay="host")
    if "fail" in verdicts:
        sys.exit(1)


@command.command()
@cluster_option
@provider_option
@inventory_option
def clear(cluster: str, asked: str | None, inventory: str | None) -> None:
    """Take any profile away: `none` leaves no trace."""

    async def work(found: Shaper) -> None:
        await found.clear()

    _with_nodes("none", cluster, asked, inventory, work)


async def _need_baseline(found: Shaper) -> bool:
    """The baseline RTT as it was measured when no profile was in force; whether it had to be measured now."""
    kept = await found.nodes.sh(f"cat {shaping_scripts.BASELINE}{found.profile.digest[:12]} 2>/dev/null || :")
    first = next(iter(kept.values())).stdout
    if first.strip():
        found.baseline = {frozenset(pair.split()): rtt for pair, rtt in json.loads(first).items()}
        return False
    await found.clear()
    await found.calibrate()
    text = json.dumps({" ".join(sorted(pair)): rtt for pair, rtt in found.baseline.items()})
    await found.nodes.sh(
        f"mkdir -p /run/overlaylab; cat >{shaping_scripts.BASELINE}{found.profile.digest[:12]}", stdin=text
    )
    return True


def _with_nodes(
    name: str,
    cluster: str,
    asked: str | None,
    inventory: str | None,
    work,
    overlay: str | None = None,
    keep: bool = False,
) -> None:
    """Run `work` with a Shaper on nodes that are up; with `overlay`, on that overlay's converged state.

    keep: what `work` did stays in force; SSH hosts take it away by themselves when their timer runs out.
    """
    from overlaylab.model import Variant
    from overlaylab.providers import virsh

    tier = profile.load_profile(name)
    if inventory:
        from overlaylab.providers.hosts import PATIENCE, Hosts

        provider = Hosts(typed(inventory), say)
    else:
        # With an overlay, the nodes are made where there are none.
        make = provider_of if overlay else partial(provider_there, inventory=None)
        provider = make(cluster, asked, tier=None if tier.is_none else tier)
    profile.check_zones(tier, provider.inventory if inventory else provider.spec)

    async def main() -> None:
        if overlay:
            await provider.prepare([Variant(overlay)], say)
            await provider.enter(Variant(overlay))
        elif not inventory:
            states = await provider.status()
            if set(states.values()) != {"running"}:
                await provider.up()
            elif provider.name == "lxc" and not tier.is_none:
                await provider.prepare([], say)  # anew, where they were made for another tier
            elif provider.name == "libvirt":
                await virsh.start_networks(provider.networks)
        await provider.nodes.connect()
        if inventory:
            await provider.renew()  # should this end in the middle, the hosts clean up by themselves
        await work(shaper.on_nodes(provider, tier))
        if not keep:
            await provider.leave()
        elif inventory:
            await provider.renew()
            say(f"the hosts take it away by themselves in {readable(PATIENCE)}")
        provider.nodes.drop()

    with lock.cluster_lock(provider.cluster, f"profile {name}"):
        asyncio.run(main())
