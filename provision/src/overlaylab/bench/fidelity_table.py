"""What people read of `bench:fidelity`: published and measured ratios side by side, with a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from overlaylab.bench.fidelity_lab import Line
from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.metrics import LATENCY, is_latency
from overlaylab.report.verdicts_table import MISSING, digits
from overlaylab.results.fidelity import NOT_MEASURED
from overlaylab.stats.inference import Interval

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Notes:
    """Texts under letters of their own: a to z, then aa, ab, …"""

    def __init__(self) -> None:
        self.letters: dict[str, str] = {}

    def mark(self, text: str) -> str:
        if text not in self.letters:
            n, letter = len(self.letters), ""
            while n >= 0:
                n, letter = n // len(LETTERS) - 1, LETTERS[n % len(LETTERS)] + letter
            self.letters[text] = letter
        return self.letters[text]

    def marks(self, texts: Iterable[str]) -> str:
        found = [self.mark(text) for text in texts]
        between = "" if max(map(len, found), default=1) == 1 else ","
        return f" {between.join(found)}" if found else ""


def show(lines: Sequence[Line], left_out: Mapping[str, Sequence[str]], console: Console) -> None:
    """Print the table, what its letters say, and what is not in it."""
    notes = Notes()
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=0, show_edge=False)
    grid.add_column("tier, overlay mode", no_wrap=True)
    grid.add_column("metric")
    for title in ("lab", "n", "headers", "published"):
        grid.add_column(title, justify="right", no_wrap=title != "published")
    grid.add_column(" CPU")  # stands off the letters before it
    grid.add_column("verdict")
    for profile in dict.fromkeys(line.profile for line in lines):
        grid.add_row(Text(profile, "bold"))
        for line in lines:
            if line.profile == profile:
                grid.add_row(*_cells(line, notes))
    console.print(Text("Ratio of overlay to host, in the lab and as published", "bold"))
    console.print(grid)
    console.print()
    for words in _under(lines, left_out, notes):
        console.print(Text(words))


def _cells(line: Line, notes: Notes) -> Iterable[str]:
    pair, one = line.pair, line.measured
    mtu = f" {pair.mtu}" if pair.mtu else ""
    yield f"  {pair.overlay} {pair.mode}{mtu}"
    yield LATENCY if is_latency(pair.metric) else pair.metric
    yield MISSING if one is None else _ratio(one.lab.ratio, one.lab.interval)
    yield MISSING if one is None else str(one.lab.n)
    yield MISSING if line.headers is None else digits(line.headers)
    remarks = [f"{pair.publication}: {text}" for text in (*pair.notes, *line.flaws)]
    yield _ratio(pair.ratio, line.interval) + notes.marks(remarks)
    yield f" {MISSING if one is None else one.lab.accelerator}"
    yield line.verdict.word + notes.marks(_about(line))


def _about(line: Line) -> Iterable[str]:
    """What has to be said of the verdict."""
    if line.verdict.reason:
        yield line.verdict.reason
    if line.measured and not line.measured.current:
        yield "measured under an earlier version of the profile"
    if line.measured and not line.measured.as_printed:
        yield "measured at an overlay MTU that was asked for, where the publication printed none"


def _ratio(value: float, interval: Interval | None) -> str:
    if interval is None:
        return digits(value)
    return f"{digits(value)} ({digits(interval.low)}–{digits(interval.high)})"


def _under(lines: Sequence[Line], left_out: Mapping[str, Sequence[str]], notes: Notes) -> Iterable[str]:
    yield from (f"{letter}  {text}." for text, letter in notes.letters.items())
    found = sorted({line.measured.lab.accelerator for line in lines if line.measured})
    yield from (f"{name}: {ACCELERATORS[name].words}." for name in found)
    covered = {
        line.measured.lab.interval.coverage
        for line in lines
        if line.measured and line.measured.lab.interval and line.measured.lab.interval.coverage
    }
    if covered:
        least = min(covered)
        yield (
            f"lab: median over blocks, and where it lies with {least:.1%} or more (order statistics; none below six)."
        )
    yield (
        "published: from its repetitions (95 %) where it printed some, else from its digits and its tool's step "
        "alone."
    )
    yield "headers: the ratio if encapsulation cost nothing but its bytes."
    unmeasured = sum(line.verdict.word == NOT_MEASURED for line in lines)
    if unmeasured:
        yield f"{unmeasured} of {len(lines)} not measured: ./task bench:fidelity measures what is missing."
    for reason, names in left_out.items():
        yield f"{reason[0].upper()}{reason[1:]}: {', '.join(names)}."
