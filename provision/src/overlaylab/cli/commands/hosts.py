"""``lab hosts``: SSH hosts that somebody else made, apart from measuring on them."""

from __future__ import annotations

import asyncio

import click

from overlaylab.core import paths
from overlaylab.core.progress import say
from overlaylab.providers import registry


@click.group()
def command() -> None:
    """SSH hosts that somebody else made."""


@command.command()
@click.option(
    "--inventory",
    envvar="INVENTORY",
    required=True,
    help="The hosts, as measuring takes them: docs/ssh-hosts.md.",
)
def clean(inventory: str) -> None:
    """Take profile, overlay, daemons and node kit off the hosts."""
    for name, folders in asyncio.run(registry.remove_all(paths.typed(inventory), say)).items():
        click.echo(
            f"{name}: {', '.join(folders) + ' removed' if folders else 'nothing of overlaylab was there'}"
        )
