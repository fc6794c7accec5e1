"""``lab results``: read what was measured."""

from __future__ import annotations

import sys

import click

from overlaylab.core import paths
from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.errors import UserError
from overlaylab.core.progress import HIDDEN, PlainConsole, output
from overlaylab.report import checks, compare_table, grid_table
from overlaylab.report.export import WRITERS, export, new_file
from overlaylab.report.table import runs_table, show
from overlaylab.run.design import PERCENT, in_range
from overlaylab.store.store import UNFINISHED, Store

REMOVING = "YES=1 removes without a question; DRY_RUN=1 only says what would go."
WITHDRAWING = "YES=1 withdraws without a question."


def opened() -> Store:
    """The database, which has to be there."""
    return Store.open(paths.database(), create=False)


def one_of(run: str | None, group: str | None) -> None:
    """Raise UserError where both are named."""
    if run and group:
        raise UserError(
            "GROUP", "cannot be combined with RUN: a group has a run for each of its tiers",
            seen=f"GROUP={group} and RUN={run}", fix="Leave one of the two out",
        )  # fmt: skip


@click.group()
def command() -> None:
    """Show, export, import, list, withdraw or remove results."""


@command.command("show")
@click.argument("run", required=False)
@click.option(
    "--group",
    envvar="GROUP",
    help="The table of several tiers (PROFILES=): an id, its beginning or end, or newest.",
)
def show_command(run: str | None, group: str | None) -> None:
    """Print the tables of a run.

    RUN is an id or its unique beginning or end; left out, the newest.
    """
    one_of(run, group)
    with opened() as store:
        if group:
            from overlaylab.results import tiers  # imports all that measuring takes

            grid_table.show(store, tiers.find_group(store, group), output(PlainConsole))
        else:
            show(store, run or None, output(PlainConsole))


@command.command("compare")
@click.argument("runs", nargs=-1)
@click.option(
    "--run-a", envvar="RUN_A", help="The run to hold the other against, an id or its unique beginning or end."
)
@click.option("--run-b", envvar="RUN_B", help="The other (default: the newest).")
@click.option("--fail-over", envvar="FAIL_OVER", type=PERCENT,
              help="Exit 1 where something got worse by more than this, such as 5%, and 3 where that cannot be told.")  # fmt: skip
@click.option(
    "--margin", envvar="MARGIN", type=PERCENT, help="What counts as the same (default: as the runs say)."
)
def compare_command(
    runs: tuple[str, ...], run_a: str | None, run_b: str | None, fail_over: float | None, margin: float | None
) -> None:
    """Hold run B against run A.

    Says how far each ratio to the host moved, with intervals and verdicts. Exit codes with FAIL_OVER: 0 nothing got worse by more than that, 1 something did, 3 nothing is shown to have, but
    too few or too noisy blocks leave it open; 2 where the two runs are not to be compared.
    """
    named: list[str | None] = [*runs, *[None] * (2 - len(runs))]
    first, second, *more = named
    if more or (runs and run_a):
        raise UserError(
            "runs",
            "must be two",
            seen=len(runs) + bool(run_a),
            fix="./task results:compare RUN_A=id RUN_B=id",
        )
    if not (first or run_a):
        raise UserError("RUN_A", "must name the run to hold the other against", fix="See ./task results:list")
    in_range("MARGIN", margin)
    in_range("FAIL_OVER", fail_over, least=0.0, most=0.99)
    with opened() as store:
        a, b = store.find_run(first or run_a), store.find_run(second or run_b or None)
        code = compare_table.show(store, a, b, output(PlainConsole), margin, fail_over)
    if code:
        sys.exit(code)  # click's own Exit does not reach the shell from here


@command.command("list")
def list_command() -> None:
    """List the runs, newest first."""
    with opened() as store:
        output(PlainConsole).print(runs_table(store))


@command.command("export")
@click.argument("format_", metavar="FORMAT", type=click.Choice(sorted(WRITERS)))
@click.option("--out", envvar="OUT", default="-", help="File to make; standard output by default.")
@click.option("--run", envvar="RUN", help="Only this run.")
def export_command(format_: str, out: str, run: str | None) -> None:
    """Write every value as csv or json.

    One row for each sample: the view `result`, whose columns db/README.md has.
    """
    with opened() as store:
        rows = export(store, format_, out or "-", store.find_run(run) if run else None)
    if out not in ("", "-"):
        click.echo(f"{out}: {_counted(rows, 'row')}", err=True)


@command.command("report")
@click.option("--run", envvar="RUN", help="Which run (default: the newest).")
@click.option("--group", envvar="GROUP", help="All runs of several tiers (PROFILES=): an id, or newest.")
@click.option(
    "--drill", envvar="DRILL", help="Attempts at this drill in place of a run; all: at every drill."
)
@click.option("--out", envvar="OUT", required=True, help="File to make; - for standard output.")
def report_command(run: str | None, group: str | None, drill: str | None, out: str) -> None:
    """Write a run, or attempts at drills, as one HTML file.

    Tables, every repetition as a dot, where the numbers come from. It opens with no network.
    """
    from overlaylab.report import attempts_page, page  # takes a while to import

    if group:
        from overlaylab.results import tiers
    one_of(run, group)
    if drill and (run or group):
        raise UserError(
            "DRILL", "cannot be combined with RUN or GROUP: attempts are of no run",
            seen=f"DRILL={drill} and {f'RUN={run}' if run else f'GROUP={group}'}", fix="Leave one of the two out",
        )  # fmt: skip
    if drill:
        with opened() as store, new_file(out) as stream:
            count = attempts_page.write(store, drill, stream)
        _said_written(out, _counted(count, "attempt"))
        return
    with opened() as store:
        found = tiers.find_group(store, group) if group else None
        run_ids = [one for _, one in found.run_ids if one] if found else [store.find_run(run or None)]
        with new_file(out) as stream:
            page.write(store, run_ids, stream, found)
    _said_written(out, _counted(len(run_ids), "run"))


def _said_written(out: str, what: str) -> None:
    if out != "-":
        click.echo(f"{out}: {what}, {checks.value(paths.typed(out).stat().st_size, 'bytes')}", err=True)


@command.command("import")
@click.argument("files", nargs=-1)
@click.option(
    "--overlay", envvar="OVERLAY", help="What was measured: host, or weave/sleeve (default: unknown)."
)
@click.option("--encrypted", envvar="ENCRYPTED", is_flag=True, help="The overlay encrypted.")
@click.option(
    "--accelerator",
    envvar="ACCELERATOR",
    metavar="|".join(ACCELERATORS),
    help="How the CPUs of the hosts ran, which no such file says; must be given.",
)
@click.option("--machine", envvar="MACHINE", help="What the hosts are (default: as the file says).")
def import_command(
    files: tuple[str, ...],
    overlay: str | None,
    encrypted: bool,
    accelerator: str | None,
    machine: str | None,
) -> None:
    """Store files of other programs as runs.

    FILES are the JSON of an iperf3 client, of knb, k8s-netperf and PerfKit Benchmarker, .flent and .flent.gz. Their origin is `imported`. One run for each file, all or none. They are never put into one row with what was measured here.
    """
    from overlaylab.report import comparison
    from overlaylab.store import imported

    if not files:
        raise UserError(
            "FILE", "must name a file", fix="FILE=…, or several after --; docs/results.md names the formats."
        )
    how = imported.accelerator(accelerator)
    about = imported.About(imported.variant(overlay, encrypted), how, machine or None)
    read = [imported.read(paths.typed(file)) for file in files]
    with Store.open(paths.database()) as store:
        run_ids = imported.store_all(store, read, about)
        comparison.refresh(store, run_ids)
    for file, run_id in zip(read, run_ids, strict=True):
        left_out, benchmarks = len(file.measured.left_out), len(file.measured.trials)
        also = (
            f"; {left_out} series or values left out, which are computed or have no metric here"
            if left_out
            else ""
        )
        click.echo(
            f"{HIDDEN.sub('', file.path.name)}: run {run_id}, {_counted(benchmarks, 'benchmark')}{also}",
            err=True,
        )


@command.command("refresh")
@click.argument("runs", nargs=-1)
def refresh_command(runs: tuple[str, ...]) -> None:
    """Make the view `comparison` anew: of RUNS, by default of all that lack it or have an older one's.

    A database of an older schema lacks it. What is up to date stays as it is.
    """
    from overlaylab.report import comparison  # imports what measuring takes

    with opened() as store:
        done = comparison.refresh(store, [store.find_run(run) for run in runs] or None)
    made = (
        f"{len(done.made)} {'run' if len(done.made) == 1 else 'runs'} refreshed"
        if done.made
        else "nothing to refresh"
    )
    left = f"; {', '.join(done.measured)}: being measured, so left to its next block" if done.measured else ""
    click.echo(made + left, err=True)


@command.command("prune")
@click.option("--run", envvar="RUN", help="These runs, comma-separated.")
@click.option("--keep", envvar="KEEP", type=click.IntRange(0), help="All but so many newest.")
@click.option("--older", envvar="OLDER", type=float, help="Those planned more than so many days ago.")
@click.option("--yes", envvar="YES", is_flag=True, help="Do not ask.")
@click.option("--dry-run", envvar="DRY_RUN", is_flag=True, help="Say what would go; remove nothing.")
def prune_command(run: str | None, keep: int | None, older: float | None, yes: bool, dry_run: bool) -> None:
    """Remove whole runs for good, after a question.

    Lists them first, with the disk that comes back.
    """
    from overlaylab.store import prune

    named = [one.strip() for one in (run or "").split(",") if one.strip()]
    with opened() as store:
        run_ids = prune.choose(store, named, keep, older)
        if not run_ids:
            click.echo("nothing to remove", err=True)
            return
        with prune.untouched(store, run_ids):
            planned = prune.preview(store, run_ids)
            them = "it" if len(run_ids) == 1 else "them"
            PlainConsole(stderr=True).print(runs_table(store, run_ids))
            click.echo(
                f"{_counted(len(run_ids), 'run')} with {_counted(planned.trials, 'trial')} and"
                f" {_counted(planned.samples, 'sample')}; without {them} the file is"
                f" {checks.value(planned.freed, 'bytes')} smaller",
                err=True,
            )
            if dry_run:
                return
            if not (yes or _agreed(f"Remove {them} for good?", "results:prune", REMOVING)):
                click.echo("nothing was removed", err=True)
                sys.exit(1)
            _, why = prune.remove(store, run_ids)
    click.echo("removed" if why is None else f"removed; the file keeps its size for now: {why}", err=True)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _agreed(question: str, task: str, ways: str) -> bool:
    """The answer to the question. UserError, with the ways on, where there is nobody to ask; Abort for Ctrl-C."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise UserError(task, "must be told to go ahead where there is nobody to ask", fix=ways) from None


@command.command("void")
@click.argument("run")
@click.argument("trials", nargs=-1)
@click.option(
    "--why", "--reason", "why", required=True, help="Why these results do not hold; stored with each."
)
@click.option("--yes", envvar="YES", is_flag=True, help="Do not ask.")
def void_command(run: str, trials: tuple[str, ...], why: str, yes: bool) -> None:
    """Withdraw results that do not hold, after a question.

    All of RUN, or only the TRIALS of it, for good: they stay in the database, marked void with the reason, and are in no
    table.
    """
    from overlaylab.report import comparison
    from overlaylab.store import prune

    if not run:
        raise UserError("RUN", "must be given", fix="Type RUN=…: ./task results:list has the ids.")
    with opened() as store:
        run_id = store.find_run(run)
        known = store.trial_ids(run_id)
        for trial in trials:
            if not trial.isdecimal() or int(trial) not in known:
                raise UserError(
                    "TRIALS",
                    f"must be trials of run {run_id}, by trial_id in the view trial",
                    seen=trial,
                    fix=f'See sqlite3 "{store.path}" "SELECT trial_id, overlay, status FROM trial".',
                )
        if not why.strip():
            raise UserError("WHY", "must say why", fix="It is stored with every trial that is withdrawn.")
        chosen = {int(trial) for trial in trials} or set(known)
        # What is being measured goes on, and would give results beside those that were withdrawn.
        with prune.untouched(store, [run_id], "results:void"):
            holding = len(chosen.intersection(store.trial_ids(run_id, status="ok")))
            question = f"Withdraw {_counted(holding, 'trial')} of run {run_id} for good?"
            if holding and not (yes or _agreed(question, "results:void", WITHDRAWING)):
                click.echo("nothing was withdrawn", err=True)
                sys.exit(1)
            to_come = len(chosen.intersection(trial for trial, _ in store.pending_trials(run_id)))
            count = store.void_trials(chosen, why.strip())
            comparison.refresh(store, [run_id])
            unfinished = store.run(run_id).state in UNFINISHED
    others = len(chosen) - count - to_come
    also = f"; {others} had given no result that held" if others else ""
    if to_come:
        also += f"; {to_come} still to come" if unfinished else f"; {to_come} never measured"
    click.echo(f"{_counted(count, 'trial')} withdrawn{also}", err=True)
