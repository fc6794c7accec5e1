"""``bench store`` and ``bench stats``: what a million samples cost, against what they may."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from overlaylab.bench import scale
from overlaylab.core import paths
from overlaylab.store.store import Store

# (samples, seconds that they may take).
STORE_LIMIT = (1_000_000, 20.0)
SUMMARY_LIMIT = (1_000_000, 2.0)
PAGE_LIMIT = (100_000, 5.0)

per_trial = click.option(
    "--per-trial", envvar="PER_TRIAL", default=1000, show_default=True, type=click.IntRange(1),
    help="Samples of a trial.",
)  # fmt: skip
rounds = click.option(
    "--rounds", envvar="ROUNDS", default=3, show_default=True, type=click.IntRange(1), help="Repetitions."
)


@click.command("store")
@per_trial
@rounds
def store_command(per_trial: int, rounds: int) -> None:
    """Time the storing of 10⁴, 10⁵ and 10⁶ samples, to disk as a run does it. Exit code 1 above the limit."""
    within = True
    for samples in scale.SIZES:
        seconds, size = [], 0.0
        for _ in range(rounds):
            with _store() as store:
                filled = scale.fill(store, samples, per_trial)
                seconds.append(filled.seconds)
                size = store.path.stat().st_size / 1e6
        words = f"{samples:>9,} samples in {filled.trials:,} trials stored, {size:,.0f} MB"
        within &= _print_rounds(words, samples, seconds, STORE_LIMIT)
    sys.exit(not within)


@click.command("stats")
@per_trial
@rounds
def stats_command(per_trial: int, rounds: int) -> None:
    """Time `results show` and `results report` of a run of 10⁴, 10⁵ and 10⁶ samples. Exit code 1 above the limit.

    Whole commands: starting Python and importing what they need is in it.
    """
    within = True
    for samples in scale.SIZES:
        with _store() as store:
            store.db.execute("PRAGMA synchronous = OFF")  # storing is not what is timed here
            filled = scale.fill(store, samples, per_trial)
            table = [_command(store.path, "show") for _ in range(rounds)]
            page = [_command(store.path, "report", "--out", "-") for _ in range(rounds)]
        words = f"{samples:>9,} samples in {filled.trials:,} trials: "
        within &= _print_rounds(words + "table", samples, table, SUMMARY_LIMIT)
        within &= _print_rounds(words + "report", samples, page, PAGE_LIMIT)
    sys.exit(not within)


@contextmanager
def _store() -> Iterator[Store]:
    """An empty database on the disk that the cache is on."""
    paths.cache().mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=paths.cache(), prefix="bench-") as folder,
        Store.open(Path(folder) / "bench.sqlite") as store,
    ):
        yield store


def _command(path: Path, *words: str) -> float:
    """Seconds of wall time that `results …` takes over that database."""
    argv = [sys.executable, "-m", "overlaylab", "results", *words]
    started = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True, env={**os.environ, "LAB_DB": str(path)})
    return time.perf_counter() - started


def _print_rounds(what: str, samples: int, seconds: list[float], limit: tuple[int, float]) -> bool:
    """Print the rounds; whether the fastest keeps the limit, where there is one. Others took longer for other work."""
    told = f"{what}: {statistics.median(seconds):.2f} s ({min(seconds):.2f}–{max(seconds):.2f}, n={len(seconds)})"
    if samples != limit[0]:
        click.echo(told)
        return True
    within = min(seconds) <= limit[1]
    click.echo(f"{told}, at most {limit[1]:g} s: {'ok' if within else 'TOO SLOW'}")
    return within
