"""``lab setup``: packages, groups, libvirt, key; what is there already is left alone."""

from __future__ import annotations

import click

from overlaylab import host, host_services, paths
from overlaylab.host_root import say


@click.command()
def command() -> None:
    """Make this machine ready for the lab. Says what it does before it uses sudo."""
    host.ensure()
    from overlaylab import image  # Lazily: nothing else here needs it.

    image.ensure_key()
    say(f"ready: libvirt {host_services.libvirt_version()}, cache folder {paths.cache()}")
