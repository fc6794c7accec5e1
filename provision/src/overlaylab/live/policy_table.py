"""What lab:policy prints: whether rules stop and pass traffic, and what they cost, with how often that was seen."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table as Grid

from overlaylab.core.model import Variant
from overlaylab.live.policy_lab import RULES, benchmark_name
from overlaylab.report.table import span
from overlaylab.report.verdicts_table import MISSING, digits
from overlaylab.run.runner import readable_value
from overlaylab.stats import inference
from overlaylab.store.database_errors import explained
from overlaylab.store.store import Store


@dataclass(frozen=True)
class Cost:
    """One metric of one benchmark: (value with the rules, value without) of every block that has both."""

    variant: Variant
    benchmark: str
    metric: str
    blocks: tuple[tuple[float, float], ...]

    @property
    def ratio(self) -> float:
        """Median over blocks of with over without."""
        return statistics.median(own / base for own, base in self.blocks)

    def span(self) -> tuple[float, float, bool]:
        """(low, high, whether they are an interval of the median): else the least and the largest ratio."""
        interval = inference.median_ratio(self.blocks)
        if interval:
            return interval.low, interval.high, True
        ratios = [own / base for own, base in self.blocks]
        return min(ratios), max(ratios), False


def costs(store: Store, run_id: str) -> list[Cost]:
    """What the run measured, in the order of its plan. A benchmark without a whole pair of trials is left out."""
    with explained(store.path):
        rows = store.db.execute(
            "SELECT t.overlay, t.mode, t.encrypted, t.benchmark, t.parameters, t.block, s.metric, s.value"
            " FROM trial_summary AS s JOIN trial AS t USING (trial_id)"
            " WHERE s.run_id = ? AND s.metric IN ('goodput', 'latency_one_way', 'latency_rtt')"
            " ORDER BY t.trial_id",
            (run_id,),
        ).fetchall()
    found: dict[tuple[Variant, str, str], dict[int, dict[int, float]]] = {}
    for row in rows:
        rules = json.loads(row["parameters"])[RULES]
        variant = Variant(row["overlay"], row["mode"], bool(row["encrypted"]))
        plain = row["benchmark"].removesuffix(benchmark_name("", rules)) if rules else row["benchmark"]
        blocks = found.setdefault((variant, plain, row["metric"]), {})
        blocks.setdefault(row["block"], {})[rules] = row["value"]
    return [Cost(*key, pairs) for key, blocks in found.items() if (pairs := tuple(_pairs(blocks)))]


def _pairs(blocks: Mapping[int, Mapping[int, float]]) -> Iterable[tuple[float, float]]:
    for values in blocks.values():
        if len(values) == 2:
            yield values[max(values)], values[0]


def show(store: Store, run_id: str, rules: int, out: Console) -> None:
    """Print the run."""
    found = costs(store, run_id)
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for title in ("overlay mode", "benchmark", "metric"):
        grid.add_column(title)
    for title in ("n", "no policy", f"{rules} rules", f"{rules} rules to none"):
        grid.add_column(title, justify="right")
    certain = True
    for cost in found:
        low, high, holds = cost.span()
        certain = certain and holds
        median = [statistics.median(pair[side] for pair in cost.blocks) for side in (1, 0)]
        grid.add_row(
            str(cost.variant),
            cost.benchmark,
            cost.metric,
            str(len(cost.blocks)),
            *(readable_value(cost.metric, value) for value in median),
            f"{digits(cost.ratio)} ({span(digits(low), digits(high))})",
        )
    out.print()
    if found:
        out.print(grid)
        bounds = "the interval that holds it 95 % of the time" if certain else "the least and the largest"
        out.print(
            f"Medians over n blocks; the ratio is of the same block's two values, in brackets {bounds}."
        )
        out.print(
            "Rules are asked for a connection's first packet only: what is established passes by them, so that "
            "they cost in tcp-connect."
        )
    else:
        out.print(f"No benchmark has a value with and one without rules: {MISSING}")
    out.print(f"./task results:show RUN={run_id} prints every series.", markup=False)
