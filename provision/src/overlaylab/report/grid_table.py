"""What a person reads of several tiers: tier × overlay, as the publications print theirs, and what qualifies it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table as Printed
from rich.text import Text

from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.model import Variant
from overlaylab.report.table import SCALES, mark_of, note_of, scaled, span
from overlaylab.report.verdicts_table import MISSING, around, confidence, digits
from overlaylab.results.grid import Grid, Line, Tier, differences, grids
from overlaylab.results.results import HeaderBytes, header_bytes, report
from overlaylab.results.rows import Row, Table, name_of
from overlaylab.store.store import Store

if TYPE_CHECKING:  # it imports all that measuring takes
    from overlaylab.results.tiers import Group

STATES = {"planned": "not begun", "failed": "ended with an error"}


def show(store: Store, group: Group, console: Console, headers: HeaderBytes = header_bytes) -> None:
    """Print the group's grids. Raises UserError."""
    tiers = [Tier(name, report(store, run, headers) if run else None) for name, run in group.run_ids]
    for line in heading(group, tiers):
        console.print(line)
    notes: dict[str, str] = {}
    found = grids(tiers)
    for grid in found:
        console.print()
        console.print(title_of(grid))
        for printed in _fitting(grid, notes, console):
            console.print(printed)
    if not found:
        console.print(Text("No trial has given a value yet."))
    console.print()
    for words in footer(tiers, found, notes):
        console.print(Text(words))


def heading(group: Group, tiers: Sequence[Tier]) -> Iterable[Text]:
    """What was measured on what, and whether that is all."""
    first = next(tier.report.run.record for tier in tiers if tier.report)
    count = f"{len(tiers)} tier{'' if len(tiers) == 1 else 's'}"
    yield Text(f"{first.suite} on {first.cluster}, {count}", "bold")
    yield Text(f"Group {group.group} · {first.machine} · {first.provider}")
    yield Text(f"CPU of the nodes: {ACCELERATORS[first.accelerator].words}")
    if first.scale != 1:
        yield Text(scaled(first.scale))
    done = sum(tier.is_done for tier in tiers)
    if done < len(tiers):
        yield Text(f"Unfinished, {done} of {count}: ./task lab:resume completes it.", "yellow")


def title_of(grid: Grid) -> Text:
    """Benchmark, metric, unit, direction, tools."""
    where = "" if grid.where is None else f" ({grid.where})"
    unit = _unit(grid)[0]
    metric = f"{grid.metric}, {unit}" if unit else grid.metric
    text = Text(grid.benchmark, "bold")
    text.append(f"{where}: {metric}, {grid.better} is better ({', '.join(grid.tools)})", "not bold")
    return text


def _fitting(grid: Grid, notes: dict[str, str], console: Console) -> list[Printed]:
    """The grid in one piece where it fits, with narrower cells where not, and else with fewer overlays each."""
    unbounded = console.options.update(width=1000)

    def fits(printed: Printed) -> bool:
        return console.measure(printed, options=unbounded).maximum <= console.width

    whole = printed_of(grid, grid.variants, notes, narrow=False)
    if fits(whole):
        return [whole]
    for each in range(len(grid.variants), 1, -1):
        parts = [grid.variants[i : i + each] for i in range(0, len(grid.variants), each)]
        pieces = [printed_of(grid, part, notes, narrow=True) for part in parts]
        if all(map(fits, pieces)):
            return pieces
    return [printed_of(grid, (variant,), notes, narrow=True) for variant in grid.variants] or [whole]


def printed_of(grid: Grid, variants: Sequence[Variant], notes: dict[str, str], narrow: bool) -> Printed:
    """The grid of these overlays; notes, letter by letter, is added to. narrow: ranges get lines of their own."""
    printed = Printed(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    printed.add_column("tier", no_wrap=True)
    if grid.host is not None:
        printed.add_column("host", justify="right", no_wrap=True)
    if grid.compared:
        printed.add_column("", style="dim", no_wrap=True)
    for variant in variants:
        name = name_of(variant, False)
        printed.add_column(name.replace(" ", "\n") if narrow else name, justify="right", no_wrap=True)
    for line in grid.lines:
        _add(printed, grid, line, variants, notes, narrow)
    return printed


def _add(
    printed: Printed, grid: Grid, line: Line, variants: Sequence[Variant], notes: dict[str, str], narrow: bool
) -> None:
    """A tier's lines: what was measured, then what it is to be held against."""
    rows = [line.row(variant) for variant in variants]
    columns: dict[str, list[str]] = {}
    if grid.compared:
        columns["ratio"] = [_ratio(row, narrow, line.tier.is_done) for row in rows]
        if narrow and any(row and row.ratio and row.ratio.n > 1 for row in rows):
            columns["min–max"] = [_range(row) for row in rows]
        if any(row and row.theory for row in rows):
            columns["headers"] = [_theory(row) for row in rows]
        if any(row and row.published for row in rows):
            columns["published"] = [_published(row, line.table, notes) for row in rows]
    else:
        columns[""] = [_absolute(grid, row) for row in rows]
    names = [Text(line.tier.profile), *([Text(state, "yellow")] if (state := _state(line.tier)) else [])]
    host = line.row(grid.host) if grid.host else None
    for number in range(max(len(columns), len(names))):
        label, values = list(columns.items())[number] if number < len(columns) else ("", [""] * len(rows))
        cells: list[Text | str] = [names[number] if number < len(names) else ""]
        if grid.host is not None:
            alone = not grid.compared
            told = _absolute(grid, host) if alone else _number(grid, host.median if host else None)
            cells.append(told if number == 0 else "")
        if grid.compared:
            cells.append(label)
        style = None if label in ("ratio", "") else "dim"
        printed.add_row(*cells, *(Text(value, style or "") for value in values))


def _state(tier: Tier) -> str:
    """A word or two for a tier that is not measured to its end; nothing for one that is."""
    if tier.report is None:
        return "no run yet"
    run = tier.report.run
    if tier.is_done:
        return ""
    if tier.failed_checks and not run.trials_done:
        return "check failed"
    return STATES.get(run.state, f"block {tier.report.blocks_done} of {run.record.blocks}")


def _unit(grid: Grid) -> tuple[str, float]:
    """The unit to print in, and how much of the base unit it is: the slowest tier keeps its digits."""
    names = SCALES.get(grid.unit, ((grid.unit if grid.unit != "1" else "", 1.0),))
    rows = [row for line in grid.lines if line.table for row in line.table.rows]
    medians = [row.median for row in rows if row.median and row.variant == grid.host]
    medians = medians or [row.median for row in rows if row.median]
    if not medians:
        return names[-1]
    return next(((n, f) for n, f in names if min(map(abs, medians)) >= f), names[-1])


def _number(grid: Grid, value: float | None) -> str:
    """A value with three digits that matter or more; tiers differ by orders of magnitude."""
    if value is None:
        return MISSING
    scaled = value / _unit(grid)[1]
    if grid.unit == "1" or not scaled:
        return f"{scaled:g}"
    return f"{scaled:.{min(3, max(0, 2 - math.floor(math.log10(abs(scaled)))))}f}"


def _absolute(grid: Grid, row: Row | None) -> str:
    if row is None or row.median is None:
        return MISSING
    low, high = _number(grid, row.low), _number(grid, row.high)
    return _number(grid, row.median) + (f" ({span(low, high)})" if low != high else "")


def _ratio(row: Row | None, narrow: bool, final: bool) -> str:
    if row is None or row.ratio is None:
        return MISSING
    if row.ratio.same:
        return "=" if narrow else "= (within one step)"
    return digits(row.ratio.median) + ("" if narrow else around(row.ratio, final))


def _range(row: Row | None) -> str:
    if row is None or row.ratio is None or row.ratio.same or row.ratio.n < 2:
        return MISSING
    return span(digits(row.ratio.low), digits(row.ratio.high))


def _theory(row: Row | None) -> str:
    return MISSING if row is None or row.theory is None else digits(row.theory)


def _published(row: Row | None, table: Table | None, notes: dict[str, str]) -> str:
    """Ratio and letter; ``– b`` where what was published is another overlay MTU's, as note b says."""
    if row is None or table is None:
        return MISSING
    cells = []
    for one in row.published:
        mark = mark_of(note_of(one, row.variant, table), notes)
        cells.append(f"{('=' if one.same else digits(one.ratio)) if one.comparable else MISSING} {mark}")
    return ", ".join(cells) or MISSING


def footer(tiers: Sequence[Tier], found: Sequence[Grid], notes: dict[str, str]) -> Iterable[str]:
    """The runs, what differs between them, the notes, how to read it."""
    width = max(len(tier.profile) for tier in tiers)
    yield "Runs, each with a table of its own (./task results:show RUN=id):"
    for tier in tiers:
        yield f"   {tier.profile:{width}}  {_run_line(tier)}"
    for profile, words in differences(tiers):
        yield f"{profile} was measured with {words}: these two rows cannot be compared."
    yield from (f"{mark}  {text}." for text, mark in notes.items())
    if any(grid.compared for grid in found):
        yield (
            "host: median over blocks. ratio: to the host of the same block and tier, median over blocks; (a–b): where "
            f"that lies with {confidence()} or more; [a–b]: min–max, where nothing is claimed. –: no value. Verdicts: "
            "each tier's own table."
        )
    if any(
        row.theory for grid in found for line in grid.lines for row in map(line.row, grid.variants) if row
    ):
        yield "headers: the ratio if encapsulation cost nothing but its bytes."
    if notes:
        yield "published: the ratio that was published for the tier that the profile stands for."
    used = dict.fromkeys(tier.report.run.record.accelerator for tier in tiers if tier.report)
    yield from (caveat for name in used if (caveat := ACCELERATORS[name].caveat))


def _run_line(tier: Tier) -> str:
    if tier.report is None:
        return "no run yet"
    run = tier.report.run
    parts = [run.state]
    if not tier.is_done:
        parts.append(f"{run.trials_done} of {run.trials_planned} trials")
    if tier.failed_checks:
        parts.append(f"the profile failed its check ({', '.join(tier.failed_checks)})")
    for status, reasons in (("failed", tier.report.failed), ("void", tier.report.void)):
        if count := sum(number for _, number in reasons):
            parts.append(f"{count} {'trial' if count == 1 else 'trials'} {status}")
    return f"{run.run_id}  {', '.join(parts)}"
