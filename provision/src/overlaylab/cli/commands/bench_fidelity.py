"""``bench fidelity``: measure what is missing of the published pairs, and judge each by the intervals."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import click

from overlaylab.bench import fidelity_lab, fidelity_table
from overlaylab.cli.commands.measure import accelerator_for, carry_out
from overlaylab.cli.options import Own, run_options
from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.progress import PlainConsole, output, readable, say
from overlaylab.run import experiment
from overlaylab.run.options import Options
from overlaylab.specs.profile import Profile
from overlaylab.stats.inference import MEDIAN_TAKES
from overlaylab.store.store import Store

Known = Mapping[fidelity_lab.Tier, list[Profile]]


@click.command("fidelity")
@run_options(
    "suite", "scale",
    profiles=Own("Only these tiers, comma-separated (default: all)."),
    provider=Own("What the nodes are (default: what fits this machine)."),
    blocks=Own("Repetitions of the whole.", MEDIAN_TAKES),
    dry_run=Own("List what would be measured; start nothing."),
)  # fmt: skip
@click.option(
    "--measure",
    envvar="MEASURE",
    type=click.Choice(["yes", "no"]),
    default="yes",
    show_default=True,
    help="no: judge what the database holds already.",
)
def command(measure: str, typed: Options) -> None:
    """The lab's ratios beside the published ones, with a verdict by their intervals.

    What the database does not hold of the tiers as they are described now is measured first.
    """
    known = fidelity_lab.tiers()
    trouble: list[str] = []
    if measure == "yes" or typed.dry_run:
        todo, trouble = _todo(known, typed)
        if typed.dry_run:
            _list(todo, trouble)
            return
        trouble += _carry_out(todo)
    with _database() as store:
        found = fidelity_lab.chosen(typed.profiles, fidelity_lab.published_pairs(store), known)
        lines = fidelity_lab.lines(store, found, known)
    fidelity_table.show(lines, fidelity_lab.left_out(found, known), output(PlainConsole))
    for line in trouble:
        click.echo(line)
    if trouble:
        sys.exit(1)  # click's own Exit does not reach the shell from here


@contextlib.contextmanager
def _database() -> Iterator[Store]:
    """The results database; where there is none yet, an empty one for as long as it is read."""
    with tempfile.TemporaryDirectory() as folder:
        path = paths.database()
        with Store.open(path if path.exists() else Path(folder) / "empty.sqlite") as store:
            yield store


def _todo(known: Known, typed: Options) -> tuple[list[experiment.Request], list[str]]:
    """What has to be measured, checked before anything starts; and what this lab refuses to, in words."""
    request: list[experiment.Request] = []
    refused: list[str] = []
    with _database() as store:
        found = fidelity_lab.chosen(typed.profiles, fidelity_lab.published_pairs(store), known)
        measured = fidelity_lab.Runs(store)
        runs = fidelity_lab.runs_needed(found, known)
        for run in runs:
            try:
                here = accelerator_for([_request(run, typed)])
                lacking = []
                for pair in run.pairs:
                    one = measured.of(pair, known[fidelity_lab.tier_of(pair)]).get(here)
                    if one is None or not one.suffices(typed.blocks or MEDIAN_TAKES):
                        lacking.append(pair)
                if lacking:
                    request.append(_request(replace(run, pairs=tuple(lacking)), typed))
            except UserError as wrong:
                if len(runs) == len(refused) + 1:  # none can be measured: what was typed is wrong
                    raise
                refused.append(f"{run.profile}: {wrong}")
    return request, refused


def _request(run: fidelity_lab.LabRun, typed: Options) -> experiment.Request:
    of_run = replace(typed, modes=run.modes, arguments=run.arguments, profile=run.profile)
    return experiment.request(run.overlay, of_run)


def _list(todo: list[experiment.Request], refused: list[str]) -> None:
    total = 0.0
    for request in todo:
        trials = experiment.plan(request, experiment.planning_inventory(request))
        seconds = experiment.estimate(request, trials, accelerator_for([request])).seconds
        total += seconds
        click.echo(f"{experiment.command_line(request)}\n   {len(trials)} trials, about {readable(seconds)}")
    for line in refused:
        click.echo(f"cannot be measured here: {line}")
    if todo:
        runs = "1 run" if len(todo) == 1 else f"{len(todo)} runs"
        click.echo(f"{runs}, about {readable(total)} with nodes up and converged")
    else:
        click.echo("nothing to measure: MEASURE=no judges what the database holds")


def _carry_out(todo: list[experiment.Request]) -> list[str]:
    """One run after the other; what stopped one, in words, does not stop the next."""
    trouble = []
    for number, request in enumerate(todo, start=1):
        say(f"run {number} of {len(todo)}: {experiment.command_line(request)}")
        try:
            carry_out(request)
        except UserError as wrong:
            trouble.append(f"{request.profile.name}: {wrong}")
            say(trouble[-1])
    return trouble
