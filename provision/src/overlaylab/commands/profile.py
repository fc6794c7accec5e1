"""``profile``: list, show, apply, verify and clear the tiers that are emulated."""

from __future__ import annotations

import asyncio
import json
import sys

import click
from rich.console import Console
from rich.table import Table

from overlaylab import lock, profile, profile_checks, shaper, shaping
from overlaylab.commands.cluster import provider_of, provider_option
from overlaylab.errors import UserError
from overlaylab.paths import PROFILES
from overlaylab.progress import readable, say
from overlaylab.shaper import Shaper

_profile = click.option("--profile", "name", envvar="PROFILE", required=True, help="Which of profiles/.")
_cluster = click.option(
    "--cluster", envvar="CLUSTER", default="pair", show_default=True, help="Cluster of VMs."
)
_inventory = click.option("--inventory", envvar="INVENTORY", help="SSH hosts instead of VMs.")


@click.group()
def command() -> None:
    """Tiers as data: what a cloud's network is like, and nodes that behave like it."""


@command.command("list")
def list_profiles() -> None:
    """Every profile, with what it caps and what it stands for."""
    table = Table()
    for heading in ("profile", "stands for", "rate", "RTT", "MTU", "description"):
        table.add_column(heading)
    for path in sorted(PROFILES.glob("*.yml")):
        tier = profile.read_profile(path)
        stands = f"{tier.stands_for['cloud']} {tier.stands_for['instance']}" if tier.stands_for else "–"
        rate = f"{tier.rate / 1e6:g} Mbit/s" if tier.rate else "uncapped"
        rtt = f"{tier.within_zone * 1e3:.3f} ms" if tier.within_zone is not None else "–"
        table.add_row(tier.name, stands, rate, rtt, str(tier.mtu or "–"), tier.description)
    Console(highlight=False).print(table)


@command.command()
@_profile
def show(name: str) -> None:
    """Each number of a profile with its source and how far to trust it."""
    tier = profile.load_profile(name)
    table = Table(title=f"{tier.name}: {tier.description}", title_justify="left")
    for heading in ("number", "value", "confidence", "source"):
        table.add_column(heading, overflow="fold")
    for number, figure in tier.figures.items():
        value = (
            "–"
            if figure.value is None
            else f"{figure.value:g}"
            if not isinstance(figure.value, bool)
            else str(figure.value)
        )
        table.add_row(number, value, figure.confidence, figure.source)
    out = Console(highlight=False)
    out.print(table)
    out.print("base units: bit/s, s, bytes, ratio")


@command.command()
@_profile
@_cluster
@provider_option
@_inventory
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
@_cluster
@provider_option
@_inventory
def verify(name: str, cluster: str, asked: str | None, inventory: str | None) -> None:
    """Apply a profile and prove it: what one node sends is counted at the other. Exit code 1 if it fails."""
    verdicts = []

    async def work(found: Shaper) -> None:
        say(f"verifying {name} (about {readable(25)})")
        for check in await found.prove(say):
            print(profile_checks.readable(check))
            verdicts.append(check.verdict)

    _with_nodes(name, cluster, asked, inventory, work, overlay="host")
    if "fail" in verdicts:
        sys.exit(1)


@command.command()
@_cluster
@provider_option
@_inventory
def clear(cluster: str, asked: str | None, inventory: str | None) -> None:
    """Take any profile away: `none` leaves no trace."""

    async def work(found: Shaper) -> None:
        await found.clear()

    _with_nodes("none", cluster, asked, inventory, work)


async def _need_baseline(found: Shaper) -> bool:
    """The baseline RTT as it was measured when no profile was in force; whether it had to be measured now."""
    kept = await found.nodes.sh(f"cat /run/overlaylab/baseline-{found.profile.name} 2>/dev/null || :")
    first = next(iter(kept.values())).stdout
    if first.strip():
        found.baseline = {frozenset(pair.split()): rtt for pair, rtt in json.loads(first).items()}
        return False
    await found.clear()
    await found.calibrate()
    text = json.dumps({" ".join(sorted(pair)): rtt for pair, rtt in found.baseline.items()})
    await found.nodes.sh(
        f"mkdir -p /run/overlaylab; cat >/run/overlaylab/baseline-{found.profile.name}", stdin=text
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
    shaping.check_supported(tier)
    if inventory:
        from pathlib import Path

        from overlaylab.providers.hosts import PATIENCE, Hosts

        provider = Hosts(Path(inventory), say)
    else:
        provider = provider_of(cluster, asked)
    profile.check_zones(tier, provider.inventory if inventory else provider.spec)

    async def main() -> None:
        if overlay:
            await provider.prepare([Variant(overlay)], say)
            await provider.enter(Variant(overlay))
        elif not inventory:
            states = await provider.status()
            if set(states.values()) != {"running"}:
                await provider.up()
            elif provider.name == "libvirt":
                await virsh.start_networks(provider.networks)
        await provider.nodes.connect()
        await work(Shaper(provider.nodes, tier))
        if not keep:
            await provider.leave()
        elif inventory:
            await provider.renew()
            say(f"the hosts take it away by themselves in {readable(PATIENCE)}")
        provider.nodes.drop()

    with lock.cluster_lock(provider.cluster, f"profile {name}"):
        asyncio.run(main())
