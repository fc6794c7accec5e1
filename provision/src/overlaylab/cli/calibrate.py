"""``profile calibrate``: measure a pair of hosts and write what was found as a profile."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from overlaylab.core import lock
from overlaylab.core.documents_limits import shown
from overlaylab.core.errors import UserError
from overlaylab.core.paths import PROFILES, typed
from overlaylab.core.progress import output, readable, say

if TYPE_CHECKING:
    from overlaylab.providers import Provider

NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")


@click.command("calibrate")
@click.option("--name", envvar="NAME", required=True, help="What the profile is to be called.")
@click.option("--inventory", envvar="INVENTORY", help="SSH hosts; the first two are measured.")
@click.option("--cluster", envvar="CLUSTER", default="pair", show_default=True, help="Else the lab's nodes.")
@click.option("--provider", "provider_name", envvar="PROVIDER", help="What the lab's nodes are.")
@click.option(
    "--duration", envvar="DURATION", type=click.IntRange(20, 3500), default=60, show_default=True,
    help="Seconds of TCP each way; as long as a bucket lasts, and 10 s.",
)  # fmt: skip
@click.option("--out", envvar="OUT", help="File to write; default: profiles/NAME.yml.")
@click.option("--force", envvar="FORCE", is_flag=True, help="Replace a file that is there.")
@click.option("--cloud", envvar="CLOUD", help="What the profile stands for, such as AWS.")
@click.option("--instance", envvar="INSTANCE", help="The size of it, such as c5.large.")
@click.option("--dry-run", envvar="DRY_RUN", is_flag=True, help="Say what would be done, and stop.")
def calibrate(
    name: str,
    inventory: str | None,
    cluster: str,
    provider_name: str | None,
    duration: int,
    out: str | None,
    force: bool,
    cloud: str | None,
    instance: str | None,
    dry_run: bool,
) -> None:
    """Measure rate, bucket, RTT, jitter, loss and MTU between two hosts, and write a profile of it."""
    from overlaylab.bench.calibration_document import Label, text
    from overlaylab.bench.calibration_nodes import Calibration, Measured
    from overlaylab.cli.commands.measure import interruptible

    path = target(name, out, force)
    if instance and not cloud:
        raise UserError("INSTANCE", "needs CLOUD beside it", seen=f'"{instance}"', fix="As in CLOUD=AWS")
    provider, where = _nodes(inventory, cluster, provider_name)
    pair = tuple(provider.inventory.nodes)[:2]
    for line in plan([node.name for node in pair], where, duration, path):
        say(line)
    if dry_run:
        return
    label = Label(name, f"{datetime.now(UTC):%Y-%m-%d}", where, cloud or None, instance or None)

    async def main() -> Measured:
        if not inventory:
            states = await provider.status()
            if set(states.values()) != {"running"}:
                raise UserError(
                    f"cluster {cluster}",
                    "must be up",
                    seen=", ".join(f"{n} {s}" for n, s in states.items()),
                    fix="Bring it up with ./task lab:up, and ./task profile:apply PROFILE=… to have something to find",
                )
        # Neither prepare, enter nor leave of the provider: they clear what shapes the nodes.
        await provider.nodes.connect()
        try:
            return await Calibration(provider.nodes, duration, say).measure()
        finally:
            provider.nodes.drop()

    with lock.cluster_lock(provider.cluster, "profile calibrate"):
        measured = interruptible(main())
    write(path, text(measured, label))
    show(path)
    say(f"{shown(path)} is written; read it before you use it")


def plan(pair: list[str], where: str, duration: int, path: Path) -> list[str]:
    """What will be done, how long it takes, and what load that is."""
    from overlaylab.bench.calibration_nodes import UDP_SECONDS, seconds
    from overlaylab.tools import iperf3

    one, other = pair
    return [
        f"calibrating between {one} and {other} of {where}, about {readable(seconds(duration))}, into {shown(path)}",
        f"load: {duration} s of TCP each way as fast as it goes (at 1 Gbit/s that is {duration / 4:.0f} GB in all), then"
        f" {UDP_SECONDS} s of UDP each way at half of that. A cloud may charge for it, and use up a burst allowance",
        f"nothing on the hosts is shaped, cleared or installed; a server of iperf3 listens on {iperf3.PORT}/tcp and udp"
        f" of {other} meanwhile",
    ]


def target(name: str, out: str | None, force: bool) -> Path:
    """The file to write. UserError where the name is none, or a file is there."""
    if not NAME.fullmatch(name):
        raise UserError(
            "NAME",
            "must be of small letters, digits, dots and hyphens",
            seen=f'"{name}"',
            fix="As in NAME=aws-c5.large",
        )
    path = typed(out) if out else PROFILES / f"{name}.yml"
    if path.suffix != ".yml" or not path.parent.is_dir():
        raise UserError(
            "OUT",
            "must be a file .yml in a folder that exists",
            seen=f'"{out}"',
            fix=f"Leave it out for profiles/{name}.yml",
        )
    if path.exists() and not force:
        raise UserError(
            "NAME" if not out else "OUT",
            "must not be there yet",
            seen=shown(path),
            fix="Choose another, or say FORCE=1 to replace it",
        )
    return path


def write(path: Path, text: str) -> None:
    """Write a profile that can be read: schema and cross-checks first. Raises UserError, with the text kept beside."""
    from overlaylab.specs.profile import read_profile

    folder = path.with_suffix(".refused")
    draft = folder / path.name
    folder.mkdir(exist_ok=True)
    draft.write_text(text, encoding="utf-8")
    read_profile(draft)  # what it refuses stays there to be looked at
    draft.replace(path)
    folder.rmdir()


def show(path: Path) -> None:
    """The numbers of a profile with how they came about, as a table."""
    from rich.table import Table

    from overlaylab.specs.profile import read_profile

    tier = read_profile(path)
    told = {number: figure.source for number, figure in tier.figures.items()}
    # What all of them begin with is said once.
    common, _, _ = told["rate"].partition(": ")
    table = Table(title=f"{tier.name}, {common}", title_justify="left")
    for heading in ("number", "value", "how"):
        table.add_column(heading, overflow="fold")
    for number, source in told.items():
        found = tier.source.data
        for part in number.split("."):
            found = found[part]
        table.add_row(number, str(found["value"]), source.removeprefix(f"{common}: "))
    output().print(table)


def _nodes(inventory: str | None, cluster: str, provider_name: str | None) -> tuple[Provider, str]:
    """The provider, connected to nothing yet, and what to call where its nodes are. Raises UserError."""
    if inventory:
        from overlaylab.providers import registry

        path = typed(inventory)
        return registry.hosts(path, say), path.name
    from overlaylab.cli.commands.cluster import provider_there

    provider, where = provider_there(cluster, provider_name or None), f"cluster {cluster}"
    if not (provider.folder / "inventory.yml").exists():
        raise UserError(where, "has half made nodes", fix="Make them anew with ./task lab:up")
    return provider, where
