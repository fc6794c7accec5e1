"""``lab setup``: packages, groups, libvirt, key; what is there already is left alone."""

from __future__ import annotations

import click

from overlaylab.core import paths
from overlaylab.core.progress import say
from overlaylab.machine import packages, ready

_TESTED = (
    packages.CONTAINERS,
    packages.VIEWER,
    packages.SCREENLESS,
    packages.BROWSER,
    packages.BUNDLES,
    *packages.MAKING,
)


@click.command()
@click.option(
    "--tests", is_flag=True, help="For all tests: system containers, the viewer and its screen as well."
)
@click.option("--containers", is_flag=True, help="For tests on nodes: system containers as well.")
def command(tests: bool, containers: bool) -> None:
    """Make this machine ready for the lab. Says what it does before it uses sudo."""
    ready.ensure(groups=_TESTED if tests else (packages.CONTAINERS, *packages.MAKING) if containers else ())
    from overlaylab.machine import ssh_keys  # Lazily: nothing else here needs it.

    ssh_keys.ensure()
    say(
        f"this machine is ready (libvirt answers, cache folder {paths.cache()}); `./task doctor` says what it can do"
    )
