"""``lab image``: build, show and check the node image."""

from __future__ import annotations

import click

from overlaylab.core.errors import UserError
from overlaylab.core.model import JSON
from overlaylab.image import kit, node_image
from overlaylab.machine import packages, ready

system_option = click.option(
    "--system", envvar="SYSTEM", default="debian", show_default=True, help="As in packer/systems."
)


@click.group()
def command() -> None:
    """The node image: a Vagrant box and its manifest, made from packages."""


@command.command()
@system_option
def build(system: str) -> None:
    """Build the image unless its inputs are the same as those of the one that is there."""
    ready.ensure()
    node_image.build(system)


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
def lock() -> None:
    """Write the locks of packages anew from what the mirrors have today; print what changed."""
    ready.ensure(groups=packages.MAKING)
    changed = kit.renew_lock()
    click.echo(
        "\n".join(["node kit:", *(f"  {line}" for line in changed)]) if changed else "node kit: as before"
    )


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
