"""The command line: one file per subcommand in ``commands``, found by listing that package."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import click

from overlaylab import commands, disk_full, variables
from overlaylab.errors import NodeError, UserError


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
        return importlib.import_module(f"overlaylab.commands.{name.replace('-', '_')}").command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Measure, compare and break container overlay networks. The tasks of ./task call this."""


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 a measurement or check failed, 2 wrong input."""
    try:
        cli(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as wrong:
        told = variables.refused(wrong) if isinstance(wrong, click.BadParameter) else None
        if told:
            print(f"overlaylab: {told}", file=sys.stderr)
        else:
            wrong.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        print("overlaylab: interrupted", file=sys.stderr)
        sys.exit(130)
    except OSError as wrong:
        if not disk_full.is_about(wrong):
            raise
        print(
            f"overlaylab: {disk_full.error(str(wrong.filename or 'disk'), wrong.strerror)}", file=sys.stderr
        )
        sys.exit(2)
    except NodeError as wrong:
        print(f"overlaylab: {wrong}. ./task lab:status shows the nodes", file=sys.stderr)
        sys.exit(1)
    except UserError as wrong:
        print(f"overlaylab: {wrong}", file=sys.stderr)
        sys.exit(2)
