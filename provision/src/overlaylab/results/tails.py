"""Tails of latency, trial by trial: the 99th percentile that a trial has of its own messages.

Reads the public views only.
"""

from __future__ import annotations

from overlaylab.core.model import Variant
from overlaylab.results.rows import Tail
from overlaylab.store.store import Store

P99 = 0.99
# Messages of a trial below which its 99th percentile would be its largest value by another name.
FEWEST = 100

QUERY = """
SELECT t.benchmark, s.metric, t.placement, t.direction, t.client_node, t.server_node, t.overlay, t.mode, t.encrypted,
       min(p.p99) AS low, max(p.p99) AS high, count(*) AS trials
FROM trial_summary AS s
JOIN trial AS t USING (trial_id)
JOIN (
    SELECT trial_id, metric, p99 FROM trial_summary
    WHERE run_id = :run AND basis = 'interval' AND n >= :fewest AND metric LIKE 'latency%'
    UNION ALL
    SELECT x.trial_id, x.metric, x.value
    FROM trial_summary AS w
    JOIN result AS x USING (trial_id, metric)
    WHERE w.run_id = :run AND w.basis = 'whole' AND w.metric LIKE 'latency%' AND x.quantile = :p99
) AS p USING (trial_id, metric)
WHERE s.run_id = :run AND NOT t.warmup AND s.metric LIKE 'latency%'
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
"""


def tails_of(store: Store, run_id: str) -> dict[tuple[str, str, tuple[str, str, str, str], Variant], Tail]:
    """{(benchmark, metric, place, variant): its trials' p99}; of the tool's own words, else of the messages it told."""
    found = {}
    for row in store.db.execute(QUERY, {"run": run_id, "p99": P99, "fewest": FEWEST}):
        place = (row["placement"], row["direction"], row["client_node"], row["server_node"])
        variant = Variant(row["overlay"], row["mode"], bool(row["encrypted"]))
        found[row["benchmark"], row["metric"], place, variant] = Tail(row["low"], row["high"], row["trials"])
    return found
