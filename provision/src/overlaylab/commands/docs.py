"""``docs``: write what the repository tells from what it knows."""

from __future__ import annotations

import click

from overlaylab import overlay_tasks
from overlaylab.progress import say


@click.group()
def command() -> None:
    """Write files of the repository from what the roles say about themselves."""


@command.command()
def overlays() -> None:
    """Write the tasks lab:<overlay>: needed when a role is new or calls itself otherwise."""
    overlay_tasks.path().write_text(overlay_tasks.text(), encoding="utf-8")
    say(f"written: {overlay_tasks.path().name}")
