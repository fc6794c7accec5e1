"""sockperf under-load --full-rtt --full-log: its summary, then a line of CSV per answered message."""

from __future__ import annotations

import re

from overlaylab.core.model import JSON, Sample
from overlaylab.tools.parsers import ParseError, checked, failure

TOOL = "sockperf"
# Of the time asked for: what a trial that nothing broke off lasts at least.
LEAST = 0.9
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NUMBER = r"(\d{1,12}\.\d{1,9})"
_TOTAL = re.compile(
    rf"\[Total Run\] RunTime={_NUMBER} sec; Warm up time=\d+ msec; SentMessages=(\d{{1,12}});.*", re.ASCII
)
_VALID = re.compile(
    r"\[Valid Duration\] RunTime=[\d.]+ sec; SentMessages=\d+; ReceivedMessages=(\d{1,12})", re.ASCII
)
_ERRORS = re.compile(
    r"# dropped messages = (\d{1,12}); # duplicated messages = (\d{1,12}); # out-of-order messages = (\d{1,12})",
    re.ASCII,
)
_PERCENTILE = re.compile(rf"---> percentile +{_NUMBER} = +{_NUMBER}", re.ASCII)
_ROW = re.compile(rf"(\d{{1,12}}), {_NUMBER}, {_NUMBER}, {_NUMBER}", re.ASCII)
_HEAD, _RULE = "packet, txTime(sec), rxTime(sec), rtt(usec)", "-" * 30


def parse(stdout: str, stderr: str, exit_code: int | None, parameters: JSON) -> list[Sample]:
    """latency_rtt of each answered message at the time when it was sent, and sockperf's own percentiles of them;
    loss, messages that came twice or were overtaken; with UDP offered and datagrams.

    sockperf leaves the first 400 ms and the last 50 ms out. Messages that were overtaken are not in its log.
    Times count from the first message. Raises ParseError.
    """
    if exit_code != 0:
        raise failure(TOOL, stdout, stderr, exit_code)
    lines = [line.removeprefix("sockperf: ") for line in _COLOUR.sub("", stdout).splitlines()]
    total, valid, errors = (_first(pattern, lines) for pattern in (_TOTAL, _VALID, _ERRORS))
    if total is None or valid is None or errors is None:
        said = next((line for line in lines if line.startswith(("No ", "ERROR"))), "its output is cut short")
        raise ParseError(f"sockperf gave no result: {said.strip()}")
    if (took := float(total[1])) < LEAST * parameters["duration"]:
        raise ParseError(f"sockperf ran for {took:g} s of {parameters['duration']}")
    received = int(valid[1])
    dropped, twice, overtaken = (int(errors[n]) for n in (1, 2, 3))
    rows = _rows(lines)
    if not rows or len(rows) != received:
        raise ParseError(f"sockperf counted {received} answers and logged {len(rows)}")
    # Not the messages that it calls sent: those end with the last that was answered.
    sent = received + dropped + overtaken
    first = rows[0][0]
    samples = [
        *_percentiles(lines, received),
        *(Sample("latency_rtt", rtt, round(at - first, 9), round(at - first, 9)) for at, rtt in rows),
        Sample("loss", dropped / sent, resolution=1 / sent),
        Sample("duplicates", twice),
        Sample("reordered", overtaken),
    ]
    if parameters["protocol"] == "udp":
        samples += [
            Sample("offered", int(total[2]) * parameters["message"] * 8 / took),
            Sample("datagrams", sent),
        ]
    return checked(TOOL, samples)


def _first(pattern: re.Pattern[str], lines: list[str]) -> re.Match[str] | None:
    return next((match for line in lines if (match := pattern.fullmatch(line.strip()))), None)


def _rows(lines: list[str]) -> list[tuple[float, float]]:
    """(sent at, round trip), both in s, of the log between its head and its end."""
    if _HEAD not in lines:
        raise ParseError("sockperf's log is missing")
    rows: list[tuple[float, float]] = []
    ended = False
    for line in lines[lines.index(_HEAD) + 1 :]:
        if line == _RULE:
            ended = True
            break
        match = _ROW.fullmatch(line)
        if match is None or int(match[1]) != len(rows):
            raise ParseError(f"sockperf's log has another line than it should: {line[:60]!r}")
        sent, came, rtt = float(match[2]), float(match[3]), float(f"{match[4]}e-6")
        # Printed with 9 and 3 decimals, from the same two numbers.
        if abs(came - sent - rtt) > 3e-9:
            raise ParseError(f"sockperf's log does not agree with itself: {line[:60]!r}")
        rows.append((sent, rtt))
    if not ended:
        raise ParseError("sockperf's log is cut short")
    return rows


def _percentiles(lines: list[str], observations: int) -> list[Sample]:
    """Those beyond which there is an observation at all: the 99.999th of a thousand is their maximum."""
    found = [match for line in lines if (match := _PERCENTILE.fullmatch(line.strip()))]
    samples = {}
    for match in found:
        quantile = float(match[1]) / 100
        if 0 < quantile < 1 and (1 - quantile) * observations >= 1:
            samples[quantile] = Sample("latency_rtt", float(f"{match[2]}e-6"), quantile=quantile)
    if 0.5 not in samples and observations > 1:
        raise ParseError("sockperf printed no median")
    return list(samples.values())
