"""qperf with --unify_nodes --unify_units -vvs: bytes/sec and ns, one ``name = value unit`` per line."""

from __future__ import annotations

import re

from overlaylab.core.model import JSON, Sample
from overlaylab.tools.parsers import ParseError, checked, count, failure, number

_LINE = re.compile(r"\s+(\w+)\s+=\s+(.*?)\s*")
_RESULTS = {
    "tcp_bw": ("bw", "bytes/sec"),
    "udp_bw": ("recv_bw", "bytes/sec"),
    "tcp_lat": ("latency", "ns"),
    "udp_lat": ("latency", "ns"),
}
_OFFERED = ("send_bw", "bytes/sec")
# qperf's default messages, in bytes.
_MESSAGES = {"tcp_bw": 65536, "udp_bw": 32768}
# Bytes received to bytes sent: each datagram may have come twice.
MOST = 2.0


def parse(stdout: str, stderr: str, exit_code: int | None, parameters: JSON) -> list[Sample]:
    """tcp_bw: goodput; udp_bw: goodput and offered; tcp_lat, udp_lat: latency_one_way; conf: nothing.

    Raises ParseError.
    """
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
    value = _number(values, *_RESULTS[test])
    if test == "udp_lat" and _count(values, "rem_recv_msgs") < _count(values, "loc_send_msgs"):
        # The rest of the time would be shared out among the round trips before. A lost answer leaves no such trace.
        raise ParseError("qperf lost a datagram, and waited for its answer until the time was over")
    if test in ("tcp_lat", "udp_lat"):
        _check_time(2 * value / 1e9 * _count(values, "rem_recv_msgs"), parameters)
        return checked("qperf", [Sample("latency_one_way", value / 1e9)])
    received, sent = (_number(values, name, "bytes") for name in ("rem_recv_bytes", "loc_send_bytes"))
    _check_time(received / value, parameters)
    if received > MOST * sent:
        raise ParseError(f"qperf counted {received} bytes received of {sent} that were sent")
    # qperf counts whole messages that arrived, so this is the step between two results.
    step = parameters.get("message", _MESSAGES[test]) * 8 / parameters["duration"]
    samples = [Sample("goodput", 8 * value, resolution=step)]
    if test == "udp_bw":
        offered = _number(values, *_OFFERED)
        _check_time(sent / offered, parameters)
        samples.append(Sample("offered", 8 * offered, resolution=step))
    return checked("qperf", samples)


def _check_time(seconds: float, parameters: JSON) -> None:
    """Raises ParseError for a time, of an amount at its own rate, that cannot be this trial's."""
    # A round trip may be under way at the end, and one that takes longer than the benchmark's timeout is stopped.
    duration = parameters["duration"]
    if not 0.5 * duration <= seconds <= 20 + 3 * duration:
        raise ParseError(f"qperf gave an amount and a rate that make {seconds:.3g} s, not {duration:g} s")


def _count(values: dict[str, str], name: str) -> int:
    if name not in values:
        raise ParseError(f"qperf printed no {name}: its output is cut short")
    return count("qperf", name, values[name])


def _number(values: dict[str, str], name: str, unit: str) -> float:
    if name not in values:
        raise ParseError(f"qperf printed no {name}: its output is cut short")
    text, _, seen = values[name].partition(" ")
    if seen != unit:
        raise ParseError(f"qperf gave {name} in {seen or 'no unit'!r}, not in {unit!r}")
    value = number("qperf", name, text.replace(",", ""))
    if value <= 0:
        raise ParseError(f"qperf gave {name} as {text}: nothing was transferred")
    return value
