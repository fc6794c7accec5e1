"""What overlaylab says of two runs, for the viewer, which computes it anew because its runs may be of two files.

The viewer's golden/two-runs.json is written by `pytest --update-golden`; a test here and one there hold both to it.
The runs are invented, and read from their databases by the viewer's own questions.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fixtures" / "results"))
import maker

from overlaylab.core.model import Sample
from overlaylab.core.paths import ROOT
from overlaylab.report import comparison
from overlaylab.results.compare import changed, compare, hindrances
from overlaylab.results.results import Report, report
from overlaylab.stats.inference import ALPHA
from overlaylab.stats.samples import Known, shift
from overlaylab.store.store import Store

FEATURE = ROOT / "viewer/src/renderer/features/runs"
GOLDEN = FEATURE / "test/golden/two-runs.json"
QUERIES = FEATURE / "queries"
HOST, FASTDP, SLEEVE = maker.HOST, maker.FASTDP, maker.SLEEVE
Values = dict[Any, Sequence[float | None]]


def rounded(value: Any) -> Any:
    """To 12 digits: logarithms differ in the last ones from machine to machine."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value


# -- series of any kind -----------------------------------------------------------------------------


def series(n: int, centre: float, seed: int, step: float) -> list[Known]:
    chance = random.Random(seed)
    middles = [round(chance.gauss(centre, 0.1), 6) for _ in range(n)]
    return [Known(value - step, value, value + step) for value in middles]


def shifts() -> list[dict[str, Any]]:
    found = []
    for m, n, alpha, step in (
        (6, 6, ALPHA, 0.0), (5, 9, ALPHA, 0.0), (7, 12, ALPHA, 0.01), (6, 6, ALPHA / 6, 0.0), (7, 7, ALPHA / 9, 0.0),
        (10, 30, ALPHA, 0.0), (25, 25, ALPHA / 3, 0.001), (100, 100, ALPHA, 0.0), (120, 110, ALPHA, 0.0),
    ):  # fmt: skip
        first, second = series(m, 0.0, m * 1000 + n, step), series(n, 0.1, n * 1000 + m + 1, step)
        moved = shift(first, second, alpha)
        found.append({"alpha": alpha, "first": first, "second": second, "expected": asdict(moved)})
    return found


# -- runs -------------------------------------------------------------------------------------------


def measured(store: Store, values: Values, metric: str, **changes: Any) -> str:
    """A run of one benchmark: values {variant: [value of block 1, …]}; None is a failed trial."""
    run = replace(maker.RUN, blocks=len(values[HOST]), variants=tuple(values), **changes)
    found = {}
    for trial in maker.plan(run, [maker.TCP]):
        value = values[trial.variant][trial.block - 1]
        usual = maker.result(trial, random.Random(1))
        sample = Sample(metric, value or 0.0, resolution=262144.0 if metric == "goodput" else None)
        found[trial.block, trial.variant, trial.benchmark] = (
            maker.failed("no server") if value is None else replace(usual, samples=(sample,))
        )
    run_id = maker.fill(store, run, benchmarks=[maker.TCP], results=found)
    comparison.refresh(store, [run_id], lambda _: None)
    return run_id


def around(centre: float, n: int, seed: int, spread: float = 0.01) -> list[float]:
    chance = random.Random(seed)
    return [centre * chance.gauss(1, spread) for _ in range(n)]


def cases(store: Store) -> list[dict[str, Any]]:
    host = around(95e6, 8, 1)
    slower = {HOST: around(50e6, 8, 2), FASTDP: around(45e6, 8, 3), SLEEVE: around(15e6, 8, 4)}
    usual = {HOST: host, FASTDP: around(90e6, 8, 5), SLEEVE: around(28.5e6, 8, 6)}
    gaps = {HOST: [None, *host[1:]], FASTDP: [*usual[FASTDP][:-1], None], SLEEVE: [None] * 8}
    few = {HOST: host[:5], FASTDP: around(60e6, 5, 7), SLEEVE: around(28e6, 5, 8)}
    loss = {HOST: [0.0] * 8, FASTDP: around(0.05, 8, 9, 0.1), SLEEVE: around(0.2, 8, 10, 0.1)}
    less = {HOST: [0.0] * 8, FASTDP: around(0.051, 8, 11, 0.1), SLEEVE: around(0.1, 8, 12, 0.1)}
    slow = {HOST: [0.2e6] * 8, FASTDP: around(0.15e6, 8, 13), SLEEVE: around(0.15e6, 8, 14)}
    late = {HOST: around(1e-3, 7, 15), FASTDP: around(2e-3, 7, 16), SLEEVE: around(4e-3, 7, 17)}
    later = {HOST: around(1e-3, 12, 18), FASTDP: around(2.5e-3, 12, 19), SLEEVE: around(4e-3, 12, 20)}
    looks = {"margin": 0.05, "looks": [9, 18, 36]}
    fresh = {"role_digests": {"host": "h" * 64, "weave": "v" * 64}, "scale": 0.5, "image": "debian-0001"}
    said = (
        ("another host, slower", "goodput", usual, slower, {}, {}),
        ("gaps and a variant that gave nothing", "goodput", usual, gaps, {"scale": 0.25}, fresh),
        ("few blocks", "goodput", usual, few, {}, {}),
        ("another machine", "goodput", usual, slower, {}, {"machine": "4 cores", "accelerator": "kvm"}),
        ("looks and margins", "goodput", usual, usual, {"arguments": looks}, {"arguments": {"margin": 0.03}}),
        ("a step as large as the host", "goodput", slow, usual, {}, {}),
        ("a share", "loss", loss, less, {}, {"suite_digest": "t" * 64}),
        ("a latency", "latency_rtt", late, later, {}, {"profile_digest": "q" * 64}),
        ("nothing that arrives any more", "goodput", usual, {**usual, FASTDP: [0.0] * 8}, {}, {}),
        ("another variant", "goodput", usual, {HOST: host, FASTDP: usual[FASTDP]}, {}, {"suite": "full"}),
    )
    found = []
    for name, metric, one, other, of_one, of_other in said:
        runs = [measured(store, one, metric, **of_one), measured(store, other, metric, **of_other)]
        found.append({"name": name, **_case(store, runs)})
    return found


def _case(store: Store, runs: list[str]) -> dict[str, Any]:
    reports: list[Report] = [report(store, run, lambda _: None) for run in runs]
    records = [one.run.record for one in reports]
    margins = {one.rules.margin for one in reports}
    margin = margins.pop() if len(margins) == 1 else 0.02
    said = compare(reports[0], reports[1], margin, None)
    (table,) = said.tables
    return {
        "runs": [_asked(store, "run", run)[0] for run in runs],
        "tables": [_asked(store, "run_tables", run) for run in runs],
        "values": [_values(store, run) for run in runs],
        "expected": {
            "hindrances": hindrances(*records),
            "changed": changed(*records),
            "margin": margin,
            "shares": said.shares,
            "host": list(table.host),
            "changes": [
                {
                    "overlay": change.variant.overlay,
                    "mode": change.variant.mode,
                    "encrypted": int(change.variant.encrypted),
                    **{
                        name: asdict(change)[name]
                        for name in ("kind", "first", "second", "estimate", "interval", "word")
                    },
                }
                for change in table.changes
            ],
        },
    }


def _asked(store: Store, name: str, run: str, **more: Any) -> list[dict[str, Any]]:
    """As the viewer asks; of the run itself what it needs of it, but not its name, which is drawn by lot."""
    if name == "run":
        wanted = (
            "accelerator, machine, profile, profile_digest, provider, origin, suite, suite_digest, scale, image, cluster,"
            " role_digests, arguments, variants"
        )
        return [dict(row) for row in store.db.execute(f"SELECT {wanted} FROM run WHERE run_id = ?", (run,))]
    sql = (QUERIES / f"{name}.sql").read_text(encoding="utf-8")
    return [dict(row) for row in store.db.execute(sql, {"run": run, **more})]


def _values(store: Store, run: str) -> list[dict[str, Any]]:
    (table,) = _asked(store, "run_tables", run)
    return _asked(
        store, "run_values", run, **{name: table[name] for name in ("benchmark", "metric", "place")}
    )


def text() -> str:
    """What the golden file holds."""
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "lab.sqlite") as store:
        store.db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        found = rounded({"shifts": shifts(), "cases": cases(store)})
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")) + "\n"
