"""``docs``: write what the repository tells from what it knows."""

from __future__ import annotations

import click

from overlaylab.core import paths
from overlaylab.core.progress import say
from overlaylab.live import overlay_pages, overlay_tasks


@click.group()
def command() -> None:
    """Write files of the repository from what the roles say about themselves."""


@command.command()
def overlays() -> None:
    """Write the tasks lab:<overlay> and docs/overlays.md: needed when a role is new, or what it says of itself."""
    for about in (overlay_tasks, overlay_pages):
        about.path().write_text(about.text(), encoding="utf-8")
        say(f"written: {about.path().relative_to(paths.ROOT)}")
