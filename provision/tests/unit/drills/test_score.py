"""What an attempt was worth, and its debrief."""

from __future__ import annotations

import pytest
from lab_attempts import BROKEN, HEALTHY

from overlaylab.drills.debrief import filled
from overlaylab.drills.judge import Cycle, window
from overlaylab.drills.score import score

HEALTHY_WINDOWS = {"client": window([Cycle(1.0, HEALTHY)]), "server": window([Cycle(1.0, HEALTHY)])}
BROKEN_WINDOWS = {
    "client": window([Cycle(1.0, BROKEN | {"resolve": 0.08})]),
    "server": window([Cycle(1.0, HEALTHY | {"connect": None})]),
}


@pytest.mark.parametrize(
    ("minutes_taken", "hints", "failed", "guards", "points"),
    [
        (4, [], 0, [], 100),
        (15, [], 0, [], 100),
        # Linear from 15 to 45 minutes, and no further.
        (30, [], 0, [], 85),
        (45, [], 0, [], 70),
        (600, [], 0, [], 70),
        (10, [5, 10], 0, [], 85),
        (10, [], 3, [], 85),
        (10, [], 2, ["firewall", "firewall", "daemons"], 70),
        (30, [5], 1, ["overlay"], 65),
        (600, [40, 40], 5, ["overlay"], 0),
    ],
)
def test_score(minutes_taken: float, hints: list[int], failed: int, guards: list[str], points: int) -> None:
    assert score(minutes_taken, 15, hints, failed, guards) == points


@pytest.mark.parametrize("state", ["given-up", "abandoned", "running"])
def test_what_was_not_repaired_has_no_score(state: str) -> None:
    assert score(1, 15, [], 0, [], state) is None


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("{healthy.goodput}, then {broken.goodput}", "800 Mbit/s, then 0 bit/s"),
        ("{broken.fetched} of them", "0 % of them"),
        ("{ratio.resolve}", "40 times"),
        ("{ratio.page} and {healthy.client.rtt}", "100 % and 400 µs"),
        ("{broken.server.connect} and {ratio.server.connect}", "– and –"),
        ("{healthy.rtt_worst}", "400 µs"),
        ("as `{print $1}` and ${x} have it", "as `{print $1}` and ${x} have it"),
    ],
)
def test_a_debrief_has_the_measured_values(text: str, becomes: str) -> None:
    assert filled(text, HEALTHY_WINDOWS, BROKEN_WINDOWS) == becomes


def test_a_debrief_without_a_baseline_says_so() -> None:
    assert filled("{healthy.rtt} {broken.server.rtt} {ratio.rtt}", {}, {}) == "– – –"
