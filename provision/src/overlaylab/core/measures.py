"""What a drill's prober measures of the service: measures, their units, and how a window sums them up.

Their one home: unit tests hold provision/drills/schema.json, the database's table `measure` and
viewer/src/contract/terms.ts to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from overlaylab.core.metrics import HIGHER, LOWER

MEAN, MEDIAN, WORST = "mean", "median", "worst"


@dataclass(frozen=True)
class Measure:
    name: str
    unit: str
    # HIGHER or LOWER.
    better: str
    # In the database's table `measure`.
    description: str
    # Its key there, and its place among the others.
    order: int
    # How a window makes one value of its cycles': MEAN, MEDIAN or WORST.
    summary: str
    # The measure of a cycle that the window takes; a `WORST` one is of no cycle itself.
    of: str
    # The share of cycles in which there was something to measure.
    answered_by: str


def _share(name: str, order: int, description: str) -> Measure:
    return Measure(name, "ratio", HIGHER, description, order, MEAN, name, name)


def _time(name: str, order: int, description: str, answered_by: str) -> Measure:
    return Measure(name, "s", LOWER, description, order, MEDIAN, name, answered_by)


def _worst(of: str, order: int, answered_by: str) -> Measure:
    return Measure(f"{of}_worst", "s", LOWER, f"the longest {of} of a window", order, WORST, of, answered_by)


MEASURES = {
    measure.name: measure
    for measure in (
        _share("answered", 10, "pings that were answered, of four in each cycle"),
        _time("rtt", 20, "round-trip time of those pings: their median in each cycle", "answered"),
        _share("connected", 30, "TCP connections to port 80 that were set up within 3 s"),
        _time("connect", 40, "time to set one up", "connected"),
        _share("page", 50, "small pages (GET /) that came whole within 3 s"),
        _share("fetched", 60, "files of 1 MB (GET /1m) that came whole within the limit"),
        Measure(
            "goodput", "bit/s", HIGHER, "bytes of such a file that came, as bits, over the time taken or the limit",
            70, MEDIAN, "goodput", "fetched",
        ),
        _share("resolved", 80, "look-ups of web.service.internal that were answered within 6 s"),
        _time("resolve", 90, "time of such a look-up", "resolved"),
        _worst("rtt", 100, "answered"),
        _worst("connect", 110, "connected"),
        _worst("resolve", 120, "resolved"),
    )
}  # fmt: skip
# Those that each cycle of the prober has; the others are of a window alone.
OF_CYCLE = {name: measure for name, measure in MEASURES.items() if measure.of == name}
