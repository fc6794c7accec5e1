"""Parsers: from what a tool printed to samples in base units. Pure functions, one file per tool.

``parse(stdout, stderr, exit_code, parameters) -> list[Sample]`` or ParseError. Strict on purpose: an unknown
unit, a missing field or zero bytes is an error, never a zero. Where a tool reports over time, the sample
of the whole trial has no t_start and t_end, the parts have both.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import sys
from collections.abc import Sequence
from typing import Any

from overlaylab.core.metrics import METRICS, Metric
from overlaylab.core.model import Sample


class ParseError(Exception):
    """The output holds no valid measurement. ``reason`` is a sentence for the results table."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


# Exit codes of a tool that took too long: the runner's own, and timeout(1)'s for TERM and for KILL.
STOPPED = (None, 124, 137)


def failure(tool: str, stdout: str, stderr: str, exit_code: int | None) -> ParseError:
    """The reason when a tool did not end well: its own words where it said any.

    exit_code: None where the runner ended the tool, negative where a signal did.
    """
    if exit_code in STOPPED:  # what it had printed until then is no complaint
        return ParseError(f"{tool} did not end in time and was stopped")
    lines = [line.strip() for line in (stderr or stdout).splitlines() if line.strip()]
    words = f": {lines[-1]}" if lines else ""
    if exit_code < 0:
        return ParseError(f"{tool} was killed by signal {-exit_code}{words}")
    return ParseError(f"{tool} failed with exit code {exit_code}{words}")


# A number as the tools print it. float() would also take ``nan``, ``1_000`` and digits of other scripts.
_DIGITS = re.compile(r"-?[0-9]{1,300}(\.[0-9]{1,300})?")
# Beyond it floats skip whole numbers, so it is none that was counted.
LARGEST_COUNT = 2**53


def number(tool: str, name: str, value: Any) -> float:
    """A finite number out of JSON, or out of a text that is one. Raises ParseError."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = float(value) if "." in value else int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParseError(f"{tool} gave {name} as {_short(value)}, which is no number")
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an integer beyond what a float holds
        finite = False
    if not finite:
        raise ParseError(f"{tool} gave {name} as {_short(value)}, which is no finite number")
    return value


def count(tool: str, name: str, value: Any) -> int:
    """A whole number from zero to LARGEST_COUNT. Raises ParseError."""
    found = number(tool, name, value)
    if found != int(found) or not 0 <= found <= LARGEST_COUNT:
        raise ParseError(f"{tool} gave {name} as {_short(value)}, which is no count")
    return int(found)


def checked(tool: str, samples: list[Sample], own: Sequence[Metric] = ()) -> list[Sample]:
    """The samples, where each is a value that its metric can have. Raises ParseError.

    The last line of defence, the same for all tools: output may be damaged and still have its form.
    own: metrics that the tool declares, which no other has.
    """
    metrics = METRICS | {metric.name: metric for metric in own}
    for sample in samples:
        numbers = (sample.value, sample.t_start or 0.0, sample.t_end or 0.0, sample.resolution or 1.0)
        name = sample.metric
        if not all(map(math.isfinite, numbers)):
            raise ParseError(f"{tool} gave no finite {name}")
        metric = metrics[name]
        zero = metric.zero_whole if sample.t_start is None else metric.zero_part
        if not 0 <= sample.value <= metric.most or (sample.value == 0 and not zero):
            raise ParseError(f"{tool} gave {name} as {sample.value:g}, which it cannot be")
        if not 0 <= (sample.t_start or 0.0) <= (sample.t_end or 0.0):
            raise ParseError(f"{tool} gave {name} for a time that cannot be")
        if sample.resolution is not None and sample.resolution <= 0:
            raise ParseError(f"{tool} gave {name} in steps that cannot be")
    _check_quantiles(tool, samples)
    return samples


def _check_quantiles(tool: str, samples: Sequence[Sample]) -> None:
    whole = [
        (sample.metric, sample.quantile, sample.value)
        for sample in samples
        if sample.quantile is not None and sample.t_start is None
    ]
    whole.sort(key=lambda each: each[:2])
    for (metric, lower, low), (other, higher, high) in itertools.pairwise(whole):
        if metric == other and low > high:
            raise ParseError(
                f"{tool} gave percentile {100 * lower:g} of {metric} as {low:g}, "
                f"above percentile {100 * higher:g}, {high:g}"
            )


def no_json(text: str, error: ValueError | RecursionError) -> str:
    """What is wrong with a text that should be one JSON value: the end of a sentence that names the text.

    error: what json.loads raised for it.
    """
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    if not text.strip():
        return "is empty"
    if not isinstance(error, json.JSONDecodeError):
        if "digits" in str(error):  # Python's words go on to say how a program may allow more
            return f"has a number of more than {sys.get_int_max_str_digits()} digits"
        return f"is no JSON: {error}"
    at = error.pos
    if at >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
        return "is cut short"
    words = text[at:].splitlines()[0][:40]
    if text[:at].strip():
        return f"has {words!r} in line {error.lineno}, which is no JSON"
    kind = "HTML or XML" if words.startswith("<") else "no JSON"
    return f"begins with {words!r}, which is {kind}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
