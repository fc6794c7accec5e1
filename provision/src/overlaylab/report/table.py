"""What a person reads of a run: a table per metric, and under it everything that qualifies the numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.model import Variant
from overlaylab.report import checks
from overlaylab.report.verdicts_table import (
    MISSING,
    digits,
    precision_sentence,
    ratio_cell,
    ratios,
    sentences,
    verdict_cell,
)
from overlaylab.results.published import Published
from overlaylab.results.results import HeaderBytes, Report, header_bytes, report
from overlaylab.results.rows import Row, Table, name_of
from overlaylab.store.database_errors import explained
from overlaylab.store.store import Store

SCALES = checks.UNITS
# A tool's step is mentioned where it is more than this part of the values.
WORTH_SAYING = 0.005


def show(
    source: Store | Path | str,
    run_id: str | None,
    console: Console,
    provisional: bool | None = None,
    headers: HeaderBytes = header_bytes,
    brief: bool = False,
) -> None:
    """Print a run; the newest where run_id is None. brief: tables without what is said below them.

    provisional: whether to call it unfinished; None: as the run's state says. Raises UserError.
    """
    if not isinstance(source, Store):
        with Store.open(source, create=False) as store:
            return show(store, run_id, console, provisional, headers, brief)
    show_report(report(source, source.find_run(run_id), headers), console, provisional, brief)
    return None


def show_report(
    whole: Report, console: Console, provisional: bool | None = None, brief: bool = False
) -> None:
    """Print what was computed of a run; provisional, brief: as for `show`."""
    final = not (whole.run.state != "done" if provisional is None else provisional)
    for line in heading(whole, provisional):
        console.print(line)
    notes: dict[str, str] = {}
    unbounded = console.options.update(width=1000)

    def fits(grid: Grid) -> bool:
        return console.measure(grid, options=unbounded).maximum <= console.width

    grids = [grid_of(table, notes, False, final) for table in whole.tables]
    if not all(map(fits, grids)):
        grids = [grid_of(table, notes, True, final) for table in whole.tables]
    grids = [
        grid if fits(grid) else grid_of(table, notes, True, final, narrow=True)
        for table, grid in zip(whole.tables, grids, strict=True)
    ]
    for table, grid in zip(whole.tables, grids, strict=True):
        console.print()
        console.print(title_of(table))
        console.print(grid)
        for words in under(table):
            console.print(Text(words, "dim"))
    if not whole.tables and whole.run.trials_planned:
        console.print(Text(no_value(whole)))
    console.print()
    if not brief:
        for words in footer(whole, notes, final):
            console.print(Text(words))


def no_value(whole: Report) -> str:
    """Why a run that has trials has no table."""
    return (
        "No trial has a value that holds." if whole.run.state == "done" else "No trial has given a value yet."
    )


def heading(whole: Report, provisional: bool | None) -> Iterable[Text]:
    """What was measured on what, and whether that is all."""
    run, record = whole.run, whole.run.record
    tier = record.stands_for
    stands_for = "" if tier is None else f" (stands for {' '.join(v for v in tier.values() if v)})"
    if record.origin == "measured":
        yield Text(f"{record.suite} on {record.cluster}, profile {record.profile}{stands_for}", "bold")
        yield Text(f"Run {run.run_id} · {record.machine} · {record.provider}")
    else:
        yield Text(f"Imported: {record.arguments.get('file', 'a file')}, profile {record.profile}", "bold")
        yield Text(f"Run {run.run_id}, not measured here · {record.machine}")
    if record.system:
        yield Text(f"System of the nodes: {record.system}")
    yield Text(f"CPU of the nodes: {ACCELERATORS[record.accelerator].words}")
    if record.scale != 1:
        yield Text(scaled(record.scale))
    unfinished = run.state != "done" if provisional is None else provisional
    if not run.trials_planned:
        if unfinished:
            until = "what was checked until then" if whole.checks else "nothing was checked"
            yield Text(f"This run did not reach its end: {until}.", "yellow")
    elif unfinished:
        how = {
            "interrupted": " The run was interrupted: ./task lab:resume completes it.",
            "failed": " The run ended with an error.",
        }.get(run.state, "")
        yield Text(
            f"Provisional, block {whole.blocks_done} of {record.blocks} "
            f"({run.trials_done} of {run.trials_planned} trials done).{how}",
            "yellow",
        )
    elif said := precision_sentence(whole.tables, whole.rules, whole.blocks_done):
        yield Text(said)


def scaled(scale: float) -> str:
    """That a run is not the suite as its author meant it."""
    return f"SCALE={scale:g}: durations and counts are {scale:g} times the suite's, whole and at least 1."


def title_of(table: Table) -> Text:
    """Benchmark, metric, unit, direction, tools."""
    text = Text(table.benchmark, "bold")
    where = "" if table.where is None else f" ({table.where})"
    unit = numbers(table)[0]
    metric = f"{table.metric}, {unit}" if unit else table.metric
    text.append(f"{where}: {metric}, {table.better} is better ({', '.join(table.tools)})", "not bold")
    return text


def grid_of(
    table: Table, notes: dict[str, str], short: bool, final: bool = True, narrow: bool = False
) -> Grid:
    """The rows as printed; notes, letter by letter, is added to. short: without the name of a lone overlay.

    final: with intervals and verdicts, which a run that goes on has none of. narrow: without the values' min–max.
    """
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    rows = table.rows
    overlays = list({r.variant.overlay: None for r in rows if not r.variant.is_baseline})
    short = short and len(overlays) == 1
    grid.add_column(f"{overlays[0]} mode" if short else "overlay mode")
    number = numbers(table)[1]
    columns: dict[str, Callable[[Row], str]] = {
        "n": lambda r: str(r.n),
        "median": lambda r: MISSING if r.median is None else number(r.median),
        "min–max": lambda r: _range(r, number),
    }
    if narrow or all(r.n < 2 for r in rows):
        del columns["min–max"]
    if any(r.ratio for r in rows if not r.variant.is_baseline):
        columns["ratio to host"] = lambda r: ratio_cell(r, final)
        if final and any(verdict_cell(r, table) not in ("", MISSING) for r in rows):
            columns["verdict"] = lambda r: verdict_cell(r, table)
    if any(r.theory for r in rows if not r.variant.is_baseline):
        columns["headers"] = _theory
    if any(p.comparable for r in rows for p in r.published):
        columns["published"] = lambda r: _published(r, table, notes)
    else:
        for row in rows:  # still worth a note
            _published(row, table, notes)
    for title in columns:
        grid.add_column(title, justify="left" if title == "verdict" else "right")
    for row in rows:
        grid.add_row(name_of(row.variant, short), *(cell(row) for cell in columns.values()))
    return grid


def unit_of(table: Table) -> tuple[str, float]:
    """The unit to print in, and how much of the base unit it is."""
    medians = [abs(r.median) for r in table.rows if r.median]
    names = SCALES.get(table.unit, ((table.unit if table.unit != "1" else "", 1.0),))
    if not medians:
        return names[-1]
    # Times by the least, so that it keeps its digits; rates by the largest, as people name them.
    reference = min(medians) if table.unit == "s" else max(medians)
    return next(((n, f) for n, f in names if reference >= f), names[-1])


def numbers(table: Table) -> tuple[str, Callable[[float], str]]:
    """The unit to print in, and how to print a value: with decimals that leave the least three digits."""
    unit, factor = unit_of(table)
    if table.unit == "1":
        return unit, lambda value: f"{value:g}"
    least = min((abs(r.median) for r in table.rows if r.median), default=factor) / factor
    decimals = min(3, max(0, 2 - math.floor(math.log10(least))))
    return unit, lambda value: f"{value / factor:.{decimals}f}"


def _range(row: Row, number: Callable[[float], str]) -> str:
    """From the least to the largest block; nothing of a single one."""
    if row.n < 2 or row.low is None or row.high is None:
        return MISSING
    return span(number(row.low), number(row.high))


def span(low: str, high: str) -> str:
    """From the least to the largest, as they are printed."""
    return low if low == high else f"{low}–{high}"


def _theory(row: Row) -> str:
    if row.variant.is_baseline:
        return "1"
    return MISSING if row.theory is None else digits(row.theory)


def _published(row: Row, table: Table, notes: dict[str, str]) -> str:
    """The cell; what has to be said about it goes into notes under a letter of its own."""
    if row.variant.is_baseline:
        return "1"
    cells = []
    for one in row.published:
        mark = mark_of(note_of(one, row.variant, table), notes)
        if one.comparable:
            cells.append(f"{'=' if one.same else digits(one.ratio)} {mark}")
    return ", ".join(cells) or MISSING


def mark_of(note: str, notes: dict[str, str]) -> str:
    """The note's letter, a new one for a new note: a to z, then aa, ab, …"""
    many, last = divmod(len(notes), 26)
    letter = chr(ord("a") + last)
    return notes.setdefault(note, letter if not many else chr(ord("a") + many - 1) + letter)


def note_of(one: Published, variant: Variant, table: Table) -> str:
    """Where a published ratio comes from, and what is wrong or particular about it."""
    parts = [f"published: {one.publication}, {one.source}"]
    if one.same:
        unit, factor = next(
            ((n, f) for n, f in SCALES[table.unit] if one.host_value >= f), SCALES[table.unit][-1]
        )
        values = f"{one.overlay_value / factor:.3g} of {one.host_value / factor:.3g} {unit}"
        parts.append(f"=: {values} is within one step of the tool")
    if not one.comparable:
        parts.append(
            f"{name_of(variant, False)} kept {digits(one.ratio)} there, at another overlay MTU than here"
        )
    return "; ".join([*parts, *one.notes])


def under(table: Table) -> Iterable[str]:
    """What qualifies one table."""
    largest = max((r.median for r in table.rows if r.median), default=0.0)
    if table.step is not None and largest and table.step > WORTH_SAYING * largest:
        unit, factor = unit_of(table)
        yield f"The tool's step is {table.step / factor:.3g} {unit}: what differs by less does not differ."
    yield from _tails(table)
    left_out: dict[int, list[str]] = {}
    for row in table.rows:
        if row.left_out and not row.variant.is_baseline:
            left_out.setdefault(row.left_out, []).append(name_of(row.variant, False))
    for count, names in left_out.items():
        blocks = (
            "1 block has no host value and is" if count == 1 else f"{count} blocks have no host value and are"
        )
        yield f"{blocks} not in the ratio of {', '.join(names)}."


def _tails(table: Table) -> Iterable[str]:
    """What a median hides: the 99th percentiles of single trials, which nothing is computed over."""
    unit, number = numbers(table)
    told = []
    for row in table.rows:
        if row.tail:
            printed = span(number(row.tail.low), number(row.tail.high))
            told.append(f"{name_of(row.variant, False)} {printed}")
    if told:
        one = (
            ""
            if all(row.tail is None or row.tail.trials == 1 for row in table.rows)
            else ", least to largest"
        )
        yield f"p99 of each trial's own messages{one}, in {unit}: {', '.join(told)}."


def footer(whole: Report, notes: dict[str, str], final: bool = True) -> Iterable[str]:
    """What qualifies the whole run: trials without a value, checks, evidence, the notes, how to read the columns."""
    record = whole.run.record
    for status, reasons in (("failed", whole.failed), ("void", whole.void)):
        total = sum(count for _, count in reasons)
        if total:
            yield f"{total} {'trial' if total == 1 else 'trials'} {status}, not in the table:"
            for reason, count in reasons:
                yield f"   {count} × {reason}"
    if whole.checks:
        yield f"Profile {record.profile}, sent by one node and counted at the other:"
        yield from (f"   {checks.line(check)}" for check in whole.checks)
    yield from _evidence(whole)
    yield from (f"{mark}  {text}." for text, mark in notes.items())
    if whole.tables:
        several = any(row.n > 1 for table in whole.tables for row in table.rows)
        ratio = "; the ratio to the host is the median of each block's own" if ratios(whole.tables) else ""
        yield f"n: blocks with a value. Median{' and min–max are' if several else ' is'} over blocks{ratio}."
        yield from sentences(whole.tables, whole.rules, final)
    if any(r.theory for t in whole.tables for r in t.rows if not r.variant.is_baseline):
        yield "headers: the ratio to the host if encapsulation cost nothing but its bytes."
    caveat = ACCELERATORS[record.accelerator].caveat
    if whole.tables and caveat:
        yield caveat


def _evidence(whole: Report) -> Iterable[str]:
    """How much of the proof held, by kind; and whose did not, with the variant."""
    total: dict[str, list[int]] = {}
    for (_, kind), counts in whole.evidence.items():
        total[kind] = [a + b for a, b in zip(total.get(kind, (0, 0)), counts, strict=True)]
    if total:
        yield (
            "Evidence that held: " + ", ".join(f"{k} {h} of {n}" for k, (h, n) in sorted(total.items())) + "."
        )
    for (variant, kind), (held, taken) in whole.evidence.items():
        if held < taken:
            yield f"   {name_of(variant, False)}: {kind} did not hold {taken - held} of {taken} times."


def runs_table(store: Store, only: Collection[str] | None = None) -> Grid:
    """All runs, or only these ids, newest first."""
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for title in ("run", "state", "trials"):
        grid.add_column(title, no_wrap=True, justify="right" if title == "trials" else "left")
    grid.add_column("suite, cluster, profile, CPU: overlays", overflow="fold")
    with explained(store.path):
        rows = store.db.execute("SELECT * FROM run ORDER BY created_at DESC, run_id DESC").fetchall()
    for row in rows:
        if only is not None and row["run_id"] not in only:
            continue
        overlays = dict.fromkeys(v["overlay"] for v in json.loads(row["variants"]))
        # A run that PRECISION ended early has taken what it needed of its plan.
        trials = f"{row['trials_ok']} of {row['trials_done' if row['state'] == 'done' else 'trials_planned']}"
        if not row["trials_planned"]:
            trials = _checks_of(store, row["run_id"])
        about = ", ".join(row[n] for n in ("suite", "cluster", "profile", "accelerator"))
        if row["origin"] != "measured":
            about = f"imported {json.loads(row['arguments']).get('file', 'file')}, {row['accelerator']}"
        grid.add_row(row["run_id"], row["state"], trials, f"{about}: {' '.join(overlays)}")
    return grid


def _checks_of(store: Store, run_id: str) -> str:
    """``19 of 21 checks``: of a run that is nothing but checks of its profile, those that passed."""
    (passed, total) = store.db.execute(
        "SELECT count(*) FILTER (WHERE verdict = 'pass'), count(*) FROM profile_check WHERE run_id = ?",
        (run_id,),
    ).fetchone()
    return f"{passed} of {total} checks"
