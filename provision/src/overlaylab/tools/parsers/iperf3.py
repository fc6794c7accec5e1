"""iperf3 --json --get-server-output: one JSON object with the client's and the server's report."""

from __future__ import annotations

import json
from typing import Any

from overlaylab.core.model import JSON, Sample
from overlaylab.tools.parsers import STOPPED, ParseError, checked, count, failure, no_json, number

TOOL = "iperf3"
# s of sending that may be under way or uncounted at the end of a trial; what is missing beyond it was lost.
TAIL = 0.1
# Of the time asked for: what a trial that nothing broke off lasts at least.
LEAST = 0.9
# Bytes received to bytes sent: above 1 where datagrams come twice, and where seconds were omitted: what was under way
# as they ended is received later.
MOST, MOST_OMITTED = 1.1, 2.0
# Bytes sent for each segment that was sent again, at least: one of 88 bytes, TCP_MIN_MSS, ten times.
SMALLEST = 8
# s: a shorter interval is what is left after the sender has stopped, and no rate to speak of.
SLIVER = 0.5


def parse(stdout: str, stderr: str, exit_code: int | None, parameters: JSON) -> list[Sample]:
    """Goodput (whole, and per second as the receiver counted it), then by protocol.

    TCP: retransmits, whole and per second, as the sender counted them. UDP: offered (payload sent), datagrams sent,
    loss, datagrams that were reordered, and jitter as RFC 3550 defines it; all but the first two as the receiver
    counted them, loss and jitter per second too.
    Raises ParseError.
    """
    report = _report(stdout, stderr, exit_code)
    end = _get(report, "end")
    received = _get(end, "sum_received")
    if _number(received, "bytes") <= 0:
        raise ParseError("iperf3: no byte arrived at the receiver")
    tcp = parameters["protocol"] == "tcp"
    step = _step(report, received, parameters) if tcp else None
    goodput = Sample("goodput", rate(received), resolution=step)
    sender, receiver = _sides(report)
    omitted = parameters["omit"]
    each = rates(receiver, omitted)
    sent = _get(end, "sum_sent")
    rest = _tcp(sent, sender, omitted) if tcp else _udp(received, sent, receiver, omitted)
    _check_as_asked(report, parameters)
    check_streams(report, parameters["streams"])
    check_totals(received, sent, parameters)
    return checked(TOOL, [goodput, *each, *rest])


def check_totals(received: JSON, sent: JSON, parameters: JSON) -> None:
    """Two sides that cannot be of one trial with these parameters. Raises ParseError."""
    duration, omitted = parameters["duration"], parameters["omit"]
    took = _seconds(received)
    # The benchmark's timeout: who takes longer is stopped.
    if not LEAST * duration <= took <= 20 + 1.5 * (omitted + duration):
        raise ParseError(f"iperf3 measured for {took:g} s of {duration:g}")
    arrived, left = _count(received, "bytes"), _count(sent, "bytes")
    if arrived > (MOST_OMITTED if omitted else MOST) * left:
        raise ParseError(f"iperf3 counted {arrived} bytes received of {left} that were sent")
    if "retransmits" in sent and (again := _count(sent, "retransmits")) > left / SMALLEST + 1000:
        raise ParseError(f"iperf3 counted {again} retransmits of {left} bytes that were sent")


def check_streams(report: JSON, streams: int) -> None:
    """Raises ParseError where it lists another number of streams."""
    listed = len(_list(_get(report, "end"), "streams"))
    if listed != streams:
        raise ParseError(f"iperf3 reported {listed} of {streams} streams")


def _check_as_asked(report: JSON, parameters: JSON) -> None:
    test = _get(_get(report, "start"), "test_start")
    for name, key in (("protocol", "protocol"), ("streams", "num_streams")):
        did, asked = str(_get(test, key)).lower(), str(parameters[name])
        if did != asked:
            raise ParseError(f"iperf3 ran with {name} {did[:40]}, not {asked}")


def rates(receiver: JSON, omitted: float) -> list[Sample]:
    """Goodput of each interval by the receiver's own report. Raises ParseError."""
    whole = [total for total in _totals(receiver) if not _sliver(total)]
    return [Sample("goodput", rate(total), *_time(total, omitted)) for total in whole]


def _report(stdout: str, stderr: str, exit_code: int | None) -> JSON:
    """What was printed, where it is a report of a trial that ended well."""
    if exit_code in STOPPED:
        raise failure(TOOL, stdout, stderr, exit_code)
    try:
        report = json.loads(stdout)
    except (ValueError, RecursionError) as error:
        if exit_code != 0:
            raise failure(TOOL, stdout, stderr, exit_code) from None
        raise ParseError(f"iperf3's report {no_json(stdout, error)}") from None
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
    streams: int = parameters["streams"]
    return block * 8 * streams / _seconds(received)


def _tcp(sent: JSON, sender: JSON, omitted: float) -> list[Sample]:
    each = [
        Sample("retransmits", _count(total, "retransmits"), *_time(total, omitted))
        for total in _totals(sender)
    ]
    return [Sample("retransmits", _count(sent, "retransmits")), *each]


def _udp(received: JSON, sent: JSON, receiver: JSON, omitted: float) -> list[Sample]:
    totals = _totals(receiver)
    packets = sum(_count(total, "packets") for total in totals)
    if packets <= 0:
        raise ParseError("iperf3: no datagram was counted")
    # Not end.sum_received: 3.12 counts the losses of omitted seconds there, https://github.com/esnet/iperf/issues/1489
    lost = sum(_number(total, "lost_packets") for total in totals)
    if lost < 0:
        raise ParseError("iperf3 counted fewer than no datagram lost: they overtook each other")
    missing, of = _unheard(sent, packets, lost)
    spoken = [total for total in totals if _count(total, "packets") > 0 and not _sliver(total)]
    streams = _list(_get(receiver, "end"), "streams")
    late = sum(_count(_get(stream, "udp"), "out_of_order") for stream in streams)
    return [
        Sample("offered", rate(sent)),
        Sample("datagrams", _count(sent, "packets")),
        Sample("loss", missing / of, resolution=1 / of),
        *_losses(spoken, omitted),
        Sample("reordered", late),
        Sample("jitter", _number(received, "jitter_ms") / 1000),
        *_jitters(spoken, omitted),
    ]


def _losses(totals: list[JSON], omitted: float) -> list[Sample]:
    """Of each interval in which something arrived: where nothing does, the receiver counts nothing.

    A datagram that comes after its successors is taken off the losses of the interval in which it comes, so these
    can be fewer than none; such an interval says nothing of its own.
    """
    return [
        Sample("loss", lost / _count(total, "packets"), *_time(total, omitted))
        for total in totals
        if (lost := _number(total, "lost_packets")) >= 0
    ]


def _jitters(totals: list[JSON], omitted: float) -> list[Sample]:
    """As it was at the end of each interval in which something arrived."""
    return [Sample("jitter", _number(total, "jitter_ms") / 1000, *_time(total, omitted)) for total in totals]


def _unheard(sent: JSON, packets: int, lost: float) -> tuple[float, int]:
    """(datagrams that did not arrive, of how many): by the receiver, unless it fell silent before the sender ended."""
    # It counts gaps in the numbers of those that arrive, so nothing after the last of them: where the first 53 of 2401
    # arrived, it says that none was lost (fixture 3.12-udp-tail-lost, seen between nodes).
    all_sent = _count(sent, "packets")
    under_way = all_sent * TAIL / _seconds(sent)
    return (lost, packets) if all_sent - packets <= under_way else (all_sent - packets + lost, all_sent)


def _sides(report: JSON) -> tuple[JSON, JSON]:
    """(the sender's own report, the receiver's): the sender's rates would count what it only queued."""
    server = _get(report, "server_output_json")
    return (
        (server, report) if _get(_get(_get(report, "start"), "test_start"), "reverse") else (report, server)
    )


def _totals(receiver: JSON) -> list[JSON]:
    """Each counted interval, all streams together."""
    totals = [_get(interval, "sum") for interval in _list(receiver, "intervals")]
    totals = [total for total in totals if not _get(total, "omitted")]
    if not totals:
        raise ParseError("iperf3 reported no interval")
    return totals


def _time(total: JSON, omitted: float) -> tuple[float, float]:
    """(start, end) of an interval in s since the trial's start; the tool counts from the end of what it omits."""
    return round(_number(total, "start") + omitted, 6), round(_number(total, "end") + omitted, 6)


def _sliver(total: JSON) -> bool:
    begin, end = _time(total, 0)
    return end - begin < SLIVER


def rate(total: JSON) -> float:
    """bits_per_second, which must be what bytes and seconds say: damage to one of them is seen so."""
    found = _number(total, "bits_per_second")
    said = _count(total, "bytes") * 8 / _seconds(total)
    if abs(found - said) > 0.001 * said:
        raise ParseError(
            f"iperf3 gave a rate of {found:.6g} bit/s for bytes and seconds that make {said:.6g}"
        )
    return found


def _seconds(total: JSON) -> float:
    seconds = _number(total, "seconds")
    if seconds <= 0:
        raise ParseError(f"iperf3 measured for {seconds:g} s")
    return seconds


def _number(report: Any, key: str) -> float:
    return number(TOOL, key, _get(report, key))


def _count(report: Any, key: str) -> int:
    return count(TOOL, key, _get(report, key))


def _list(report: Any, key: str) -> list[Any]:
    found = _get(report, key)
    if not isinstance(found, list):
        raise ParseError(f"iperf3's report has no list of {key}")
    return found


def _get(report: Any, key: str) -> Any:
    if not isinstance(report, dict) or key not in report:
        raise ParseError(f"iperf3's report has no {key}")
    return report[key]
