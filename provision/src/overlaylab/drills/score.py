"""What an attempt was worth: docs/adding-a-drill.md has the formula. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from overlaylab.store.attempts import REPAIRED

MOST = 100
FAILED_CHECK, REFUSING_GUARD = 5, 10
# Points, all of which are gone after so many times the minutes that a trained engineer needs.
FOR_TIME, SLOWEST = 30, 3.0


def score(
    minutes_taken: float,
    minutes: float,
    hint_costs: Iterable[int],
    failed_checks: int,
    refused_by: Iterable[str],
    state: str = REPAIRED,
) -> int | None:
    """0 to 100; None where nothing was repaired. refused_by: guards, each counted once however often it refused."""
    if state != REPAIRED:
        return None
    late = (minutes_taken / minutes - 1) / (SLOWEST - 1)
    lost = (
        sum(hint_costs)
        + FAILED_CHECK * failed_checks
        + REFUSING_GUARD * len(set(refused_by))
        + FOR_TIME * min(1.0, max(0.0, late))
    )
    return max(0, round(MOST - lost))
