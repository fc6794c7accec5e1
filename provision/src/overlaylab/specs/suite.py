"""Suites (provision/suites): which benchmarks a run takes, with which parameters, how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from overlaylab.core import documents
from overlaylab.core.documents import Document, load_document, named
from overlaylab.core.errors import UserError
from overlaylab.core.model import JSON
from overlaylab.core.paths import SUITES
from overlaylab.tools import base

# Where suites are sought, the first folder first.
FOLDERS = [SUITES]


@dataclass(frozen=True)
class BenchmarkSpec:
    """One benchmark of a suite.

    parameters: in base units, with the tool's defaults filled in.
    repetitions: trials per block and mode that count; warmups: trials before them that do not.
    placement: ``remote`` (client and server on two nodes) or ``local`` (both on one).
    """

    name: str
    tool: str
    parameters: JSON
    repetitions: int
    warmups: int
    placement: str
    direction: str


@dataclass(frozen=True)
class Suite:
    """A named list of benchmarks. blocks: how often the whole is repeated; digest: SHA-256 in hex.

    fills_bucket: on a tier of two rates, every trial begins with a full bucket. fresh: every so many-th block's nodes
    are booted for it, unless FRESH says otherwise; 0: none's. also: ``overlay/mode`` that every block holds beside the
    host; cluster: the one that it is for.
    """

    name: str
    description: str
    blocks: int
    benchmarks: tuple[BenchmarkSpec, ...]
    fills_bucket: bool
    fresh: int
    also: tuple[str, ...]
    cluster: str
    digest: str
    # (benchmark, metric) on which verdicts hold together; None: the usual one (``results.verdicts.primary_of``).
    primary: tuple[str, str] | None
    source: Document = field(repr=False, compare=False)

    def scaled(self, scale: float) -> Suite:
        """The suite with every measured duration or count multiplied, to whole ones of at least 1.

        What a benchmark omits at its start, repetitions and blocks stay. The digest stays too: the scale is
        kept beside it. Raises UserError.
        """
        if not 0.1 <= scale <= 1000:
            raise UserError(
                "SCALE",
                "must lie between 0.1 and 1000",
                seen=f"{scale:g}",
                fix="SCALE=1 is as the suite says.",
            )
        benchmarks = (
            replace(b, parameters=base.scaled(base.load(b.tool), b.parameters, scale))
            for b in self.benchmarks
        )
        return replace(self, benchmarks=tuple(benchmarks))


def load_suite(name: str) -> Suite:
    """The suite ``<name>.yml`` of FOLDERS. Raises UserError."""
    folder = next((folder for folder in FOLDERS if name in documents.names_in(folder)), SUITES)
    return read_suite(named("suite", name, folder, "SUITE"))


def read_suite(path: Path) -> Suite:
    """A suite from any file, schema, cross-checks and the tools' own rules applied. Raises UserError."""
    document = load_document(path, SUITES / "suite.schema.json")
    benchmarks = tuple(_benchmark(document, i) for i in range(len(document.data["benchmarks"])))
    for index, benchmark in enumerate(benchmarks):
        if benchmark.name in {b.name for b in benchmarks[:index]}:
            raise document.error(
                "benchmarks",
                index,
                "name",
                rule="must be a name that no other benchmark of the suite has",
                seen=f'"{benchmark.name}"',
                fix="Results are told apart by it: give each its own.",
            )
    data = document.data
    fills = data.get("bucket", "full") == "full"
    return Suite(
        path.stem, data["description"], data["blocks"], benchmarks, fills, data.get("fresh", 0),
        tuple(data.get("also", ())), data.get("cluster", "pair"), document.digest, _primary(document, benchmarks),
        document,
    )  # fmt: skip


def _primary(document: Document, benchmarks: Sequence[BenchmarkSpec]) -> tuple[str, str] | None:
    data = document.data.get("primary")
    if data is None:
        return None
    if data["benchmark"] not in {b.name for b in benchmarks}:
        raise document.error(
            "primary",
            "benchmark",
            rule="must be the name of a benchmark of the suite",
            seen=f'"{data["benchmark"]}"',
            fix=f"There are {', '.join(b.name for b in benchmarks)}.",
        )
    return data["benchmark"], data["metric"]


def _benchmark(document: Document, index: int) -> BenchmarkSpec:
    data: Mapping[str, Any] = document.data["benchmarks"][index]
    at = ("benchmarks", index)
    try:
        tool = base.load(data["tool"])
    except UserError as wrong:
        raise document.error(*at, "tool", rule=wrong.rule, seen=wrong.seen, fix=wrong.fix) from None
    try:
        parameters = base.resolve(tool, data["parameters"])
    except base.ParameterError as wrong:
        v = wrong.violation
        raise document.error(*at, "parameters", *v.fields, rule=v.rule, seen=v.seen, fix=v.fix) from None
    if data["direction"] not in tool.directions:
        raise document.error(
            *at,
            "direction",
            rule=f"must be a direction that {tool.name} knows: {', '.join(tool.directions)}",
            seen=f'"{data["direction"]}"',
            fix="Choose another direction or another tool.",
        )
    return BenchmarkSpec(
        name=data["name"],
        tool=data["tool"],
        parameters=parameters,
        repetitions=data["repetitions"],
        warmups=data["warmups"],
        placement=data["placement"],
        direction=data["direction"],
    )
