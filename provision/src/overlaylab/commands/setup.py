"""``lab setup``: packages, groups, libvirt, key; what is there already is left alone."""

from __future__ import annotations

import click

from overlaylab import host, host_packages, paths
from overlaylab.progress import say

_TESTED = (
    host_packages.CONTAINERS,
    host_packages.VIEWER,
    host_packages.SCREENLESS,
    host_packages.BROWSER,
    host_packages.BUNDLES,
)


@click.command()
@click.option(
    "--tests", is_flag=True, help="For all tests: system containers, the viewer and its screen as well."
)
@click.option("--containers", is_flag=True, help="For tests on nodes: system containers as well.")
def command(tests: bool, containers: bool) -> None:
    """Make this machine ready for the lab. Says what it does before it uses sudo."""
    host.ensure(groups=_TESTED if tests else (host_packages.CONTAINERS,) if containers else ())
    from overlaylab import ssh_keys  # Lazily: nothing else here needs it.

    ssh_keys.ensure()
    say(
        f"this machine is ready (libvirt answers, cache folder {paths.cache()}); `./task doctor` says what it can do"
    )
