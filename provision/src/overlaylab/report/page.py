"""Runs as one HTML file that needs neither network nor scripts: tables, plots, and where the numbers come from.

The tables and what qualifies them are those that ``report.table`` prints; here they get plots and provenance.
Whatever is text in the database may come from anybody: the template escapes all of it (`environment`), and the
page's policy forbids to load or to run anything.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import jinja2
from markupsafe import Markup
from rich.table import Table as Grid
from rich.text import Text

from overlaylab.core import progress
from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.model import Variant
from overlaylab.report import grid_table
from overlaylab.report import plot as results_plot
from overlaylab.report.plot import Plot
from overlaylab.report.table import footer, grid_of, heading, no_value, title_of, under
from overlaylab.results import grid as results_grid
from overlaylab.results.grid import Tier, grids
from overlaylab.results.results import HeaderBytes, Report, header_bytes, report
from overlaylab.results.rows import Table, name_of
from overlaylab.store import database
from overlaylab.store.database_errors import explained
from overlaylab.store.store import Store

if TYPE_CHECKING:  # it imports all that measuring takes
    from overlaylab.results.tiers import Group

# Tables from which on the page has a list of them.
MANY = 9
# Characters of a cell from which on it may be broken.
LONG = 40
# Overlays that stand side by side in the table of several tiers.
ABREAST = 6
# Characters of one text, and of one in a table or a title, that are shown; how many there are is said where it has more.
LONGEST, NAME = 500, 160


@dataclass(frozen=True)
class Cells:
    """A table as text. left: columns that stand to the left."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: frozenset[int]

    def side(self, column: int) -> Markup:
        """The attribute class of this column's cells; names of overlays may be of any length."""
        longest = max((len(cells[column]) for cells in (self.headers, *self.rows)), default=0)
        names = ["left"] if column in self.left else []
        names += ["long"] if longest > LONG else []
        return Markup(f' class="{" ".join(names)}"' if names else "")


@dataclass(frozen=True)
class Section:
    """One metric: its table, in several pieces where it would be too wide, with its drawing. name: for the contents."""

    name: str
    title: str
    grids: tuple[Cells, ...]
    under: tuple[str, ...]
    plot: Plot | None


@dataclass(frozen=True)
class Page:
    """One run, or a group of tiers. lines, below: what stands above and under its tables; provenance: (name, values)."""

    run_id: str
    lines: tuple[str, ...]
    sections: tuple[Section, ...]
    below: tuple[str, ...]
    provenance: tuple[tuple[str, tuple[str, ...]], ...]
    no_value: str = "No trial has given a value yet."


def write(
    store: Store,
    run_ids: Sequence[str],
    out: TextIO,
    group: Group | None = None,
    headers: HeaderBytes = header_bytes,
) -> None:
    """The page of these runs, one after the other; their group's first, where there is one. Raises UserError."""
    pages = [group_page(store, group, headers)] if group else []
    pages += [page(store, run_id, headers) for run_id in run_ids]
    contents = sum(len(page.sections) for page in pages) >= MANY
    made = database.now().replace("T", " ")[:16] + " UTC"
    template = environment().get_template("results.html.j2")
    for part in template.generate(pages=pages, runs=len(run_ids), made=made, contents=contents):
        out.write(part)


def environment() -> jinja2.Environment:
    """Every value is made harmless by `shown`, then escaped; a name that the template mistypes is an error."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        finalize=shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def shown(value: object) -> object:
    """Text of bearable length with nothing invisible in it; as it is what is no text, or a path of numbers (`safe`)."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return progress.visible(shortened(value, LONGEST))


def shortened(text: str, most: int = NAME) -> str:
    """No more than so many characters of it, and how many it has."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters)"


def page(store: Store, run_id: str, headers: HeaderBytes = header_bytes) -> Page:
    """Everything that is said about one run, as text. Raises UserError for an unknown run."""
    whole = report(store, run_id, headers)
    notes: dict[str, str] = {}
    final = whole.run.state == "done"
    sections = tuple(_section(table, notes, final) for table in whole.tables)
    return Page(
        run_id=whole.run.run_id,
        lines=tuple(line.plain for line in heading(whole, None)),
        sections=sections,
        below=tuple(footer(whole, notes, final)),
        provenance=tuple((name, tuple(values)) for name, values in _provenance(store, whole)),
        no_value=no_value(whole) if whole.run.trials_planned else "A run of checks alone.",
    )


def group_page(store: Store, group: Group, headers: HeaderBytes = header_bytes) -> Page:
    """The table tier × overlay. Raises UserError."""
    tiers = [Tier(name, report(store, run, headers) if run else None) for name, run in group.run_ids]
    notes: dict[str, str] = {}
    found = grids(tiers)
    sections = []
    for grid in found:
        pieces = [
            _cells(grid_table.printed_of(grid, part, notes, narrow=False)) for part in _pieces(grid.variants)
        ]
        title = shortened(grid_table.title_of(grid).plain)
        sections.append(Section(_name(grid), title, tuple(pieces), (), None))
    return Page(
        run_id=group.group,
        lines=tuple(line.plain for line in grid_table.heading(group, tiers)),
        sections=tuple(sections),
        below=tuple(grid_table.footer(tiers, found, notes)),
        provenance=(),
    )


def _section(table: Table, notes: dict[str, str], final: bool) -> Section:
    return Section(
        name=_name(table),
        title=shortened(title_of(table).plain),
        grids=(_cells(grid_of(table, notes, False, final)),),
        under=tuple(under(table)),
        plot=results_plot.plot(table, final),
    )


def _name(table: Table | results_grid.Grid) -> str:
    where = "" if table.where is None else f" ({table.where})"
    return shortened(f"{table.benchmark}{where}: {table.metric}")


def _pieces(variants: Sequence[Variant]) -> list[Sequence[Variant]]:
    """As many abreast as fit, the pieces of much the same width."""
    count = max(1, math.ceil(len(variants) / ABREAST))
    each = max(1, math.ceil(len(variants) / count))
    return [variants[i : i + each] for i in range(0, len(variants), each)] or [()]


def _cells(printed: Grid) -> Cells:
    """A table for the terminal as one for the page."""
    headers = tuple(_plain(column.header) for column in printed.columns)
    left = frozenset(i for i, column in enumerate(printed.columns) if column.justify == "left")
    return Cells(headers, tuple(_rows(printed)), left)


def _rows(grid: Grid) -> Iterator[tuple[str, ...]]:
    for cells in zip(*(column.cells for column in grid.columns), strict=True):
        yield tuple(map(_plain, cells))


def _plain(cell: object) -> str:
    return shortened(cell.plain if isinstance(cell, Text) else str(cell))


def _provenance(store: Store, whole: Report) -> Iterator[tuple[str, list[str]]]:
    """(name, values); what is not known is left out."""
    run, record = whole.run, whole.run.record
    tier = record.stands_for
    stands_for = "" if tier is None else f", stands for {' '.join(v for v in tier.values() if v)}"
    facts: list[tuple[str, list[object]]] = [
        ("run", [run.run_id]),
        ("overlaylab", [record.lab_version]),
        ("system", [record.system]),
        ("node kit", [record.kit]),
        ("origin", [record.origin]),
        ("state", [run.state]),
        ("planned, first begun, ended (UTC)", [run.created_at, run.started_at, run.ended_at]),
        ("trials", [f"{run.trials_done} of {run.trials_planned} finished"]),
        ("machine", [record.machine]),
        ("provider", [record.provider]),
        ("accelerator", [f"{record.accelerator}: {ACCELERATORS[record.accelerator].words}"]),
        ("image", [record.image]),
        ("cluster", [record.cluster]),
        ("nodes", [f"{name}, zone {zone}" for name, zone in record.zones.items()]),
        ("profile", [record.profile + stands_for, record.profile_digest]),
        ("suite", [record.suite, record.suite_digest]),
        ("scale", [f"{record.scale:g}"]),
        ("seed of the order", [record.seed if record.origin == "measured" else None]),
        ("blocks planned", [record.blocks]),
        ("overlays and modes", [name_of(variant, False) for variant in record.variants]),
        *_versions(store, run.run_id),
        ("roles", [f"{overlay} {digest}" for overlay, digest in record.role_digests.items()]),
        (
            "arguments",
            [f"{name}={_argument(value)}" for name, value in record.arguments.items() if value is not None],
        ),
        ("schema of the database", [store.db.execute("PRAGMA user_version").fetchone()[0]]),
    ]
    for name, values in facts:
        known = [str(value) for value in values if value is not None]
        if known:
            yield name, known


def _argument(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _versions(store: Store, run_id: str) -> Iterator[tuple[str, list[object]]]:
    """What the trials themselves noted: tools, overlays, MTUs in bytes."""
    with explained(store.path):
        rows = store.db.execute(
            "SELECT DISTINCT tool, tool_version, overlay, mode, encrypted, overlay_version, overlay_mtu, underlay_mtu"
            " FROM trial WHERE run_id = ? AND status IN ('ok', 'failed', 'void')",
            (run_id,),
        ).fetchall()
    yield "tools", _distinct(f"{r['tool']}: {r['tool_version']}" for r in rows if r["tool_version"])
    yield (
        "versions of overlays",
        _distinct(f"{r['overlay']} {r['overlay_version']}" for r in rows if r["overlay_version"]),
    )
    yield (
        "MTU of overlays, bytes",
        _distinct(
            f"{name_of(Variant(r['overlay'], r['mode'], bool(r['encrypted'])), False)}: {r['overlay_mtu']}"
            for r in rows
            if r["overlay_mtu"]
        ),
    )
    yield "MTU of the underlay, bytes", _distinct(r["underlay_mtu"] for r in rows if r["underlay_mtu"])


def _distinct(values: Iterator[object]) -> list[object]:
    return list(dict.fromkeys(values))
