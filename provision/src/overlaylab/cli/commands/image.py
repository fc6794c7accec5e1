"""``lab image``: build, show and check the node image."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.table import Table

from overlaylab.cli.commands.kit import lock_option, snapshots_option
from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.model import JSON
from overlaylab.core.progress import output
from overlaylab.image import base, foreign_disk, kit, node_image, package_lock, systems
from overlaylab.image import fetch as fetching
from overlaylab.image.systems import System
from overlaylab.machine import packages, ready

system_option = click.option(
    "--system", envvar="SYSTEM", default=systems.DEFAULT, show_default=True, help="As in packer/systems."
)
archive_option = click.option(
    "--archive",
    envvar="ARCHIVE",
    help="A file with sources of packages, deb822(5), in place of the distribution's own; it counts until another is "
    "named. none: the distribution's own again.",
)


@click.group()
def command() -> None:
    """The node image: a Vagrant box and its manifest, made from packages."""


@command.command()
@system_option
@click.option(
    "--image",
    envvar="IMAGE",
    help="A disk that the system is made from; it counts until another is named. none: from packages again.",
)
@archive_option
@lock_option
@snapshots_option
def build(system: str, image: str | None, archive: str | None, lock: str, snapshots: str | None) -> None:
    """Build the image unless its inputs are the same as those of the one that is there."""
    chosen = systems.load(system)
    ready.ensure()
    if image:
        foreign_disk.choose(chosen, None if image == foreign_disk.NO_DISK else paths.typed(image).resolve())
    _choose_archive(chosen, archive)
    node_image.build(system, package_lock.policy(lock, snapshots))


def _choose_archive(system: System, archive: str | None) -> None:
    if archive:
        base.choose_archive(system, None if archive == base.NO_ARCHIVE else paths.typed(archive))


@command.command()
@system_option
def fetch(system: str) -> None:
    """Download the publisher's disk of a system, verify it, and choose it for the next image:build."""
    ready.ensure(groups=packages.MAKING)
    fetching.fetch(system)


@command.command("list")
def list_systems() -> None:
    """Every system: what it is made from, whether its image is built, and whether it has ever booted here."""
    table = Table(box=None, title=None)
    for heading in ("system", "", "made from", "image", "booted here", "run by the project"):
        table.add_column(heading)
    for name in systems.names():
        system = systems.load(name)
        table.add_row(name, system.title, _made_from(system), *_built(system), system.run)
    out = output()
    out.width = max(out.width, out.measure(table, options=out.options.update(max_width=500)).maximum)
    out.print(table)


def _made_from(system: System) -> str:
    if system.disk is None or (system.packages and not foreign_disk.chosen(system)):
        return "packages" + (" (or IMAGE=)" if system.disk else "")
    if found := foreign_disk.chosen(system):
        return found.origin if found.origin != "IMAGE=" else found.path
    return "image:fetch, or IMAGE=" if system.disk.source else "IMAGE="


def _built(system: System) -> tuple[str, str]:
    try:
        made = node_image.manifest(system.name)
    except UserError:
        made = None
    if made is None:
        return "not built", "–"
    return (
        f"built {made['built_at'][:10]}, {made['box']['bytes'] / 1e6:.0f} MB",
        f"{made['kernel']}, {made['accelerator']}",
    )


@command.command()
@system_option
def key(system: str) -> None:
    """Print the digest of all inputs."""
    click.echo(node_image.image_key(system))


@command.command()
@system_option
def validate(system: str) -> None:
    """Check template, variables and formatting without building."""
    ready.ensure(groups=packages.MAKING)
    node_image.validate(system)
    click.echo(f"the definition of image {system} is valid (packer/)")


@command.command()
@system_option
@archive_option
def lock(system: str, archive: str | None) -> None:
    """Write the locks of kit and system anew from what their archives have today; print what changed."""
    ready.ensure(groups=packages.MAKING)
    chosen = systems.load(system)
    _choose_archive(chosen, archive)
    click.echo(_changed("node kit", kit.renew_lock()))
    if chosen.packages:
        click.echo(_changed(f"image of {system}", node_image.renew_lock(system)))


def _changed(what: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{what}:", *(f"  {line}" for line in lines)]) if lines else f"{what}: as before"


@command.command()
@system_option
def show(system: str) -> None:
    """Print what the image is made of."""
    manifest = node_image.manifest(system)
    if manifest is None:
        raise UserError(
            f"image {node_image.folder(system).name}",
            "must be built",
            fix="Type `./task image:build`, some minutes",
        )
    click.echo(describe(manifest, str(node_image.box_path(system))))


def describe(manifest: JSON, box: str) -> str:
    """The manifest in a few lines."""
    tools = manifest["tools"]
    lines = {
        "box": f"{box} ({manifest['box']['bytes'] / 1e6:.0f} MB)",
        "sha256": manifest["box"]["sha256"],
        "system": f"{manifest['os']}, kernel {manifest['kernel']}, {len(manifest['packages'])} packages",
        "built": f"{manifest['built_at']} in {manifest['build_seconds']:.0f} s with {manifest['accelerator']}, "
        f"commit {manifest['git_commit'] or 'unknown'}",
        "tested": f"{len(manifest['modules'])} kernel modules, {len(tools)} tools: {', '.join(sorted(tools))}",
    }
    return "\n".join(f"{name:<9} {value}" for name, value in lines.items())
