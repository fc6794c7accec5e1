"""What a plan says of its number of blocks: what they can tell, and how many a difference of the margin takes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from overlaylab.core import paths
from overlaylab.core.model import Variant
from overlaylab.report.verdicts_table import percent
from overlaylab.results.results import report
from overlaylab.results.rows import Row, name_of
from overlaylab.run.design import comparisons_of
from overlaylab.run.experiment import Request, planning_inventory
from overlaylab.run.plan import endpoints
from overlaylab.stats.inference import MEDIAN_TAKES, POWER, blocks_needed, fewest_blocks
from overlaylab.store.database_errors import explained
from overlaylab.store.store import Store

# Runs that are looked at: older ones are another machine's, in effect.
NEWEST = 5


@dataclass(frozen=True)
class Seen:
    """One variant's ratio of the primary metric in earlier runs."""

    # Standard deviation of a block's log ratio.
    spread: float
    # How many it is from.
    blocks: int
    # The tool's, over the host's value.
    step: float


def lines(tiers: Sequence[Request], accelerator: str) -> Iterable[str]:
    """For each tier of a plan; the same for all where there is nothing to tell them apart by."""
    first = tiers[0]
    count = comparisons_of(first.variants, len(endpoints(planning_inventory(first))))
    if not count:
        return
    shares = first.rules.shares
    least, what = fewest_blocks(count, shares), f"{count} comparison{'' if count == 1 else 's'} with the host"
    if first.rules.looks:
        looks = ", ".join(map(str, first.rules.looks))
        yield (
            f"precision: ends after block {looks}, the first at which every ratio is known to "
            f"±{percent(first.rules.precision or 0)}"
        )
    yield f"verdicts: by a margin of {percent(first.rules.margin)}; {what} take {least} blocks at least"
    if first.blocks < MEDIAN_TAKES:
        yield f"   so {first.blocks} claim nothing: the table will show min–max"
    elif first.blocks < least:
        yield f"   so {first.blocks} give intervals, and no verdict"
    for request in tiers:
        where = f" on {request.profile.name}" if len(tiers) > 1 else ""
        yield f"blocks needed{where}: {_needed(request, seen(request, accelerator), count, shares)}"


def _needed(request: Request, known: dict[Variant, Seen], count: int, shares: int) -> str:
    own = {v: known[v] for v in request.variants if v in known}
    if not own:
        return (
            f"not known: no run of {request.suite.name} under {request.profile.name} was seen yet on this accelerator "
            "whose ratios show how far blocks are apart"
        )
    margin = request.rules.margin
    # A step moves both values of a ratio, so that much of the margin is never seen.
    needed = {
        v: blocks_needed(margin - 2 * s.step, s.spread, count, shares) if margin > 2 * s.step else None
        for v, s in own.items()
    }
    worst = max(own, key=lambda v: (needed[v] is None, needed[v] or 0, own[v].spread))
    found, name = own[worst], name_of(worst, False)
    unseen = [name_of(v, False) for v in request.variants if not v.is_baseline and v not in own]
    rest = f"; nothing seen yet of {', '.join(unseen)}" if unseen else ""
    if margin <= 2 * found.step:
        return f"no number tells {percent(margin)} of {name}: the tool's step is {percent(found.step)} of the value{rest}"
    many = "more than 1000" if needed[worst] is None else f"about {needed[worst]}"
    return (
        f"{many} to tell a difference of {percent(margin)} with {POWER:.0%} probability: {name}'s ratio is "
        f"±{percent(found.spread)} from block to block ({found.blocks} blocks seen){rest}"
    )


def seen(request: Request, accelerator: str) -> dict[Variant, Seen]:
    """From the newest runs of the suite, profile, accelerator and system; empty where there is no database."""
    path = paths.database()
    if not path.exists():
        return {}
    # Hosts tell theirs later.
    system = None if request.inventory else request.system
    with Store.open(path, create=False) as store:
        with explained(store.path):
            rows = store.db.execute(
                "SELECT run_id FROM run WHERE suite = ? AND suite_digest = ? AND profile_digest = ?"
                " AND accelerator = ? AND coalesce(system = ?, 1) AND origin = 'measured' AND trials_ok > 0"
                " ORDER BY created_at DESC LIMIT ?",
                (
                    request.suite.name,
                    request.suite.digest,
                    request.profile.digest,
                    accelerator,
                    system,
                    NEWEST,
                ),
            ).fetchall()
        found: dict[Variant, list[Row]] = {}
        for (run_id,) in rows:
            for table in report(store, run_id, lambda _: None).tables:
                for row in table.rows if table.primary else ():
                    if row.ratio and row.ratio.n > 1 and not row.variant.is_baseline:
                        found.setdefault(row.variant, []).append(row)
    return {variant: _spread(own) for variant, own in found.items()}


def _spread(rows: Sequence[Row]) -> Seen:
    """Within runs, pooled by their degrees of freedom: what differs from run to run is not from block to block."""
    squares, freedom, blocks, step = 0.0, 0, 0, 0.0
    for row in rows:
        assert row.ratio
        logs = [math.log(own / base) for own, base in row.ratio.blocks if own > 0]
        if len(logs) > 1:
            squares += statistics.variance(logs) * (len(logs) - 1)
            freedom, blocks = freedom + len(logs) - 1, blocks + len(logs)
        step = max(step, row.ratio.step / statistics.median(base for _, base in row.ratio.blocks))
    return Seen(math.sqrt(squares / freedom) if freedom else 0.0, blocks, step)
