"""ping -n -D (iputils): one line per reply, with the time of arrival, the sequence number and the RTT."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

from overlaylab.core.model import JSON, Sample
from overlaylab.tools.parsers import ParseError, checked, failure

_REPLY = re.compile(
    r"\[(?P<at>\d{1,15}\.\d{1,9})\] \d+ bytes from \S+: icmp_seq=\d+ ttl=\d+ "
    r"time=(?P<rtt>\d{1,9}(\.\d{1,9})?) (?P<unit>\S+)",
    re.ASCII,
)
# The summary of the pings of BSD and BusyBox.
_OTHER = re.compile(r"\d{1,9} packets transmitted, \d{1,9} packets received", re.ASCII)
_SUMMARY = re.compile(r"(\d{1,9}) packets transmitted, (\d{1,9}) received,.*", re.ASCII)

# Of the requests asked for: ping stops before the last ones where routers answered too.
LEAST = 0.9


def parse(stdout: str, stderr: str, exit_code: int | None, parameters: JSON) -> list[Sample]:
    """latency_rtt: the median (quantile 0.5), then each reply at its time; loss. Raises ParseError.

    Times count from the first reply. A duplicate reply is no further sample.
    """
    # ping's exit code 1 says that a reply is missing: here that is loss, unless all are missing.
    if exit_code not in (0, 1):
        raise failure("ping", stdout, stderr, exit_code)
    summary = next((m for line in stdout.splitlines() if (m := _SUMMARY.fullmatch(line))), None)
    if summary is None:
        if other := _OTHER.search(stdout):
            raise ParseError(f"ping is not that of iputils, by its summary: {other[0]!r}")
        raise ParseError("ping printed no summary: its output is cut short")
    sent, received = int(summary[1]), int(summary[2])
    if not LEAST * parameters["count"] <= sent <= parameters["count"]:
        raise ParseError(f"ping counted {sent} requests of {parameters['count']}")
    if received > sent:
        raise ParseError(f"ping counted {received} replies to {sent} requests")
    if received == 0:
        raise ParseError(f"ping got no reply to {sent} requests{_complaint(stdout)}")
    replies = list(_replies(stdout))
    if len(replies) != received:
        raise ParseError(f"ping counted {received} replies and printed {len(replies)}")
    first = replies[0][0]
    return checked(
        "ping",
        [
            Sample("latency_rtt", median(rtt for _, rtt in replies), quantile=0.5),
            *(Sample("latency_rtt", rtt, round(at - first, 6), round(at - first, 6)) for at, rtt in replies),
            Sample("loss", (sent - received) / sent, resolution=1 / sent),
        ],
    )


def _replies(stdout: str) -> Iterator[tuple[float, float]]:
    """(arrived at, round trip), both in s."""
    for line in stdout.splitlines():
        if "bytes from" not in line or line.endswith("(DUP!)"):
            continue
        match = _REPLY.fullmatch(line)
        if match is None:
            raise ParseError(f"ping printed a reply in another form: {line!r}")
        if match["unit"] != "ms":
            raise ParseError(f"ping gave a time in {match['unit']!r}, not in 'ms'")
        yield float(match["at"]), float(f"{match['rtt']}e-3")


def _complaint(stdout: str) -> str:
    """What a router or the own host answered instead, such as Destination Host Unreachable."""
    said = next(
        (line for line in stdout.splitlines() if " icmp_seq=" in line and "bytes from" not in line), ""
    )
    return f": {said.split(' ', 4)[-1]}" if said else ""
