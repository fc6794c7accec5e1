"""``lab kit``: build and show the node kit."""

from __future__ import annotations

import click

from overlaylab.core.errors import UserError
from overlaylab.image import kit, package_lock
from overlaylab.machine import packages, ready


@click.group()
def command() -> None:
    """The node kit: one tree with every tool that a node needs, the same bytes on every system."""


lock_option = click.option(
    "--lock",
    envvar="LOCK",
    type=click.Choice(package_lock.RULES),
    default=package_lock.RULES[0],
    show_default=True,
    help="strict: refuse today's packages where mirrors no longer have the locked ones.",
)
snapshots_option = click.option(
    "--snapshots",
    envvar="SNAPSHOTS",
    metavar="ADDRESS",
    help="The archive of snapshots that has what mirrors dropped, with @SNAPSHOTID@ for the day, in place of the one that their Release files name.",
)


@command.command()
@lock_option
@snapshots_option
def build(lock: str, snapshots: str | None) -> None:
    """Build the kit unless its inputs are the same as those of the one that is there."""
    ready.ensure(groups=packages.MAKING)
    click.echo(describe(kit.ensure(package_lock.policy(lock, snapshots))))


@command.command()
def show() -> None:
    """Print what the kit is made of: sizes by part, versions, digest."""
    found = kit.cached()
    if found is None:
        raise UserError("the node kit", "must be built", fix="Type `./task kit:build`, about a minute")
    click.echo(describe(found))


def describe(found: kit.Kit) -> str:
    """The kit's manifest as a table of parts and a few lines."""
    made = found.manifest
    sizes = made["bytes"]
    about = made["about"] | {
        "libraries": "what the programs are linked against, and the loader",
        "licences": "what each package says of its licence",
    }
    rows = [f"{name:<10} {size / 1e6:6.1f} MB  {about[name]}" for name, size in sizes.items()]
    total = sum(sizes.values())
    lines = {
        "in all": f"{total / 1e6:.0f} MB, {(total - sizes.get('etcd', 0)) / 1e6:.0f} MB without etcd; "
        f"{made['archive']['bytes'] / 1e6:.0f} MB as it travels",
        "digest": found.digest,
        "packages": f"{len(made['packages'])} of {found.architecture}, "
        + (
            f"{len(found.drifted)} not as locked: {', '.join(found.drifted)}"
            if found.drifted
            else "all as locked"
        ),
        "programs": f"{len(made['programs'])}, among them "
        + ", ".join(f"{tool}" for tool in sorted(found.tools)),
        "built": f"{made['built_at']} in {made['build_seconds']:.0f} s",
        "lies in": str(found.archive.parent),
    }
    return "\n".join([*rows, "", *(f"{name:<9} {value}" for name, value in lines.items())])
