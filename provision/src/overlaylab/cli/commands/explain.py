"""``explain``: how it works and how to see that it is healthy, with the live values of the one that runs."""

from __future__ import annotations

import asyncio

import click

from overlaylab.cli.commands.cluster import (
    are_up,
    cluster_option,
    inventory_option,
    provider_option,
    provider_there,
)
from overlaylab.core import lock
from overlaylab.core.errors import NodeError, UserError
from overlaylab.live import overlay_live, overlay_pages
from overlaylab.live.running_overlay import RunningOverlay, find
from overlaylab.specs import overlays


@click.command()
@click.option("--overlay", envvar="OVERLAY", help="Which overlay; default: the one that runs.")
@cluster_option
@provider_option
@inventory_option
def command(overlay: str | None, cluster: str, provider_name: str | None, inventory: str | None) -> None:
    """Print the page of OVERLAY (default: the one that runs), with what the nodes say of it right now.

    Where it does not run: with what would be started. Nothing is started or changed.
    """
    if overlay:
        overlays.load(overlay)
    try:
        running, live = _live(cluster, provider_name, inventory, overlay)
    except (UserError, NodeError) as error:
        if not overlay:
            raise
        running, live = None, [f"what runs could not be asked: {error}"]
    if overlay:
        about = overlays.load(overlay)
    elif running is not None:
        about = running.overlay
    else:
        raise UserError(
            "OVERLAY", "must be named where none runs", fix=f"Known: {', '.join(overlays.names())}"
        )
    here = running is not None and running.overlay.name == about.name
    for line in live if here else [*live, *overlay_pages.would_start(about)]:
        click.echo(line)
    click.echo(f"\n{overlay_pages.page(about.name)}")


def _live(
    cluster: str, provider_name: str | None, inventory: str | None, overlay: str | None
) -> tuple[RunningOverlay | None, list[str]]:
    """What runs, and the lines about it: all of them if it is the overlay that was asked for."""
    provider = provider_there(cluster, provider_name, inventory)

    async def look() -> tuple[RunningOverlay | None, list[str]]:
        if not await are_up(provider):
            return None, [f"the nodes of {provider.cluster} are not up"]
        try:
            running = await find(provider.nodes)
            if running is None:
                return None, [f"no overlay runs on {provider.cluster}"]
            name = f"{running.overlay.title}, mode {running.variant.key}, runs on {provider.cluster}"
            if overlay and overlay != running.overlay.name:
                return running, [name]
            live = await overlay_live.ask(provider.nodes, running)
            return running, [name, *overlay_live.lines(provider.nodes, running, live)]
        finally:
            provider.nodes.drop()

    # Pings and a login would disturb a measurement.
    with lock.cluster_lock(provider.cluster, "explaining what runs"):
        return asyncio.run(look())
