"""Accelerators, metrics, measures and what tools are: one home each, in core and in the tools' files; others are held to it here."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.measures import MEASURES, OF_CYCLE
from overlaylab.core.metrics import COMPARED_UNITS, COSTS, GOODPUT, LATENCY, METRICS, UNITS
from overlaylab.core.paths import DRILLS, ROOT, VIEWER
from overlaylab.report import checks
from overlaylab.store import database
from overlaylab.tools import base

TERMS = VIEWER / "src" / "contract" / "terms.ts"
HEAD = """\
/** Written from provision/src/overlaylab by `./task test:unit -- -k viewer_terms --update-golden`: change it there. */
"""


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A new database, with every migration."""
    opened = database.open_database(tmp_path / "lab.sqlite", create=True)
    yield opened
    opened.close()


def checked(db: sqlite3.Connection, table: str, column: str) -> set[str]:
    """What the CHECK of a column lets through."""
    (sql,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    (words,) = re.findall(rf"CHECK \({column} IN \(([^)]*)\)\)", sql)
    return set(re.findall(r"'([^']*)'", words))


def test_the_database_takes_the_accelerators_units_and_directions_that_there_are(db) -> None:
    assert checked(db, "_run", "accelerator") == set(ACCELERATORS)
    assert checked(db, "metric", "unit") == set(UNITS)
    assert checked(db, "metric", "better") == {metric.better for metric in METRICS.values()}


def test_the_migrations_hold_every_metric_as_it_is(db) -> None:
    rows = db.execute("SELECT name, unit, better, description, metric_id FROM metric ORDER BY metric_id")
    ordered = sorted(METRICS.values(), key=lambda metric: metric.order or 0)
    assert [tuple(row) for row in rows] == [
        (metric.name, metric.unit, metric.better, metric.description, metric.order) for metric in ordered
    ]
    assert {metric.unit for metric in METRICS.values()} <= set(UNITS)


def test_the_migrations_hold_every_measure_as_it_is(db) -> None:
    rows = db.execute(
        "SELECT name, unit, better, description, measure_id, of FROM measure ORDER BY measure_id"
    )
    assert [tuple(row) for row in rows] == [
        (one.name, one.unit, one.better, one.description, one.order, one.of) for one in MEASURES.values()
    ]
    assert checked(db, "measure", "unit") == {one.unit for one in MEASURES.values()}


def test_a_stored_cycle_has_a_value_of_each_measure(db) -> None:
    columns = db.execute("SELECT name FROM pragma_table_info('_attempt_cycle') WHERE type = 'REAL'")
    assert [row["name"] for row in columns] == ["t", *OF_CYCLE]
    (view,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'attempt_value'").fetchone()
    assert re.findall(r"WHEN '(\w+)' THEN c\.(\w+)", view) == [(name, name) for name in OF_CYCLE]


def test_a_drill_may_probe_every_measure() -> None:
    schema = json.loads((DRILLS / "schema.json").read_text(encoding="utf-8"))
    assert schema["properties"]["probes"]["items"]["properties"]["measure"]["enum"] == list(MEASURES)


def test_every_unit_has_words_for_people() -> None:
    assert set(checks.UNITS) == set(UNITS)


@pytest.mark.parametrize(
    "page",
    ["docs/architecture.md", "docs/results.md", "docs/ssh-hosts.md", "db/README.md", "db/Taskfile.yml"],
)
def test_pages_that_list_accelerators_list_all(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [name for name in ACCELERATORS if not re.search(rf"\b{name}\b", text)] == []


def test_queries_that_list_latencies_list_all() -> None:
    latencies = {name for name in METRICS if name.startswith(LATENCY)}
    lists = [
        (file.name, set(re.findall(r"'([^']*)'", words)))
        for file in sorted((VIEWER / "src").rglob("*.sql"))
        for words in re.findall(r"metric IN \(([^)]*)\)", file.read_text(encoding="utf-8"))
    ]
    assert len(lists) > 4
    assert [(name, found) for name, found in lists if not found <= set(METRICS)] == []
    assert [(name, found) for name, found in lists if found & latencies and found != latencies] == []


def test_what_trials_cost_is_in_words_of_its_own() -> None:
    assert {"packet_rate", "steal", "cpu_per_gigabyte", "machine_cpu_per_transaction"} < COSTS
    assert GOODPUT not in COSTS


def exported(about: str, name: str, of: Mapping[str, str]) -> str:
    """A constant of TypeScript. of: {key: value, as TypeScript}."""
    plain = {key if key.isidentifier() else json.dumps(key): value for key, value in of.items()}
    rows = "".join(f"  {key}: {value},\n" for key, value in plain.items())
    return f"\n/** {about} */\nexport const {name} = {{\n{rows}}} as const;\n"


def test_viewer_terms_are_those_of_the_lab(golden) -> None:
    latencies = {name: base.load(name) for name in base.names() if base.load(name).latency_is}
    golden(
        TERMS,
        HEAD
        + exported(
            "How the nodes' CPUs ran, as somebody would say it.",
            "ACCELERATORS",
            {name: json.dumps(one.nodes) for name, one in ACCELERATORS.items()},
        )
        + "\n/** Units whose ratio to the host means something; a count or a loss may be zero on the host. */\n"
        + f"export const COMPARED_UNITS: readonly string[] = {json.dumps(COMPARED_UNITS)};\n"
        + f"\nexport const GOODPUT = {json.dumps(GOODPUT)};\n"
        + f'/** What the names of all latencies begin with. */\nexport const LATENCY = "{LATENCY}";\n'
        + exported(
            "Metrics with their units.",
            "METRICS",
            {one.name: f"{{ unit: {json.dumps(one.unit)} }}" for one in base.metrics().values()},
        )
        + exported(
            "What a drill's prober measures of the service in each of its cycles.",
            "MEASURES",
            {
                one.name: f"{{ unit: {json.dumps(one.unit)}, better: {json.dumps(one.better)} }}"
                for one in OF_CYCLE.values()
            },
        )
        + exported(
            "Tools that measure a latency: whether they ask again only once they were answered.",
            "LOOPS",
            {name: '"closed"' if tool.closed_loop else '"open"' for name, tool in latencies.items()},
        ),
    )
