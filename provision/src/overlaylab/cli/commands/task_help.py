"""``task-help NAME``: what ``./task NAME --help`` prints."""

from __future__ import annotations

import click


@click.command()
@click.argument("name")
def command(name: str) -> None:
    """Say what the task NAME does and which variables it takes, with an example."""
    from overlaylab.cli import main, task_help

    click.echo(task_help.text(name, main.cli), nl=False)
