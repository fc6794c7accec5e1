"""Parsers: from what a tool printed to samples in base units. Pure functions, one file per tool.

``parse(stdout, stderr, exit_code, parameters) -> list[Sample]`` or ParseError. Strict on purpose: an unknown
unit, a missing field or zero bytes is an error, never a zero. Where a tool reports over time, the sample
of the whole trial has no t_start and t_end, the parts have both.
"""

from __future__ import annotations


class ParseError(Exception):
    """The output holds no valid measurement. ``reason`` is a sentence for the results table."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


STOPPED = (None, 124, 137)
"""Exit codes of a tool that took too long: the runner's own, and timeout(1)'s for TERM and for KILL."""


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
