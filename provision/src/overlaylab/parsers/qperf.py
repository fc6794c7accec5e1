"""qperf with --unify_nodes --unify_units -vvs: bytes/sec and ns, one ``name = value unit`` per line."""

from __future__ import annotations

import re

from overlaylab.model import JSON, Sample
from overlaylab.parsers import ParseError, failure

_LINE = re.compile(r"\s+(\w+)\s+=\s+(.*?)\s*")
_RESULTS = {"tcp_bw": ("bw", "bytes/sec"), "tcp_lat": ("latency", "ns")}
_MESSAGE = 65536
"""qperf's default message for tcp_bw, in bytes."""


def parse(stdout: str, stderr: str, exit_code: int | None, parameters: JSON) -> list[Sample]:
    """tcp_bw: goodput; tcp_lat: latency_one_way; conf: nothing. Raises ParseError."""
    test = parameters["test"]
    if exit_code != 0:
        raise failure("qperf", stdout, stderr, exit_code)
    lines = stdout.splitlines()
    if not lines or lines[0].strip() != f"{test}:":
        raise ParseError(f"qperf printed no result of {test}")
    values = {}
    for line in lines[1:]:
        match = _LINE.fullmatch(line)
        if match is None:
            raise ParseError(f"qperf printed a line that is no result: {line.strip()!r}")
        values[match[1]] = match[2]
    if test == "conf":
        if "loc_qperf" not in values or "rem_qperf" not in values:
            raise ParseError("qperf did not describe both ends")
        return []
    if "rem_recv_msgs" not in values and _number(values, *_RESULTS[test]):
        raise ParseError("qperf's output is cut short")  # its last line
    if test == "tcp_bw":
        # qperf counts whole messages that arrived, so this is the step between two results.
        step = parameters.get("message", _MESSAGE) * 8 / parameters["duration"]
        return [Sample("goodput", 8 * _number(values, *_RESULTS[test]), resolution=step)]
    return [Sample("latency_one_way", _number(values, *_RESULTS[test]) / 1e9)]


def _number(values: dict[str, str], name: str, unit: str) -> float:
    if name not in values:
        raise ParseError(f"qperf printed no {name}: its output is cut short")
    number, _, seen = values[name].partition(" ")
    if seen != unit:
        raise ParseError(f"qperf gave {name} in {seen or 'no unit'!r}, not in {unit!r}")
    try:
        value = float(number.replace(",", ""))
    except ValueError:
        raise ParseError(f"qperf gave {name} as {number!r}, which is no number") from None
    if value <= 0:
        raise ParseError(f"qperf gave {name} as {number}: nothing was transferred")
    return value
