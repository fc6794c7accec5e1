"""iperf3 --json --get-server-output: one JSON object with the client's and the server's report."""

from __future__ import annotations

import json
from typing import Any

from overlaylab.model import JSON, Sample
from overlaylab.parsers import STOPPED, ParseError, failure


def parse(stdout: str, stderr: str, exit_code: int | None, parameters: JSON) -> list[Sample]:
    """Goodput (whole, and per second as the receiver counted it), then by protocol.

    TCP: retransmits. UDP: offered (payload sent), datagrams sent, loss, and jitter as RFC 3550 defines it.
    Raises ParseError.
    """
    if exit_code in STOPPED:
        raise failure("iperf3", stdout, stderr, exit_code)
    try:
        report = json.loads(stdout)
    except ValueError:
        if exit_code != 0:
            raise failure("iperf3", stdout, stderr, exit_code) from None
        raise ParseError(
            "iperf3's JSON is cut short" if stdout.strip() else "iperf3 printed nothing"
        ) from None
    if not isinstance(report, dict):
        raise ParseError("iperf3 printed JSON that is no report")
    if "error" in report:
        raise ParseError(f"iperf3: {report['error']}")
    if exit_code != 0:
        raise failure("iperf3", "", stderr, exit_code)
    end = _get(report, "end")
    received = _get(end, "sum_received")
    if _get(received, "bytes") <= 0:
        raise ParseError("iperf3: no byte arrived at the receiver")
    resolution = None
    if parameters["protocol"] == "tcp":
        # The receiver counts whole blocks (Nread in iperf's net.c fills its buffer).
        step = _get(_get(_get(report, "start"), "test_start"), "blksize") * 8
        resolution = step * parameters["streams"] / _get(received, "seconds")
    samples = [Sample("goodput", _get(received, "bits_per_second"), resolution=resolution)]
    totals = _receiver_totals(report)
    for total in totals:
        begin, end_ = (round(_get(total, key) + parameters["omit"], 6) for key in ("start", "end"))
        # The last interval may be a sliver of some ms after the sender has stopped: no rate to speak of.
        if end_ - begin >= 0.5:
            samples.append(Sample("goodput", _get(total, "bits_per_second"), begin, end_))
    sent = _get(end, "sum_sent")
    if parameters["protocol"] == "tcp":
        return [*samples, Sample("retransmits", _get(sent, "retransmits"))]
    return [*samples, *_udp(received, sent, totals)]


def _udp(received: JSON, sent: JSON, totals: list[JSON]) -> list[Sample]:
    packets = sum(_get(total, "packets") for total in totals)
    if packets <= 0:
        raise ParseError("iperf3: no datagram was counted")
    # Not end.sum_received: 3.12 counts the losses of omitted seconds there, https://github.com/esnet/iperf/issues/1489
    lost = sum(_get(total, "lost_packets") for total in totals)
    if lost < 0:
        raise ParseError("iperf3 counted fewer than no datagram lost: they overtook each other")
    return [
        Sample("offered", _get(sent, "bits_per_second")),
        Sample("datagrams", _get(sent, "packets")),
        Sample("loss", lost / packets, resolution=1 / packets),
        Sample("jitter", _get(received, "jitter_ms") / 1000),
    ]


def _receiver_totals(report: JSON) -> list[JSON]:
    """Each counted interval, all streams together. The sender's own would count what it only queued."""
    if not _get(_get(_get(report, "start"), "test_start"), "reverse"):
        report = _get(report, "server_output_json")
    totals = [_get(interval, "sum") for interval in _get(report, "intervals")]
    totals = [total for total in totals if not _get(total, "omitted")]
    if not totals:
        raise ParseError("iperf3 reported no interval")
    return totals


def _get(report: Any, key: str) -> Any:
    if not isinstance(report, dict) or key not in report:
        raise ParseError(f"iperf3's report has no {key}")
    return report[key]
