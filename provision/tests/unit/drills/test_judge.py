"""Cycles of the prober, windows of them, and what they say against a healthy baseline."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from lab_attempts import BROKEN, HEALTHY

from overlaylab.core.measures import MEASURES, OF_CYCLE
from overlaylab.drills import judge
from overlaylab.drills.judge import Cycle, Window, window
from overlaylab.specs.drill import Probe

NOTHING = dict.fromkeys(OF_CYCLE, None)
PROBES = (
    Probe("fetched", at_least=0.9, symptom=True),
    Probe("goodput", at_least=0.5, symptom=True),
    Probe("connect", at_most=5),
    Probe("answered", at_least=0.9, role="server"),
)


def cycle(values: Mapping[str, float | None] = HEALTHY, t: float = 1.0, **reasons: str) -> Cycle:
    return Cycle(t, values, reasons)


def windows(client: Mapping[str, float | None], server: Mapping[str, float | None] = HEALTHY, **reasons: str):
    return {"client": window([cycle(client, **reasons)] * 3), "server": window([cycle(server)] * 3)}


def line(**changed: object) -> str:
    return json.dumps({"t": 1.5, "values": HEALTHY, "reasons": {"page": "HTTP 502"}} | changed)


def test_a_line_of_the_prober() -> None:
    assert Cycle.parse(line()) == Cycle(1.5, HEALTHY, {"page": "HTTP 502"})
    assert Cycle.parse(line(values=NOTHING, reasons={})).values == NOTHING


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "Traceback (most recent call last):",
        "[]",
        "{}",
        line()[:-20],
        line(t=-1),
        line(t="1.5"),
        line(more=1),
        line(values={}),
        line(values=HEALTHY | {"jitter": 1.0}),
        line(values=HEALTHY | {"answered": 1.25}),
        line(values=HEALTHY | {"rtt": True}),
        line(values=HEALTHY | {"rtt": -0.1}),
        line(values=HEALTHY | {"goodput": float("nan")}),
        line(values=HEALTHY | {"goodput": float("inf")}),
        line(values=[1.0]),
        line(reasons={"jitter": "no answer"}),
        line(reasons="no answer"),
    ],
)
def test_another_line_is_no_cycle(damaged: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Cycle.parse(damaged)


def test_a_window_sums_up_each_measure_in_its_way() -> None:
    found = window(
        [
            cycle(HEALTHY | {"answered": 1.0, "rtt": 0.001, "goodput": 8e8, "fetched": 1.0}),
            cycle(
                HEALTHY | {"answered": 0.5, "rtt": 0.009, "goodput": 0.0, "fetched": 0.0}, fetched="timed out"
            ),
            cycle(HEALTHY | {"answered": 0.0, "rtt": None, "goodput": 2e8, "fetched": 1.0}, rtt="no answer"),
            cycle(
                HEALTHY | {"answered": 0.5, "rtt": 0.002, "goodput": 4e8, "fetched": 0.0}, fetched="timed out"
            ),
        ]
    )
    assert found.cycles == 4
    assert found.values.keys() == MEASURES.keys()
    assert (found.values["answered"], found.values["fetched"]) == (0.5, 0.5)
    assert (found.values["rtt"], found.values["rtt_worst"]) == (0.002, 0.009)
    assert found.values["goodput"] == 3e8
    assert found.reasons == {"fetched": "timed out", "rtt": "no answer"}


def test_what_no_cycle_could_measure_has_no_value() -> None:
    for found in (window([]), window([cycle(NOTHING)])):
        assert set(found.values.values()) == {None}


def test_a_window_is_kept_as_json() -> None:
    kept = window([cycle(BROKEN, fetched="timed out")])
    assert Window.from_json(json.loads(json.dumps(kept.as_json()))) == kept


def test_how_long_a_fetch_may_take() -> None:
    assert judge.fetch_limit(None) == 15.0
    # 8 Mbit at 8 Mbit/s: 1 s, four times as long; at 800 Mbit/s the least.
    assert judge.fetch_limit(window([cycle(HEALTHY | {"goodput": 8e6})])) == 4.0
    assert judge.fetch_limit(window([cycle()])) == 3.0
    assert judge.fetch_limit(window([cycle(HEALTHY | {"goodput": 0.0})])) == 15.0


def test_healthy_passes() -> None:
    findings = judge.judge(PROBES, windows(HEALTHY), windows(HEALTHY))
    assert [(one.measure, one.role, one.passes, one.reason, one.ratio) for one in findings] == [
        ("fetched", "client", True, None, 1.0),
        ("goodput", "client", True, None, 1.0),
        ("connect", "client", True, None, 1.0),
        ("answered", "server", True, None, 1.0),
    ]
    assert judge.symptom_shows(findings) is False


def test_broken_fails_where_the_ticket_says() -> None:
    findings = judge.judge(PROBES, windows(HEALTHY), windows(BROKEN, fetched="timed out after 3 s"))
    assert [one.passes for one in findings] == [False, False, True, True]
    assert findings[0].reason == "must be at least 0.9 of what it was: timed out after 3 s"
    assert (findings[1].healthy, findings[1].seen, findings[1].ratio) == (8e8, 0.0, 0.0)
    assert judge.symptom_shows(findings) is True


def test_half_a_symptom_is_none() -> None:
    findings = judge.judge(PROBES, windows(HEALTHY), windows(HEALTHY | {"goodput": 1e6}))
    assert [one.passes for one in findings] == [True, False, True, True]
    assert judge.symptom_shows(findings) is False


def test_a_threshold_is_a_ratio_to_the_baseline() -> None:
    seen = windows(HEALTHY | {"connect": 0.0024}), windows(HEALTHY | {"connect": 0.0026})
    within, beyond = (judge.judge(PROBES, windows(HEALTHY), one)[2] for one in seen)
    assert within.passes and not beyond.passes
    assert beyond.reason == "must be at most 5 times what it was"
    assert beyond.ratio == pytest.approx(5.2)


def test_a_probe_that_could_not_measure_is_no_pass() -> None:
    seen = windows(HEALTHY | {"connect": None}, connect="connection refused")
    finding = judge.judge(PROBES, windows(HEALTHY), seen)[2]
    assert (finding.passes, finding.seen, finding.ratio) == (False, None, None)
    assert finding.reason == "could not be measured: connection refused"
    # Nothing came of that node at all.
    gone = judge.judge(PROBES, windows(HEALTHY), {"client": seen["client"]})[3]
    assert (gone.passes, gone.reason) == (False, "could not be measured")


def test_without_a_healthy_value_nothing_passes() -> None:
    baseline = windows(HEALTHY | {"connect": None, "goodput": 0.0})
    findings = judge.judge(PROBES, baseline, windows(HEALTHY))
    assert findings[1].reason == "was zero while all was well"
    assert findings[2].reason == "has no healthy value to be held against"


def test_a_healthy_baseline() -> None:
    assert judge.unhealthy(PROBES, windows(HEALTHY)) == ()
    # What the drill does not probe may be as it is.
    assert judge.unhealthy(PROBES, windows(HEALTHY | {"resolved": 0.0, "resolve": None})) == ()


def test_a_baseline_that_is_not_healthy_is_told() -> None:
    wrong = judge.unhealthy(
        PROBES,
        windows(
            HEALTHY | {"fetched": 0.5, "connect": None, "connected": None},
            HEALTHY | {"answered": 0.75},
            fetched="HTTP 502",
        ),
    )
    assert wrong == (
        "client: fetched: 50%, not 95% or more (HTTP 502)",
        "client: connected: could not be measured",
        "server: answered: 75%, not 95% or more",
    )
    assert judge.unhealthy(PROBES, {"client": window([cycle()])}) == ("server: nothing was measured",)


def test_every_measure_is_answered_by_a_share_and_of_a_cycle() -> None:
    for measure in MEASURES.values():
        assert MEASURES[measure.answered_by].unit == "ratio"
        assert measure.of in OF_CYCLE


@pytest.mark.parametrize(("measure", "value"), [("fetched", 2 / 3), ("connect", 0.2), ("connect_worst", 0.9)])
def test_a_share_is_a_mean_a_time_a_median_and_the_worst_the_longest(measure, value) -> None:
    found = {"fetched": [1.0, 0.0, 1.0]}.get(measure, [0.9, 0.1, 0.2])
    assert judge.summary(MEASURES[measure], found) == pytest.approx(value)
    assert judge.summary(MEASURES[measure], []) is None
