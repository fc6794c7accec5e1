"""flent's data files, versions 1 to 4 (https://flent.org/data-format.html).

Each series that was measured is a trial of its own. Rates are those at flent's own steps; RTTs are the single ones
where the file has them (``raw_values``), else those at the steps; both have to agree. Series that flent computed from
others (averages, sums, fairness) and series without a metric here are left out. The client of netperf counts what it hands to its kernel, so an
upload's rate is the sender's; ``counted`` in the parameters says so.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from statistics import median

from overlaylab.core.model import JSON, Sample
from overlaylab.store.imported_base import (
    Measured,
    MeasuredTrial,
    member,
    moment,
    number,
    seconds,
    stamp,
    words,
)
from overlaylab.tools.parsers import ParseError

KEYS = {"x_values", "results", "metadata"}
NEWEST = 4
# What flent calls its units, in bit/s.
RATES = {"Mbits/s": 1e6, "bits/s": 1.0}
# Transactions per second, which netperf prints with two decimals: fewer have one digit, and are what a lost datagram
# left of a test, not a round trip.
FAINT = 0.1
COMPUTED = re.compile(r".*[ :](avg|sum|totals?|fairness|median|mean|max|min)")
# What flent says of such a series since format 3 (its runners.py).
COMPUTING = {"AverageRunner", "SmoothAverageRunner", "SumRunner", "DiffMinRunner", "FairnessRunner"}
LONGEST_NAME = 200
# Before it, the single values of netperf's request-response series are transactions per second, not ms.
UNCONVERTED = 4
# How far the medians of the single values and of those at flent's steps may be apart. In ten of flent's own test files
# they are at most 0.018 apart; their means are up to 1.5-fold, and may be more: one stall outweighs all.
APART = 0.1
# s: four months, longer than any test.
LONGEST = 1e7


def read(report: JSON) -> Measured:
    """Raises ParseError."""
    version = report.get("version", 1)
    if not isinstance(version, int) or not 1 <= version <= NEWEST:
        raise ParseError(f"flent's format {version!r} is none of 1 to {NEWEST}")
    meta = member(report, "metadata", dict, "flent's file")
    if failed := meta.get("FAILED_RUNNERS"):
        raise ParseError(f"flent says that programs of its test failed: {words(str(failed))}")
    test = _name(member(meta, "NAME", str, "flent's metadata"))
    raw = _raw(report, meta, version)
    zero = _first(raw)
    started = (
        moment(seconds(meta.get("TIME"), "flent's TIME"), "flent's TIME")
        if zero is None
        else moment(zero, "flent's first time")
    )
    length = _length(meta)
    x_values = [number(x, "an x value") for x in member(report, "x_values", list, "flent's file")]
    _check_times(x_values, length)
    about_series = meta.get("SERIES_META")
    trials, left_out = [], []
    for name, values in member(report, "results", dict, "flent's file").items():
        shown = _name(name)
        if not isinstance(values, list) or len(values) != len(x_values):
            raise ParseError(f"flent's series {name!r} has not one value for each x value")
        own = about_series.get(name) if isinstance(about_series, dict) else None
        own = own if isinstance(own, dict) else {}
        singles = raw.get(name)
        if version < UNCONVERTED and "UDP" in name:
            singles = _in_ms(name, singles)
        _check_times(sorted(x for x, _ in _single(name, singles, zero)), length)
        computed = COMPUTED.fullmatch(name) or own.get("RUNNER") in COMPUTING
        samples = () if computed else tuple(_samples(name, values, x_values, own, singles, zero))
        if not samples:
            left_out.append(name)
            continue
        download = "download" in name.lower()
        parameters = {"test": test, "series": shown}
        if samples[0].metric == "goodput":
            parameters["counted"] = "receiver" if download else "sender"
        trials.append(
            MeasuredTrial(
                benchmark=f"{test} {shown}",
                parameters=parameters,
                direction="server-to-client" if download else "client-to-server",
                duration=length,
                raw=json.dumps({"x_values": x_values, "values": values, "raw_values": singles, "meta": own}),
                samples=samples,
            )
        )
    if not trials:
        raise ParseError("flent's file has no measured series with a rate or an RTT in a known unit")
    kernel = [words(meta.get(name)) for name in ("KERNEL_NAME", "KERNEL_RELEASE")]
    about = {name: words(str(meta[name])) for name in ("TITLE", "NOTE", "IP_VERSION") if meta.get(name)}
    return Measured(
        tool="flent",
        tool_version=words(meta.get("FLENT_VERSION", meta.get("NETPERF_WRAPPER_VERSION"))),
        started_at=stamp(started),
        machine=" ".join(filter(None, kernel)) or None,
        trials=tuple(trials),
        about={name.lower(): said for name, said in about.items() if said},
        left_out=tuple(left_out),
    )


def _raw(report: JSON, meta: JSON, version: int) -> JSON:
    """The single values by series. Format 1 has them, if at all, beside what it says of a series."""
    raw = report.get("raw_values")
    about = meta.get("SERIES_META")
    if version == 1 and raw is None and isinstance(about, dict):
        return {
            name: own["RAW_VALUES"]
            for name, own in about.items()
            if isinstance(own, dict) and "RAW_VALUES" in own
        }
    return raw if isinstance(raw, dict) else {}


def _name(name: str) -> str:
    """As it may be shown. Raises ParseError."""
    if len(name) > LONGEST_NAME:
        raise ParseError(f"flent's file has a name of {len(name)} characters: {name[:40]!r}…")
    return words(name) or "unnamed"


def _samples(
    name: str, values: list[object], x_values: list[float], own: JSON, singles: object, zero: float | None
) -> Iterator[Sample]:
    """Of one series; none where it has no metric here. A missing value (null) is no sample."""
    unit = str(own.get("UNITS"))
    if unit in RATES:
        for x, value in zip(x_values, values, strict=True):
            if value is not None:
                yield Sample("goodput", number(value, name) * RATES[unit], x, x)
    elif unit == "ms" and name.startswith("Ping"):
        single = _single(name, singles, zero)
        _check_agreement(name, [value for _, value in single], values)
        for x, value in single or zip(x_values, values, strict=True):
            if value is not None:
                yield Sample("latency_rtt", number(value, name) / 1000, x, x)


def _in_ms(name: str, singles: object) -> object:
    """Transactions per second, which have a duration, as the mean RTT of these transactions; FAINT: no value."""
    if not isinstance(singles, list):
        return singles
    rates = [one for one in singles if isinstance(one, dict) and "dur" in one and one.get("val") is not None]
    values = {id(one): number(one["val"], name) for one in rates}
    return [
        {**one, "val": 1000 / values[id(one)] if values[id(one)] >= FAINT else None}
        if id(one) in values
        else one
        for one in singles
    ]


def _check_agreement(name: str, singles: list[object], values: list[object]) -> None:
    """Raises ParseError where single values mean something else than flent's own results of the same series."""
    known = [[number(one, name) for one in some if one is not None] for some in (singles, values)]
    if not all(known):
        return
    single, stepped = map(median, known)
    if abs(single - stepped) > APART * abs(stepped):
        raise ParseError(
            f"flent's series {name!r} has a median of {single:.4g} ms by its single values and of {stepped:.4g} ms by its "
            "results: one of them is in another unit"
        )


def _single(name: str, singles: object, zero: float | None) -> list[tuple[float, object]]:
    """(seconds from the first of all, value) of each reply; nothing where the file does not have them."""
    if not isinstance(singles, list) or zero is None:
        return []
    return [
        (round(number(one.get("t"), f"a time of {name}") - zero, 6), one["val"])
        for one in singles
        if isinstance(one, dict) and "val" in one
    ]


def _first(raw: JSON) -> float | None:
    """The first of all single values, in seconds since 1970; None where there is none.

    Not the file's own T0: until format 3 it was a local time without a zone.
    """
    times = (
        number(one["t"], f"a time of {name}")
        for name, singles in raw.items()
        if isinstance(singles, list)
        for one in singles
        if isinstance(one, dict) and "t" in one
    )
    return min(times, default=None)


def _check_times(times: list[float], length: float | None) -> None:
    """Seconds from the start that go backwards, or on after ten times the test's length, as flent warns of."""
    if any(late < early for early, late in itertools.pairwise(times)):
        raise ParseError("flent's x values go backwards")
    most = LONGEST if length is None else 10 * length + 10
    if times and times[-1] > most:
        raise ParseError(f"flent's values go on to {times[-1]:g} s, in a test of {length or LONGEST:g} s")


def _length(meta: JSON) -> float | None:
    """Seconds, from 1 to LONGEST; None where the file does not say."""
    if meta.get("TOTAL_LENGTH") is None:
        return None
    length = number(meta["TOTAL_LENGTH"], "flent's TOTAL_LENGTH")
    if not 1 <= length <= LONGEST:
        raise ParseError(f"flent's TOTAL_LENGTH is {length:g} s, not 1 to {LONGEST:g}")
    return length
