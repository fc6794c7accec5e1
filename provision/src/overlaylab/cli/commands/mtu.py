"""``mtu``: whether the MTU of the overlay that runs suits the underlay, and what to set."""

from __future__ import annotations

import asyncio
import shlex
import sys
from dataclasses import replace

import click

from overlaylab.cli.commands.cluster import (
    are_up,
    cluster_option,
    inventory_option,
    provider_option,
    provider_there,
)
from overlaylab.core import lock
from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.core.progress import output, say
from overlaylab.live import mtu, mtu_probe
from overlaylab.live.running_overlay import RunningOverlay, find
from overlaylab.nodes.ssh import Nodes
from overlaylab.providers import Provider
from overlaylab.run.evidence import asking
from overlaylab.specs import overlays

START = "Name one and it is brought up first: ./task lab:mtu OVERLAY=weave MODES=fastdp (PROFILE, ARGUMENTS as for lab:weave)"


@click.command()
@click.option("--overlay", envvar="OVERLAY", help="Bring this overlay up first; default: the one that runs.")
@click.option("--modes", "mode", envvar="MODES", help="With OVERLAY: the one mode (default: its first).")
@click.option("--arguments", envvar="ARGUMENTS", help="With OVERLAY: its role's: overlay_weave_mtu=1410.")
@click.option("--profile", envvar="PROFILE", help="With OVERLAY: the tier whose MTU the underlay gets.")
@cluster_option
@provider_option
@inventory_option
def command(
    overlay: str | None,
    mode: str | None,
    arguments: str | None,
    profile: str | None,
    cluster: str,
    provider_name: str | None,
    inventory: str | None,
) -> None:
    """Compare what the underlay carries, what headers take, what devices promise and what passes with DF set.

    Exit codes: 0 every packet arrives in one piece (right, or smaller than it could be), 1 some do not.
    """
    variant = None
    if overlay:
        from overlaylab.cli.commands.measure import provider_for
        from overlaylab.run import experiment
        from overlaylab.run.options import Options

        typed = Options(
            modes=mode,
            arguments=arguments,
            profile=profile,
            cluster=cluster,
            provider=provider_name,
            inventory=inventory,
        )
        request = experiment.request(overlay, typed)
        variant = _only(overlays.select(overlay, mode), mode)
        provider = provider_for(replace(request, variants=(variant,)))
    else:
        for name, value in (("MODES", mode), ("ARGUMENTS", arguments), ("PROFILE", profile)):
            if value:
                raise UserError(
                    name,
                    "is for an overlay that is brought up",
                    seen=value,
                    fix="Add OVERLAY=…, or leave it out",
                )
        provider = provider_there(cluster, provider_name, inventory)
    with lock.cluster_lock(provider.cluster, "looking at the MTU"):
        facts = asyncio.run(_examine(provider, variant))
    finding = mtu.judge(facts)
    _print(facts, finding)
    sys.exit(0 if finding.verdict in mtu.SOUND else 1)


def _only(variants: list[Variant], typed: str | None) -> Variant:
    """The mode to look at; UserError where several were named."""
    if typed and len(variants) > 1:
        raise UserError("MODES", "must be one mode here", seen=typed, fix="Look at one after the other")
    return variants[0]


async def _examine(provider: Provider, variant: Variant | None) -> mtu.Facts:
    """variant: what to bring up first; None: whatever runs."""
    if variant is not None:
        await provider.prepare([variant], say)
        await provider.enter(variant)
    try:
        running = await find(provider.nodes) if variant is not None or await are_up(provider) else None
        if running is None:
            raise UserError("overlay", "must run for its MTU to be looked at", seen="none does", fix=START)
        for name, status in running.statuses.items():
            if not status["healthy"]:
                say(f"{name}: {running.overlay.name} is not healthy: {status['reason']}")
        return await facts_of(provider.nodes, running)
    finally:
        if variant is not None:
            await provider.leave()
        provider.nodes.drop()


async def facts_of(nodes: Nodes, running: RunningOverlay) -> mtu.Facts:
    """Ask devices, and ping from every node to every other."""
    looked = {
        name: int(
            (await node.sh(f"cat /sys/class/net/{shlex.quote(node.spec.underlay_interface)}/mtu")).stdout
        )
        for name, node in nodes.items()
    }
    underlay, header = min(looked.values()), running.mode.header_bytes
    device = min(status["endpoint_mtu"] or underlay for status in running.statuses.values())
    claimed = [status["overlay_mtu"] for status in running.statuses.values() if status["overlay_mtu"]]
    directions = []
    for client in nodes:
        for server in nodes:
            if client != server:
                hints = [*claimed, underlay - header]
                directions.append(await _direction(nodes, running, client, server, underlay, device, hints))
    argument = f"overlay_{running.overlay.name.replace('-', '_')}_mtu"
    return mtu.Facts(
        overlay=running.overlay.name,
        mode=running.variant.key,
        encapsulation=running.mode.encapsulation,
        header_bytes=header,
        underlay_mtu=underlay,
        device=next(iter(running.statuses.values()))["endpoint_device"],
        device_mtu=device,
        directions=tuple(directions),
        set_by=f"ARGUMENTS={argument}" if argument in overlays.options(running.overlay.name) else None,
        set_of_underlay=running.overlay.mtu_argument_of == "underlay",
    )


async def _direction(
    nodes: Nodes,
    running: RunningOverlay,
    client: str,
    server: str,
    underlay: int,
    device: int,
    hints: list[int],
) -> mtu.Direction:
    node, peer, ask = nodes[client], nodes[server], asking(running.mode)
    address, endpoint = str(peer.spec.underlay_address.ip), running.endpoint(server)
    below, _ = await mtu_probe.from_node(node, mtu_probe.ON_NODE, address, underlay, [])
    if endpoint is None or below is None:
        return mtu.Direction(client, server, None, False, False, below)
    passes, senders_learn = await mtu_probe.from_node(node, ask, endpoint, device, hints)
    pieces = 0
    if passes is not None:
        printed = (await node.sh(mtu_probe.fragments_script(ask, endpoint, passes))).stdout
        pieces = mtu_probe.read_fragments(printed)
    return mtu.Direction(client, server, passes, senders_learn, pieces > 0, below)


def _print(facts: mtu.Facts, finding: mtu.Finding) -> None:
    from rich import box
    from rich.table import Table

    name = facts.overlay if facts.mode == facts.overlay else f"{facts.overlay} {facts.mode}"
    table = Table(title=f"MTU of {name}", title_justify="left", box=box.SIMPLE_HEAD, show_header=False)
    table.add_column("what", no_wrap=True)
    table.add_column("bytes", justify="right", no_wrap=True)
    table.add_column("remark")
    for row in mtu.rows(facts):
        table.add_row(*row)
    out = output()
    out.print(table)
    style = {mtu.RIGHT: "green", mtu.WASTED: "yellow"}.get(finding.verdict, "bold red")
    out.print(finding.verdict, style=style, end=": ")
    out.print(f"{finding.says}.", markup=False, soft_wrap=True)
    if finding.advice:
        out.print(f"→ {finding.advice}.", markup=False, soft_wrap=True)
