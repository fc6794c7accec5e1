"""connect (on_node/connect.py): a line of JSON per connection, ``[seconds since the first began, seconds]``."""

from __future__ import annotations

import json
from statistics import median

from overlaylab.core.model import JSON, Sample
from overlaylab.tools.parsers import ParseError, checked, failure, number


def parse(stdout: str, stderr: str, exit_code: int | None, parameters: JSON) -> list[Sample]:
    """latency_rtt, as a connection is there when the answer to its first packet is: the median, then each."""
    if exit_code != 0:
        raise failure("connect", stdout, stderr, exit_code)
    try:
        rows = [json.loads(line) for line in stdout.splitlines()]
        taken = [tuple(number("connect", "a time", one) for one in (at, seconds)) for at, seconds in rows]
    except (ValueError, TypeError, RecursionError) as wrong:
        raise ParseError(f"connect printed a line in another form: {wrong}") from wrong
    if len(taken) != parameters["count"]:
        raise ParseError(f"connect set up {len(taken)} connections, not {parameters['count']}")
    if any(seconds <= 0 for _, seconds in taken):
        raise ParseError("connect timed a connection at 0 s or less")
    return checked(
        "connect",
        [
            Sample("latency_rtt", median(seconds for _, seconds in taken), quantile=0.5),
            *(Sample("latency_rtt", seconds, at, at) for at, seconds in taken),
        ],
    )
