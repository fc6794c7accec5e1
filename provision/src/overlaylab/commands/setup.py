"""``lab setup``: packages, groups, libvirt, key; what is there already is left alone."""

from __future__ import annotations

import click

from overlaylab import host, paths
from overlaylab.progress import say


@click.command()
def command() -> None:
    """Make this machine ready for the lab. Says what it does before it uses sudo."""
    host.ensure()
    from overlaylab import image  # Lazily: nothing else here needs it.

    image.ensure_key()
    say(
        f"this machine is ready (libvirt answers, cache folder {paths.cache()}); `./task doctor` says what it can do"
    )
