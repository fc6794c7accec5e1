"""lab daemons: build the pinned daemons of overlays."""

import click

from overlaylab.image import daemons


@click.group()
def command() -> None:
    """The overlays' own daemons, built from pinned sources into the cache folder."""


@command.command()
@click.argument("name", required=False)
def build(name: str | None) -> None:
    """Build the daemons of NAME, or of every overlay that has a recipe; what is in the cache is kept."""
    for each in (name,) if name else daemons.names():
        daemons.prepare([each])
        built = daemons.ensure(each)
        for binary, about in built["binaries"].items():
            click.echo(f"{about['sha256']}  {about['path']}  ({binary} {built['version']})")
