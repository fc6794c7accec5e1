"""The command line: one file per subcommand in ``commands``, found by listing that package."""

from __future__ import annotations

import importlib
import os
import pkgutil
import shlex
import sys
import traceback
from pathlib import Path
from typing import NoReturn

import click

from overlaylab.cli import commands, variables
from overlaylab.core import disk_full, task_log
from overlaylab.core.errors import NodeError, UserError


class LazyGroup(click.Group):
    """Imports a subcommand's file only when it is called: start-up counts on small machines."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = {m.name for m in pkgutil.iter_modules(commands.__path__)}
        # bench_fidelity.py is the group bench's own.
        return sorted(
            name.replace("_", "-") for name in names if name.partition("_")[0] not in names - {name}
        )

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"overlaylab.cli.commands.{name.replace('-', '_')}")
        command: click.Command = module.command
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Measure, compare and break container overlay networks. The tasks of ./task call this."""


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 a measurement or check failed, 2 wrong input."""
    typed = os.environ.pop("OVERLAYLAB_TYPED", None)  # for this command alone
    task_log.begin(typed or shlex.join(["overlaylab", *sys.argv[1:]]), _version)
    try:
        _run()
    except SystemExit as ended:
        task_log.end(f"ended with exit code {ended.code or 0}")
        raise
    except BaseException:
        task_log.end(traceback.format_exc())
        raise
    task_log.end("done")


def _version() -> str:
    from overlaylab.machine import checkout  # Lazily: most commands keep no log.

    return str(checkout.described())


def _run() -> None:
    kept = os.environ.pop("OVERLAYLAB_LAST_WORDS", None)  # of this command alone
    try:
        cli(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as wrong:
        told = variables.refused(wrong) if isinstance(wrong, click.BadParameter) else None
        if told:
            _end(str(told), 2, kept)
        task_log.end(wrong.format_message())
        wrong.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        _end("interrupted", 130, kept)
    except OSError as wrong:
        if not disk_full.is_about(wrong):
            raise
        _end(str(disk_full.error(str(wrong.filename or "disk"), wrong.strerror)), 2, kept)
    except NodeError as wrong:
        _end(f"{wrong}. ./task lab:status shows the nodes", 1, kept)
    except UserError as wrong:
        _end(str(wrong), 2, kept)


def _end(paragraph: str, code: int, kept: str | None) -> NoReturn:
    """End with these words: on stderr, or in the file that ./task prints when go-task has said its own."""
    task_log.end(paragraph)  # says where it lies before these words, which come last
    text = f"overlaylab: {paragraph}\n"
    if not (kept and _written(text, kept)):
        sys.stderr.write(text)
    sys.exit(code)


def _written(text: str, kept: str) -> bool:
    """Whether it is in the file, which is gone with ./task, and closed to other users."""
    try:
        with Path(kept).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        return False
    return True
