"""iperf3 --json --get-server-output: one JSON object with the client's and the server's report."""

from __future__ import annotations

import json
from typing import Any

from overlaylab.model import JSON, Sample
from overlaylab.parsers import STOPPED, ParseError, checked, count, failure, number

TOOL = "iperf3"
SLIVER = 0.5
"""s: a shorter interval is what is left after the sender has stopped, and no rate to speak of."""


def parse(stdout: str, stderr: str, exit_code: int | None, parameters: JSON) -> list[Sample]:
    """Goodput (whole, and per second as the receiver counted it), then by protocol.

    TCP: retransmits. UDP: offered (payload sent), datagrams sent, loss, datagrams that were reordered, and jitter
    as RFC 3550 defines it; all but the first two as the receiver counted them.
    Raises ParseError.
    """
    report = _report(stdout, stderr, exit_code)
    end = _get(report, "end")
    received = _get(end, "sum_received")
    if _number(received, "bytes") <= 0:
        raise ParseError("iperf3: no byte arrived at the receiver")
    tcp = parameters["protocol"] == "tcp"
    step = _step(report, received, parameters) if tcp else None
    goodput = Sample("goodput", _rate(received), resolution=step)
    receiver = _receiver(report)
    totals = _totals(receiver)
    sent = _get(end, "sum_sent")
    rest = _tcp(sent) if tcp else _udp(received, sent, totals, receiver)
    return checked(TOOL, [goodput, *_intervals(totals, parameters["omit"]), *rest])


def _report(stdout: str, stderr: str, exit_code: int | None) -> JSON:
    """What was printed, where it is a report of a trial that ended well."""
    if exit_code in STOPPED:
        raise failure(TOOL, stdout, stderr, exit_code)
    try:
        report = json.loads(stdout)
    except (ValueError, RecursionError):
        if exit_code != 0:
            raise failure(TOOL, stdout, stderr, exit_code) from None
        raise ParseError(
            "iperf3's JSON is cut short" if stdout.strip() else "iperf3 printed nothing"
        ) from None
    if not isinstance(report, dict):
        raise ParseError("iperf3 printed JSON that is no report")
    if "error" in report:
        words = report["error"]
        raise ParseError(f"iperf3: {words}" if isinstance(words, str) else "iperf3 reported an error")
    if exit_code != 0:
        raise failure(TOOL, "", stderr, exit_code)
    return report


def _step(report: JSON, received: JSON, parameters: JSON) -> float:
    """The receiver of TCP counts whole blocks (Nread in iperf's net.c fills its buffer)."""
    block = _number(_get(_get(report, "start"), "test_start"), "blksize")
    return block * 8 * parameters["streams"] / _seconds(received)


def _intervals(totals: list[JSON], omitted: float) -> list[Sample]:
    found = []
    for total in totals:
        begin, end = (round(_number(total, key) + omitted, 6) for key in ("start", "end"))
        if end - begin >= SLIVER:
            found.append(Sample("goodput", _rate(total), begin, end))
    return found


def _tcp(sent: JSON) -> list[Sample]:
    return [Sample("retransmits", _count(sent, "retransmits"))]


def _udp(received: JSON, sent: JSON, totals: list[JSON], receiver: JSON) -> list[Sample]:
    packets = sum(_count(total, "packets") for total in totals)
    if packets <= 0:
        raise ParseError("iperf3: no datagram was counted")
    # Not end.sum_received: 3.12 counts the losses of omitted seconds there, https://github.com/esnet/iperf/issues/1489
    lost = sum(_number(total, "lost_packets") for total in totals)
    if lost < 0:
        raise ParseError("iperf3 counted fewer than no datagram lost: they overtook each other")
    streams = _list(_get(receiver, "end"), "streams")
    late = sum(_count(_get(stream, "udp"), "out_of_order") for stream in streams)
    return [
        Sample("offered", _rate(sent)),
        Sample("datagrams", _count(sent, "packets")),
        Sample("loss", lost / packets, resolution=1 / packets),
        Sample("reordered", late),
        Sample("jitter", _number(received, "jitter_ms") / 1000),
    ]


def _receiver(report: JSON) -> JSON:
    """The receiver's own report: the sender's intervals would count what it only queued."""
    if _get(_get(_get(report, "start"), "test_start"), "reverse"):
        return report
    return _get(report, "server_output_json")


def _totals(receiver: JSON) -> list[JSON]:
    """Each counted interval, all streams together."""
    totals = [_get(interval, "sum") for interval in _list(receiver, "intervals")]
    totals = [total for total in totals if not _get(total, "omitted")]
    if not totals:
        raise ParseError("iperf3 reported no interval")
    return totals


def _rate(total: JSON) -> float:
    """bits_per_second, which must be what bytes and seconds say: damage to one of them is seen so."""
    rate = _number(total, "bits_per_second")
    said = _count(total, "bytes") * 8 / _seconds(total)
    if abs(rate - said) > 0.001 * said:
        raise ParseError(f"iperf3 gave a rate of {rate:.6g} bit/s for bytes and seconds that make {said:.6g}")
    return rate


def _seconds(total: JSON) -> float:
    seconds = _number(total, "seconds")
    if seconds <= 0:
        raise ParseError(f"iperf3 measured for {seconds:g} s")
    return seconds


def _number(report: Any, key: str) -> float:
    return number(TOOL, key, _get(report, key))


def _count(report: Any, key: str) -> int:
    return count(TOOL, key, _get(report, key))


def _list(report: Any, key: str) -> list:
    found = _get(report, key)
    if not isinstance(found, list):
        raise ParseError(f"iperf3's report has no list of {key}")
    return found


def _get(report: Any, key: str) -> Any:
    if not isinstance(report, dict) or key not in report:
        raise ParseError(f"iperf3's report has no {key}")
    return report[key]
