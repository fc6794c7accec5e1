"""iperf 2 --enhanced --format b: a line of text per stream in bytes and bit/s, with UDP the server's beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from overlaylab.core.model import JSON, Sample
from overlaylab.tools.parsers import ParseError, checked, failure

TOOL = "iperf"
# What the benchmark lets follow iperf's own output.
END = "-- end"
# Of the time asked for: what a stream sends for at least.
LEAST = 0.99
# Of the time asked for: what the server hears of a stream at least. Its clock starts with what arrives first.
HEARD = 0.5
# Datagrams that the server counted to those sent: each may have come twice.
MOST = 2.0
_ROW = re.compile(
    r"\[ *(?P<id>\d{1,6})\] +(?P<start>\d{1,9}\.\d{1,6})-(?P<end>\d{1,9}\.\d{1,6}) sec +"
    r"(?P<bytes>\d{1,18}) Bytes +(?P<rate>\d{1,18}) bits/sec(?P<rest>.*)",
    re.ASCII,
)
_RECEIVED = re.compile(
    r" +(?P<jitter>\d{1,9}\.\d{1,6}) ms +(?P<lost>\d{1,12})/ *(?P<total>\d{1,12}) \(.*", re.ASCII
)
_LATE = re.compile(
    r"\[ *(?P<id>\d{1,6})\] +[\d.]+-[\d.]+ sec +(?P<late>\d{1,12}) datagrams received out-of-order", re.ASCII
)
_HEAD = re.compile(r"\[ *(?P<id>\d{1,6})\] Server Report:", re.ASCII)


@dataclass(frozen=True)
class _Row:
    """What one stream sent, or what the server received of it, from 0 to `seconds`."""

    bytes: int
    seconds: float
    rest: str


def parse(stdout: str, stderr: str, exit_code: int | None, parameters: JSON) -> list[Sample]:
    """Goodput of all streams together. UDP, as the server reports it: also loss, jitter (mean over the streams) and
    datagrams that were reordered; offered and datagrams as the client sent them.

    TCP's client stops its clock once the server has closed, and so received everything: its own bytes are those
    received. Its line for the sum stops earlier and is not used. Raises ParseError.
    """
    if exit_code != 0:
        raise failure(TOOL, stdout, stderr, exit_code)
    lines = stdout.splitlines()
    if lines[-1:] != [END]:
        raise ParseError("iperf's output is cut short")
    sent, received, late = _rows(lines[:-1])
    streams = parameters["streams"]
    words = [line.strip() for line in stderr.splitlines() if line.strip()]
    told = f": {words[-1]}" if words else ""
    # It exits 0 whatever happened, and a stream that broke off has a line like any other.
    broken = "failed" in stderr or any(row.seconds < LEAST * parameters["duration"] for row in sent.values())
    if len(sent) == streams and broken:
        raise ParseError(f"iperf broke off{told}")
    if len(sent) != streams:
        raise ParseError(f"iperf reported {len(sent)} of {streams} streams{told}")
    _check_time(sent, LEAST, parameters["duration"])
    if parameters["protocol"] == "tcp":
        return checked(TOOL, [Sample("goodput", _rate(sent))])
    if received.keys() != sent.keys():
        raise ParseError(f"iperf's server reported {len(received)} of {streams} streams{told}")
    parts = [part for row in received.values() if (part := _RECEIVED.fullmatch(row.rest))]
    if len(parts) != len(received):
        raise ParseError("iperf's server reported no loss and no jitter")
    lost, total = (sum(int(part[name]) for part in parts) for name in ("lost", "total"))
    if total <= 0 or lost > total:
        raise ParseError(f"iperf's server counted {lost} datagrams lost of {total}")
    _check_time(received, HEARD, parameters["duration"])
    size = parameters["datagram"]
    left, arrived = (sum(row.bytes for row in rows.values()) for rows in (sent, received))
    # Some streams' last datagram is not among those that the client counts.
    if max(arrived, total * size) > MOST * left + 10 * streams * size:
        raise ParseError(
            f"iperf's server counted {max(arrived // size, total)} datagrams of {left // size} that were sent"
        )
    # A datagram that was late may have been counted twice, or as lost.
    if abs(arrived - (total - lost) * size) > (streams + sum(late.values())) * size:
        raise ParseError(f"iperf's server counted {arrived} bytes in {total - lost} datagrams of {size}")
    return checked(
        TOOL,
        [
            Sample("goodput", _rate(received)),
            Sample("offered", _rate(sent)),
            Sample("datagrams", left // size),
            Sample("loss", lost / total, resolution=1 / total),
            Sample("reordered", sum(late.values())),
            Sample("jitter", sum(float(part["jitter"]) for part in parts) / len(parts) / 1000),
        ],
    )


def _check_time(rows: dict[str, _Row], least: float, duration: float) -> None:
    """Streams that cannot be of a trial so long: one that takes longer than its timeout is stopped. Raises ParseError."""
    for row in rows.values():
        if not least * duration <= row.seconds <= 30 + 2 * duration:
            raise ParseError(f"iperf reported a stream of {row.seconds:g} s of {duration:g}")


def _rows(lines: list[str]) -> tuple[dict[str, _Row], dict[str, _Row], dict[str, int]]:
    """What the client sent, what the server received, and what was late, by stream."""
    sent: dict[str, _Row] = {}
    received: dict[str, _Row] = {}
    late: dict[str, int] = {}
    told: set[str] = set()
    for line in lines:
        if head := _HEAD.fullmatch(line):
            told.add(head["id"])
        elif out := _LATE.fullmatch(line.rstrip()):
            late[out["id"]] = int(out["late"])
        elif row := _ROW.fullmatch(line):
            rows = received if row["id"] in told else sent
            if row["id"] in rows:
                raise ParseError(f"iperf reported stream {row['id']} twice")
            rows[row["id"]] = _row(row)
    return sent, received, late


def _row(match: re.Match[str]) -> _Row:
    seconds, count, rate = float(match["end"]), int(match["bytes"]), int(match["rate"])
    if float(match["start"]) != 0 or seconds <= 0:
        raise ParseError(f"iperf reported a part of a stream, from {match['start']} to {match['end']} s")
    # Times have four decimals: of a second or more they say a rate to less than a thousandth.
    if abs(rate - count * 8 / seconds) > 0.001 * rate + 1:
        raise ParseError(f"iperf gave {rate} bit/s for {count} bytes in {seconds:g} s")
    return _Row(count, seconds, match["rest"])


def _rate(rows: dict[str, _Row]) -> float:
    """bit/s of all streams from the first byte to the last."""
    return 8 * sum(row.bytes for row in rows.values()) / max(row.seconds for row in rows.values())
