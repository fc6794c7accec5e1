"""``lab results``: read what was measured."""

from __future__ import annotations

import click
from rich.console import Console

from overlaylab import paths, results_grid_table, tiers
from overlaylab.errors import UserError
from overlaylab.results_export import WRITERS, export
from overlaylab.results_table import runs_table, show
from overlaylab.store import Store


def opened() -> Store:
    """The database, which has to be there."""
    return Store.open(paths.database(), create=False)


@click.group()
def command() -> None:
    """Show, export, list or withdraw results."""


@command.command("show")
@click.argument("run", required=False)
@click.option(
    "--group",
    envvar="GROUP",
    help="The table of several tiers (PROFILES=): an id, its beginning or end, or newest.",
)
def show_command(run: str | None, group: str | None) -> None:
    """Print the table of RUN (an id or its unique beginning or end), by default of the newest run."""
    if run and group:
        raise UserError(
            "GROUP", "cannot be combined with RUN: a group has a run for each of its tiers",
            seen=f"GROUP={group} and RUN={run}", fix="Leave one of the two out",
        )  # fmt: skip
    with opened() as store:
        if group:
            results_grid_table.show(store, tiers.find_group(store, group), Console(highlight=False))
        else:
            show(store, run or None, Console(highlight=False))


@command.command("list")
def list_command() -> None:
    """List the runs, newest first."""
    with opened() as store:
        Console(highlight=False).print(runs_table(store))


@command.command("export")
@click.argument("format_", metavar="FORMAT", type=click.Choice(sorted(WRITERS)))
@click.option("--out", default="-", help="File to make; standard output by default.")
@click.option("--run", default=None, help="Only this run.")
def export_command(format_: str, out: str, run: str | None) -> None:
    """Write the view `result` as csv or json."""
    with opened() as store:
        rows = export(store, format_, out or "-", store.find_run(run) if run else None)
    if out not in ("", "-"):
        click.echo(f"{out}: {rows} rows", err=True)


@command.command("void")
@click.argument("run")
@click.argument("trials", nargs=-1)
@click.option("--reason", required=True, help="Why these results do not hold; stored with each.")
def void_command(run: str, trials: tuple[str, ...], reason: str) -> None:
    """Withdraw trials of RUN for good: they stay in the database, marked, and are shown nowhere."""
    with opened() as store:
        run_id = store.find_run(run)
        known = set(store.trial_ids(run_id))
        for trial in trials:
            if not trial.isdecimal() or int(trial) not in known:
                raise UserError(
                    "TRIALS",
                    f"must be trials of run {run_id}, by trial_id in the view trial",
                    seen=trial,
                    fix=f'See sqlite3 "{store.path}" "SELECT trial_id, overlay, status FROM trial".',
                )
        if not trials:
            raise UserError("TRIALS", "must name at least one trial_id", fix="Separate several with spaces.")
        if not reason.strip():
            raise UserError("REASON", "must say why", fix="It is stored with every trial that is withdrawn.")
        count = store.void_trials(map(int, trials), reason.strip())
    click.echo(f"{count} of {len(trials)} trials withdrawn; the others had given no result", err=True)
