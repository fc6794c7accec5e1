"""What the prober's cycles say of the service, held against the same nodes' healthy baseline. Pure."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from overlaylab.core.measures import MEAN, MEASURES, MEDIAN, OF_CYCLE, WORST, Measure
from overlaylab.specs.drill import Probe

# Of what is probed, a baseline has at least this: the symptom has to come of the fault.
HEALTHY_SHARE = 0.95
# Of `/1m`, the file that is fetched.
FILE_BITS = 8e6
# s, s, 1: how long a fetch may take in the baseline; afterwards at least, and at most over the baseline's.
BASELINE_LIMIT, LEAST_LIMIT, LIMIT_RATIO = 15.0, 3.0, 4.0


@dataclass(frozen=True)
class Cycle:
    """One pass over all measures of a cycle, as the prober prints it: one line of JSON with these keys."""

    # s on the node's monotonic clock since the prober began; the pass ended then.
    t: float
    # {measure: value, None where nothing could be measured}; all of `OF_CYCLE`.
    values: Mapping[str, float | None]
    # {measure: why it failed or could not be measured}, where there is anything to say.
    reasons: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, line: str) -> Cycle:
        """Raises ValueError for anything else than a line of the prober."""
        data = json.loads(line)
        if not isinstance(data, dict) or data.keys() != {"t", "values", "reasons"}:
            raise ValueError(f"no cycle of the prober: {line[:80]}")
        values, reasons = data["values"], data["reasons"]
        if not isinstance(values, dict) or values.keys() != OF_CYCLE.keys():
            raise ValueError("a cycle must have a value of each measure")
        if not isinstance(reasons, dict) or not reasons.keys() <= OF_CYCLE.keys():
            raise ValueError("a cycle's reasons must be of its measures")
        return cls(
            _number(data["t"], "t"),
            {
                name: None if value is None else _value(OF_CYCLE[name], value)
                for name, value in values.items()
            },
            {name: str(reason) for name, reason in reasons.items()},
        )


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} must be a number from 0 on, not {value!r}")
    return float(value)


def _value(measure: Measure, value: object) -> float:
    number = _number(value, measure.name)
    if measure.unit == "ratio" and number > 1:
        raise ValueError(f"{measure.name} must be at most 1, not {number:g}")
    return number


@dataclass(frozen=True)
class Window:
    """Some cycles of one node, judged together."""

    cycles: int
    # {measure: value, None where no cycle could measure it}; all of `MEASURES`.
    values: Mapping[str, float | None]
    # {measure of a cycle: the commonest reason}.
    reasons: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"cycles": self.cycles, "values": dict(self.values), "reasons": dict(self.reasons)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Window:
        return cls(data["cycles"], data["values"], data["reasons"])


_SUMMARIES: dict[str, Callable[[Sequence[float]], float]] = {
    MEAN: statistics.fmean,
    MEDIAN: statistics.median,
    WORST: max,
}


def summary(measure: Measure, found: Sequence[float]) -> float | None:
    """One value of those of several cycles; None where none could measure it."""
    return _SUMMARIES[measure.summary](found) if found else None


def window(cycles: Sequence[Cycle]) -> Window:
    """Shares are means, times and goodput medians of the cycles that could measure them."""
    values: dict[str, float | None] = {}
    for name, measure in MEASURES.items():
        found = [value for cycle in cycles if (value := cycle.values[measure.of]) is not None]
        values[name] = summary(measure, found)
    reasons = {}
    for name in OF_CYCLE:
        told = Counter(reason for cycle in cycles if (reason := cycle.reasons.get(name)))
        if told:
            reasons[name] = told.most_common(1)[0][0]
    return Window(len(cycles), values, reasons)


def fetch_limit(baseline: Window | None) -> float:
    """s that a fetch of `/1m` may take. None: the baseline itself is being taken."""
    if baseline is None:
        return BASELINE_LIMIT
    goodput = baseline.values["goodput"]
    if not goodput:
        return BASELINE_LIMIT
    return max(LEAST_LIMIT, LIMIT_RATIO * FILE_BITS / goodput)


@dataclass(frozen=True)
class Finding:
    """What one probe says. reason: why it does not pass; None where it does."""

    measure: str
    role: str
    # Of the baseline and of what is judged now, in the measure's unit.
    healthy: float | None
    seen: float | None
    # seen over healthy.
    ratio: float | None
    at_least: float | None
    at_most: float | None
    passes: bool
    reason: str | None
    symptom: bool


def judge(
    probes: Sequence[Probe], baseline: Mapping[str, Window], seen: Mapping[str, Window]
) -> tuple[Finding, ...]:
    """A finding for each probe, in their order. baseline, seen: {role: window}."""
    return tuple(_judged(probe, baseline.get(probe.role), seen.get(probe.role)) for probe in probes)


def _judged(probe: Probe, baseline: Window | None, seen: Window | None) -> Finding:
    healthy = None if baseline is None else baseline.values[probe.measure]
    value = None if seen is None else seen.values[probe.measure]
    ratio = value / healthy if value is not None and healthy else None
    reason = _why_not(probe, healthy, value, ratio, seen)
    return Finding(
        probe.measure, probe.role, healthy, value, ratio, probe.at_least, probe.at_most, reason is None, reason,
        probe.symptom,
    )  # fmt: skip


def _why_not(
    probe: Probe, healthy: float | None, value: float | None, ratio: float | None, seen: Window | None
) -> str | None:
    told = None if seen is None else seen.reasons.get(MEASURES[probe.measure].of)
    because = f": {told}" if told else ""
    if value is None:
        return f"could not be measured{because}"
    if ratio is None:
        return "has no healthy value to be held against" if healthy is None else "was zero while all was well"
    if probe.at_least is not None and ratio < probe.at_least:
        return f"must be at least {probe.at_least:g} of what it was{because}"
    if probe.at_most is not None and ratio > probe.at_most:
        return f"must be at most {probe.at_most:g} times what it was{because}"
    return None


def unhealthy(probes: Sequence[Probe], baseline: Mapping[str, Window]) -> tuple[str, ...]:
    """What keeps a baseline from being one, in words; none where it is healthy."""
    wrong = []
    for probe in probes:
        measure = MEASURES[probe.measure]
        found = baseline.get(probe.role)
        if found is None:
            wrong.append(f"{probe.role}: nothing was measured")
            continue
        share = found.values[measure.answered_by]
        reason = found.reasons.get(measure.answered_by)
        because = f" ({reason})" if reason else ""
        if share is None or share < HEALTHY_SHARE:
            told = (
                "could not be measured" if share is None else f"{share:.0%}, not {HEALTHY_SHARE:.0%} or more"
            )
            wrong.append(f"{probe.role}: {measure.answered_by}: {told}{because}")
        elif not found.values[probe.measure]:
            wrong.append(f"{probe.role}: {measure.name}: could not be measured")
    return tuple(dict.fromkeys(wrong))


def symptom_shows(findings: Sequence[Finding]) -> bool:
    """Whether every probe that the ticket speaks of fails."""
    return all(not finding.passes for finding in findings if finding.symptom)
