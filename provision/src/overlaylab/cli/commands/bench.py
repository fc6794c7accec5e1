"""``bench``: what is timed is timed here, never asserted in a test."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time

import click

from overlaylab.cli.commands.bench_fidelity import command as fidelity
from overlaylab.cli.commands.bench_profiles import command as profiles
from overlaylab.cli.commands.bench_scale import stats_command, store_command
from overlaylab.cli.commands.bench_statistics import command as statistics_command
from overlaylab.cli.commands.bench_viewer import command as viewer
from overlaylab.cli.commands.measure import carry_out
from overlaylab.cli.options import Own, run_options
from overlaylab.core import paths
from overlaylab.run import experiment
from overlaylab.run.options import Options


@click.group()
def command() -> None:
    """Benchmarks of the lab itself. Compare within one run: machines are shared and noisy."""


command.add_command(fidelity)
command.add_command(profiles)
command.add_command(store_command)
command.add_command(stats_command)
command.add_command(statistics_command)
command.add_command(viewer)


@command.command()
@run_options(
    profile=Own("Tier to emulate.", "azure-a1"),
    blocks=Own("Repetitions of the whole.", 2),
    scale=Own(default=2.0),
)
def harness(typed: Options) -> None:
    """What the harness costs: wall time outside reverts and set-up over the seconds inside trials.

    Runs the suite quick on host, fastdp and sleeve into a database of its own.
    """
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LAB_DB"] = f"{folder}/bench.sqlite"
        request = experiment.request("weave", typed)
        clock = carry_out(request)
    ratio = (clock.trials + clock.harness) / clock.trials
    print(
        f"inside trials {clock.trials:.1f} s, around them {clock.harness:.1f} s: ratio {ratio:.3f} (target 1.25)"
    )
    print(
        f"reverts: {len(clock.reverts)}, median {statistics.median(clock.reverts):.1f} s,"
        f" {min(clock.reverts):.1f} to {max(clock.reverts):.1f} s;"
        f" with the profile {clock.setup / len(clock.reverts):.1f} s a cell"
    )


@command.command("front-door")
@click.option("--calls", default=20, show_default=True)
def front_door(calls: int) -> None:
    """What ./task costs of its own on a second call, beside go-task alone."""

    def timed(*argv: str) -> float:
        seconds = []
        for _ in range(calls):
            started = time.perf_counter()
            subprocess.run(argv, stdout=subprocess.DEVNULL, check=True, cwd=paths.ROOT)
            seconds.append(time.perf_counter() - started)
        return statistics.median(seconds)

    through, alone = timed("./task", "--version"), timed("task", "--version")
    print(
        f"./task {through * 1e3:.0f} ms, go-task alone {alone * 1e3:.0f} ms: {(through - alone) * 1e3:.0f} ms of its own"
    )
