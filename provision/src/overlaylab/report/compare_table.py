"""What a person reads of two runs: a table per metric, what forbids to compare them, and what became worse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from overlaylab.core.errors import UserError
from overlaylab.report.table import numbers, title_of
from overlaylab.report.verdicts_table import MISSING, confidence, digits, percent
from overlaylab.results.compare import RATIO, Change, Compared, Comparison, changed, compare, hindrances
from overlaylab.results.results import Report, report
from overlaylab.results.rows import name_of
from overlaylab.stats.inference import ALPHA, MARGIN, MEDIAN_TAKES, worded
from overlaylab.store.store import Store


def show(
    store: Store, first: str, second: str, console: Console, margin: float | None, fail_over: float | None
) -> int:
    """Print the second run against the first, and return the exit code (`Comparison.exit_code`). Raises UserError.

    margin: None for the one that the runs were given.
    """
    runs = [report(store, run, lambda _: None) for run in (first, second)]
    against = hindrances(runs[0].run.record, runs[1].run.record)
    if against and fail_over is not None:
        raise UserError(
            "FAIL_OVER",
            "is for two runs that differ in nothing but what was measured",
            seen="; ".join(against),
            fix="Without FAIL_OVER they are shown beside each other, with a warning",
        )
    settled = {one.rules.margin for one in runs}
    if margin is None:
        margin = settled.pop() if len(settled) == 1 else MARGIN
    found = compare(runs[0], runs[1], margin, fail_over)
    for line in _heading(runs, against):
        console.print(line)
    for table in found.tables:
        console.print()
        console.print(title_of(table.first))
        if table.changes:
            console.print(_grid(table))
        for words in _host(table):
            console.print(Text(words, "dim"))
    console.print()
    for words in _footer(found, runs):
        console.print(Text(words))
    return found.exit_code


def _heading(runs: list[Report], against: list[str]) -> Iterable[Text]:
    yield Text(f"{runs[1].run.run_id} against {runs[0].run.run_id}", "bold")
    for words in against:
        yield Text(f"These two cannot be compared: {words}. What differs below may be that alone.", "yellow")
    for words in changed(runs[0].run.record, runs[1].run.record):
        yield Text(f"Between them: {words}.")
    for one in runs:
        if one.run.state != "done":
            yield Text(f"{one.run.run_id} is {one.run.state}, not done: more blocks may change it.", "yellow")


def _grid(table: Compared) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    ratios = any(change.kind == RATIO for change in table.changes)
    what = "ratio to host" if ratios else "median"
    grid.add_column("overlay mode")
    for title in ("n", f"{what}, first", "second", "second over first" if ratios else "second less first"):
        grid.add_column(title, justify="right")
    grid.add_column("verdict")
    if any(change.judged for change in table.changes):
        grid.add_column("over?")
    for change in table.changes:
        judged = [_judged(change)] if any(c.judged for c in table.changes) else []
        grid.add_row(name_of(change.variant, False), *_cells(change, table), *judged)
    return grid


def _cells(change: Change, table: Compared) -> Iterable[str]:
    plain = numbers(table.first)[1]

    def number(value: float) -> str:
        return digits(value) if change.kind == RATIO else plain(value)

    yield f"{change.first.n}, {change.second.n}"
    for side in (change.first, change.second):
        yield MISSING if side.median is None else number(side.median)
    if change.estimate is None:
        yield MISSING
    elif change.interval is None:
        yield number(change.estimate)
    else:
        low, high = number(change.interval.low), number(change.interval.high)
        yield f"{number(change.estimate)} ({low}{'–' if change.kind == RATIO else ' to '}{high})"
    yield MISSING if change.interval is None else worded(change.word, table.first.metric, table.first.better)


def _judged(change: Change) -> str:
    if not change.judged:
        return ""
    return "worse" if change.worse else "cannot tell" if change.open else "no"


def _columns(changes: Sequence[Change]) -> str:
    kinds = {change.kind for change in changes}
    names = ["second over first"] if RATIO in kinds else []
    return ", ".join(names + (["second less first"] if kinds - {RATIO} else []))


def _host(table: Compared) -> Iterable[str]:
    if None not in table.host:
        number = numbers(table.first)[1]
        first, second = (number(value) for value in table.host if value is not None)
        free = ": ratios are free of it" if any(change.kind == RATIO for change in table.changes) else ""
        yield f"The host itself: {first}, then {second}. That is not judged{free}."


def _footer(found: Comparison, runs: list[Report]) -> Iterable[str]:
    yield from (f"{words[0].upper()}{words[1:]}." for words in found.absent)
    changes = [change for table in found.tables for change in table.changes]
    if not changes:
        yield f"No overlay was measured in both{', so nothing is judged' if found.fail_over is not None else ''}."
        yield from ["Exit code 3."] if found.exit_code == 3 else []
        return
    looks = ", at all looks of both together" if found.shares > 1 else ""
    yield (
        f"{_columns(changes)}: median of all pairs of blocks, and where it lies with {confidence()} or more{looks} "
        f"(Hodges and Lehmann, Mann and Whitney); none below {MEDIAN_TAKES} blocks in each."
    )
    yield (
        f"Verdict, each row for itself: same where all of the interval lies within {percent(found.margin)}; faster, slower, "
        "better, worse where all of it lies on that side; else cannot tell."
    )
    if found.fail_over is None:
        return
    over, judged = percent(found.fail_over), found.judged
    yield (
        f"over?: whether it got worse by more than {over}; of all {len(judged)} together, one is called worse in error in "
        f"at most {percent(ALPHA)} of comparisons (Holm)."
    )
    worse = [name_of(change.variant, False) for change in judged if change.worse]
    count = sum(change.open for change in judged)
    if worse:
        yield f"Worse by more than {over}: {', '.join(dict.fromkeys(worse))}. Exit code 1."
    elif found.exit_code == 3:
        yield f"Nothing is shown to be worse by more than {over}; {count} of {len(judged)} may be. Exit code 3."
    else:
        yield f"Nothing got worse by more than {over}. Exit code 0."
