"""``bench viewer``: what the desktop viewer costs on databases of 10⁴, 10⁵ and 10⁶ samples, against what it may."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path

import click

from overlaylab.bench import scale
from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.model import JSON
from overlaylab.core.progress import say
from overlaylab.machine import packages
from overlaylab.report import comparison
from overlaylab.store.store import Store

LARGEST = max(scale.SIZES)
# Limits on the largest; the last is "near zero" in a number: seconds of CPU per second.
FIRST_PLOT_S, FILTER_S, MEMORY_BYTES, IDLE_CPU = 3.0, 0.3, 450e6, 0.02


@click.command("viewer")
@click.option(
    "--per-trial", envvar="PER_TRIAL", default=1000, show_default=True, type=click.IntRange(1),
    help="Samples of each trial.",
)  # fmt: skip
@click.option(
    "--rounds", envvar="ROUNDS", default=3, show_default=True, type=click.IntRange(1), help="Repetitions."
)
@click.option("--runtime", envvar="RUNTIME", help="The Electron to take: current or fallback.")
def command(per_trial: int, rounds: int, runtime: str | None) -> None:
    """Start the viewer on databases of 10⁴, 10⁵ and 10⁶ samples and time it, on a screen that nobody sees.

    First plot: from starting Electron. Filter: from a choice in Compare, or of overlays in Time, to the new plot.
    Memory: all processes, shared pages in proportion, a plot shown. Exit code 1 above a limit.
    """
    from overlaylab.desktop import screen, start

    made = start.prepare(runtime or None, (packages.VIEWER, packages.SCREENLESS))
    click.echo(f"Electron: {made.kind} runtime, software rendering")
    within = True
    for samples in scale.SIZES:
        with tempfile.TemporaryDirectory(dir=paths.cache(), prefix="bench-") as folder:
            file = Path(folder) / "bench.sqlite"
            say(f"making a database of {samples:,} samples")
            with Store.open(file) as store:
                store.db.execute("PRAGMA synchronous = OFF")  # storing is not what is timed here
                scale.fill(store, samples, per_trial)
                comparison.refresh(store)
            Path(folder).chmod(0o755)
            variables = {"ELECTRON_OVERRIDE_DIST_PATH": str(made.folder)}
            argv = ["node", str(paths.VIEWER / "bench" / "bench.mts"), str(file), str(rounds)]
            if code := screen.run(argv, variables, Path(folder) / "out"):
                raise UserError(
                    "bench viewer", "must end by itself", seen=f"exit code {code}", fix="See above"
                )
            found = json.loads((Path(folder) / "out" / "bench.json").read_text())
        within &= _print_found(samples, found)
    sys.exit(not within)


def _print_found(samples: int, found: JSON) -> bool:
    """Print what was measured; whether it keeps the limits, which are for the largest."""
    names = "first_plot", "filter", "time_filter", "memory", "idle_cpu"
    first, choice, in_time, memory, idle = (found[name] for name in names)
    rows = (
        ("first plot", statistics.median(first), FIRST_PLOT_S, f"{statistics.median(first):.2f} s ({min(first):.2f}–{max(first):.2f}, n={len(first)})"),
        ("filter", statistics.median(choice), FILTER_S, f"{statistics.median(choice):.3f} s ({min(choice):.3f}–{max(choice):.3f}, n={len(choice)})"),
        ("filter in Time", statistics.median(in_time), FILTER_S, f"{statistics.median(in_time):.3f} s ({min(in_time):.3f}–{max(in_time):.3f}, n={len(in_time)})"),
        ("memory", statistics.median(memory), MEMORY_BYTES, f"{statistics.median(memory) / 1e6:.0f} MB in {found['processes']} processes"),
        ("idle CPU", statistics.median(idle), IDLE_CPU, f"{statistics.median(idle) * 100:.1f} %"),
    )  # fmt: skip
    within = True
    for name, value, limit, words in rows:
        told = f"{samples:>9,} samples: {name} {words}"
        if samples == LARGEST:
            within &= value <= limit
            told += ": ok" if value <= limit else f": ABOVE {limit:g}"
        click.echo(told)
    return within
