"""A check of a profile in words: as a line under a run's table, and as a table's cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MISSING = "–"
UNITS = {
    "bit/s": (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)),
    "s": (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)),
    "ratio": (("%", 0.01),),
    "bytes": (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("bytes", 1.0)),
    "1/s": (("thousand/s", 1e3), ("/s", 1.0)),
    "1": (("", 1.0),),
}
VERDICTS = {"pass": "ok", "fail": "FAILED", "not-applicable": "not here"}


def line(check: Mapping[str, Any]) -> str:
    """check: columns of the view profile_check. A tolerance of zero marks a bound."""
    values = [v for v in (check["measured"], check["expected"]) if v is not None]
    names = UNITS.get(check["unit"], ((check["unit"], 1.0),))
    unit, factor = next(((n, f) for n, f in names if values and max(values) >= f), names[-1])
    measured, expected, tolerance = (
        MISSING if check[k] is None else f"{check[k] / factor:.4g}"
        for k in ("measured", "expected", "tolerance")
    )
    told = MISSING if check["measured"] is None else f"{measured} {unit}".rstrip()
    if check["expected"] is not None:
        asked = f"at most {expected}" if check["tolerance"] == 0 else expected
        if check["tolerance"]:
            asked += f" ± {tolerance}"
        told += f", asked {asked}"
    reason = "" if check["reason"] is None else f" ({check['reason']})"
    where = check["client_node"]
    if check["server_node"] != where:
        where += f" to {check['server_node']}"
    return f"{check['name']} {where}: {told}: {VERDICTS[check['verdict']]}{reason}"


def value(number: float | None, unit: str) -> str:
    """Three or four digits with the unit that people use; – where there is no number."""
    if number is None:
        return MISSING
    names = UNITS.get(unit, ((unit, 1.0),))
    name, factor = next(((n, f) for n, f in names if abs(number) >= f), names[-1])
    return f"{number / factor:.4g} {name}".rstrip()
