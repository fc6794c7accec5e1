"""A report that ``iperf3 --client … --json`` printed, with the server's own report in it (``--get-server-output``) or not."""

from __future__ import annotations

import json
from typing import Any

from overlaylab.core.model import JSON, Sample
from overlaylab.store.imported_base import Measured, MeasuredTrial, member, moment, number, stamp, words
from overlaylab.tools.parsers import ParseError, count, iperf3

KEYS = {"start", "intervals", "end"}
# iperf3's MAX_STREAMS.
MOST_STREAMS = 128


def read(report: JSON) -> Measured:
    """Raises ParseError."""
    if "error" in report:
        raise ParseError(f"iperf3 ended with an error: {words(str(report['error']))}")
    start = member(report, "start", dict, "iperf3's report")
    if "connecting_to" not in start:
        raise ParseError("it is the report of an iperf3 server, not of a client")
    test = member(start, "test_start", dict, "iperf3's start")
    if test.get("bidir") or _both_ways(report):
        raise ParseError("it is of a test in both directions at once")
    parameters = _parameters(test)
    if parameters["duration"] == 0:  # so many bytes or blocks were asked for, not so many seconds
        parameters["duration"] = _seconds_sent(report)
    reverse = bool(test.get("reverse"))
    try:
        samples = (
            iperf3.parse(json.dumps(report), "", 0, parameters)
            if "server_output_json" in report
            else _without_server(report, parameters, reverse)
        )
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        raise ParseError(
            f"iperf3's report has something else than numbers where they belong: {error}"
        ) from None
    for sample in samples:
        number(sample.value, f"iperf3's {sample.metric}")
    timestamp = member(start, "timestamp", dict, "iperf3's start")
    seconds = number(timestamp.get("timesecs"), "iperf3's timesecs")
    return Measured(
        tool="iperf3",
        tool_version=words(start.get("version")),
        started_at=stamp(moment(seconds, "iperf3's timesecs")),
        machine=_machine(start.get("system_info")),
        trials=(
            MeasuredTrial(
                benchmark=f"iperf3 {parameters['protocol']}",
                parameters=parameters,
                direction="server-to-client" if reverse else "client-to-server",
                duration=parameters["omit"] + parameters["duration"],
                raw=json.dumps(report, ensure_ascii=False),
                samples=tuple(samples),
            ),
        ),
    )


def _parameters(test: JSON) -> dict[str, Any]:
    """As the benchmark iperf3 names them: times in s, sizes in bytes, rates in bit/s of all streams together."""
    protocol = str(test.get("protocol")).lower()
    if protocol not in ("tcp", "udp"):
        raise ParseError(f"iperf3's protocol is {words(str(test.get('protocol')))}, not TCP or UDP")
    streams = count("iperf3", "num_streams", test.get("num_streams"))
    if not 1 <= streams <= MOST_STREAMS:
        raise ParseError(f"iperf3's num_streams is {streams}, not 1 to {MOST_STREAMS}")
    block = count("iperf3", "blksize", test.get("blksize"))
    if block < 1:
        raise ParseError(f"iperf3's blksize is {block}")
    found: dict[str, Any] = {
        "protocol": protocol,
        "streams": streams,
        "duration": number(test.get("duration"), "iperf3's duration"),
        "omit": count("iperf3", "omit", test.get("omit", 0)),
        "length" if protocol == "tcp" else "datagram": block,
    }
    offered = test.get("target_bitrate")
    if offered:
        found["offered"] = count("iperf3", "target_bitrate", offered) * streams
    return found


def _both_ways(report: JSON) -> bool:
    """Whether it has totals of a second direction: before 3.13, `test_start` does not tell."""
    end = report.get("end")
    return isinstance(end, dict) and any(name.endswith("_bidir_reverse") for name in end)


def _seconds_sent(report: JSON) -> float:
    sent = member(member(report, "end", dict, "iperf3's report"), "sum_sent", dict, "iperf3's end")
    seconds = number(sent.get("seconds"), "iperf3's seconds of sending")
    if seconds <= 0:
        raise ParseError(f"iperf3 sent for {seconds:g} s")
    return seconds


def _without_server(report: JSON, parameters: JSON, reverse: bool) -> list[Sample]:
    """The totals; in reverse the goodput of each interval too: else the client's count what it queued, not what arrived.

    UDP's losses and jitter are the receiver's; where seconds were omitted they count these too
    (https://github.com/esnet/iperf/issues/1489) and are left out.
    """
    end = member(report, "end", dict, "iperf3's report")
    if parameters["protocol"] == "udp" and "sum_received" not in end:
        raise ParseError("iperf3 older than 3.11 does not say what arrived by UDP")
    received = member(end, "sum_received", dict, "iperf3's end")
    if number(received.get("bytes"), "iperf3's received bytes") <= 0:
        raise ParseError("no byte arrived at the receiver")
    samples = [Sample("goodput", iperf3.rate(received))]
    if reverse:
        samples += iperf3.rates(report, parameters["omit"])
    sent = member(end, "sum_sent", dict, "iperf3's end")
    iperf3.check_streams(report, parameters["streams"])
    iperf3.check_totals(received, sent, parameters)
    if parameters["protocol"] == "tcp":
        if "retransmits" in sent:  # not where the sender's kernel does not count them
            samples.append(Sample("retransmits", count("iperf3", "retransmits", sent["retransmits"])))
        return samples
    samples += [
        Sample("offered", iperf3.rate(sent)),
        Sample("datagrams", count("iperf3", "packets", sent.get("packets"))),
    ]
    if parameters["omit"] == 0:
        counted = count("iperf3", "packets", received.get("packets"))
        lost = number(received.get("lost_packets"), "iperf3's lost datagrams")
        if counted <= 0 or not 0 <= lost <= counted:
            raise ParseError("iperf3's count of lost datagrams cannot be")
        samples += [
            Sample("loss", lost / counted, resolution=1 / counted),
            Sample("jitter", number(received.get("jitter_ms"), "iperf3's jitter") / 1000),
        ]
    return samples


def _machine(info: object) -> str | None:
    """uname without the second word, which is the machine's name."""
    said = info.split() if isinstance(info, str) else []
    return words(" ".join(said[:1] + said[2:]))
