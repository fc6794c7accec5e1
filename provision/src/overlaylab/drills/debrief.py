"""A drill's debrief with the values that were measured. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from overlaylab.core.measures import MEASURES
from overlaylab.drills.judge import Window
from overlaylab.report.checks import MISSING, value
from overlaylab.specs.drill import CLIENT
from overlaylab.specs.drill_checks import PLACEHOLDER

# A ratio from here on is told as so many times; below it in per cent.
LARGE = 2.0


def filled(text: str, healthy: Mapping[str, Window], broken: Mapping[str, Window]) -> str:
    """text: Markdown with places for values, ``{broken.goodput}``. healthy, broken: {role: window}."""

    def measured(place: re.Match[str]) -> str:
        kind, role, measure = place.groups()
        before, after = (_value(windows, role or CLIENT, measure) for windows in (healthy, broken))
        if kind == "ratio":
            return ratio(after / before) if after is not None and before else MISSING
        return value(before if kind == "healthy" else after, MEASURES[measure].unit)

    return PLACEHOLDER.sub(measured, text)


def _value(windows: Mapping[str, Window], role: str, measure: str) -> float | None:
    return windows[role].values[measure] if role in windows else None


def ratio(number: float) -> str:
    """``4 %``, ``35 times``."""
    return f"{number:.3g} times" if number >= LARGE else value(number, "ratio")
