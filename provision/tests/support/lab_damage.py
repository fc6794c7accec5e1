"""Recorded outputs of real tools, strategies of hypothesis that damage them, and the rule that parsers are held to.

Mutational fuzzing with a stated oracle, as Miller, Fredriksen and So began it: An Empirical Study of the Reliability of
UNIX Utilities, Communications of the ACM 33(12), 1990.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from overlaylab.core.model import JSON, Sample
from overlaylab.tools import base
from overlaylab.tools.parsers import ParseError

FIXTURES = Path(__file__).parents[1] / "fixtures"
# Tests of qperf that end well without a sample.
MEASURES_NOTHING = ("conf",)
EXIT_CODES = (0, 1, 2, 124, 137, -9, -15, None)
# What stands in the place of a number: what float() takes and no tool prints, and what breaks arithmetic.
NUMBERS = (
    *("0", "-0", "0.0", "-1", "1", "00", "nan", "NaN", "inf", "Infinity", "-Infinity", "1e999", "1e-999"),
    *("1_000", "9" * 400, "1." + "0" * 400, "٣", "²", "0x10", "1,000", "", "true", "null", '"5"', "[]", "{}"),
    "[" * 3000,
)
PIECES = (
    "\0",
    "\n",
    "\r",
    "\x1b[31m",
    "\ud800",
    "=",
    ",",
    ":",
    '"',
    "}",
    "{",
    " ",
    "%",
    "é",
    "\u2028",
    "-",
    ".",
)
# What stands in the place of a value of JSON.
VALUES = (None, [], {}, "", "7", 0, -1, 1.5, True, float("nan"), 10**400, [[]], {"sum": 1})


@dataclass(frozen=True)
class Recorded:
    """One recorded output. name: as ``iperf3/3.12-udp``; good: it holds a measurement."""

    name: str
    tool: str
    stdout: str
    stderr: str
    exit_code: int | None
    parameters: JSON
    good: bool

    def samples(self) -> list[Sample]:
        """None of them where it is refused."""
        try:
            return base.load(self.tool).parse(self.stdout, self.stderr, self.exit_code, self.parameters)
        except ParseError:
            return []


@dataclass(frozen=True)
class Damaged:
    """A recorded output after damage. only_less: whole lines or the end are gone and nothing was put in."""

    origin: Recorded
    how: tuple[str, ...]
    stdout: str
    stderr: str
    exit_code: int | None
    parameters: JSON
    only_less: bool


@cache
def recorded(tool: str) -> tuple[Recorded, ...]:
    """Every recorded output of a tool."""
    found = []
    for out in sorted((FIXTURES / tool).glob("*.out")):
        name = out.name.removesuffix(".out")
        said = json.loads(out.with_name(f"{name}.json").read_text())
        context = said["stderr"], said["exit_code"], said["parameters"]
        found.append(Recorded(f"{tool}/{name}", tool, out.read_text(), *context, bool(said.get("samples"))))
    return tuple(found)


# -- the rule -------------------------------------------------------------------------------------


def broken_rule(damaged: Damaged) -> str | None:
    """None where the parser did right: samples or ParseError, and no zero that was not measured."""
    tool = damaged.origin.tool
    try:
        samples = base.load(tool).parse(damaged.stdout, damaged.stderr, damaged.exit_code, damaged.parameters)
    except ParseError as refused:
        return None if refused.reason.strip() else "ParseError says nothing"
    if not samples and damaged.parameters.get("test") not in MEASURES_NOTHING:
        return "no sample and no ParseError"
    if damaged.exit_code not in (0, 1) or (damaged.exit_code == 1 and tool != "ping"):
        return f"samples although the exit code is {damaged.exit_code}"
    impossible = next((rule for sample in samples if (rule := _impossible(sample))), None)
    if impossible:
        return impossible
    if damaged.only_less and (new := _zeros(samples) - _zeros(damaged.origin.samples())):
        return f"a zero out of nothing: {', '.join(sorted(new))}"
    return None


def _impossible(sample: Sample) -> str | None:
    """What a database or a reader could not make sense of, said independently of `parsers.checked`."""
    for name in ("value", "t_start", "t_end", "resolution", "quantile"):
        value = getattr(sample, name)
        if value is None and name != "value":
            continue
        if type(value) not in (int, float) or not -1e300 < value < 1e300:  # nan is in no range
            return f"{sample.metric}: {name} is {value!r}"[:200]
    start, end = sample.t_start, sample.t_end
    if (start is None) != (end is None):
        return f"{sample.metric}: half a time"
    if start is not None and end is not None and not 0 <= start <= end:
        return f"{sample.metric}: from {start} to {end}"
    if sample.quantile is not None and not 0 < sample.quantile < 1:
        return f"{sample.metric}: quantile {sample.quantile}"
    if sample.resolution is not None and sample.resolution <= 0:
        return f"{sample.metric}: resolution {sample.resolution}"
    whole = start is None
    if sample.value == 0 and (
        sample.metric.startswith(("latency", "offered", "transaction_rate"))
        or (sample.metric == "goodput" and whole)
    ):
        return f"{sample.metric} is 0"
    return f"{sample.metric} is {sample.value}" if sample.value < 0 else None


def _zeros(samples: Sequence[Sample]) -> set[str]:
    return {sample.metric for sample in samples if sample.value == 0}


# -- damage ---------------------------------------------------------------------------------------


# (chance, text, another output of the same tool) -> text
Change = Callable[[random.Random, str, Recorded], str]
PLACES = 8


@st.composite
def damaged(draw: Callable[[st.SearchStrategy[Any]], Any], tool: str) -> list[Damaged]:
    """The same changes at PLACES places each. Good outputs come three times as often as those of failures.

    Which output and which changes are hypothesis' choice, so that it finds the fewest that do it. Where in the text is
    chance: drawn place by place it took twenty times as long, and missed what chance hit.
    """
    own = recorded(tool)
    one = draw(st.sampled_from([each for each in own for _ in range(3 if each.good else 1)]))
    less = draw(st.integers(0, 9)) > 6
    changes = draw(
        st.lists(st.sampled_from(LESS if less else CHANGES), min_size=1, max_size=1 if less else 4)
    )
    chance = draw(st.randoms(use_true_random=True))
    return [_damaged(chance, one, changes, less, own) for _ in range(PLACES)]


def _damaged(
    chance: random.Random, one: Recorded, changes: Sequence[Change], less: bool, own: Sequence[Recorded]
) -> Damaged:
    text, stderr, exit_code, parameters = one.stdout, one.stderr, one.exit_code, one.parameters
    for change in changes:
        text = change(chance, text, chance.choice(own))
    if not less:
        exit_code = chance.choice(EXIT_CODES) if chance.random() < 0.15 else exit_code
        stderr = chance.choice(own).stderr if chance.random() < 0.1 else stderr
        parameters = chance.choice(own).parameters if chance.random() < 0.1 else parameters
    return Damaged(
        one, tuple(change.__name__ for change in changes), text, stderr, exit_code, parameters, less
    )


def place(chance: random.Random, text: Sequence[object]) -> int:
    return chance.randint(0, len(text))


def cut(chance: random.Random, text: str, other: Recorded) -> str:
    return text[: place(chance, text)]


def drop_lines(chance: random.Random, text: str, other: Recorded) -> str:
    lines = text.splitlines(keepends=True)
    for _ in range(chance.choice((1, 1, 2, 5))):
        start = place(chance, lines)
        del lines[start : start + chance.choice((1, 1, 1, 3))]
    return "".join(lines)


def number(chance: random.Random, text: str, other: Recorded) -> str:
    """Something else where a number was: another number of the text, or what no tool prints."""
    begin = place(chance, text[:-400])  # a window: all numbers of a long text would take most of the time
    spans = [found.span() for found in re.finditer(r"\d[\d.]*", text[begin : begin + 600])]
    if not spans:
        return text
    (start, end), (first, last) = chance.choice(spans), chance.choice(spans)
    new = chance.choice(NUMBERS) if chance.random() < 0.7 else text[begin + first : begin + last]
    return text[: begin + start] + new + text[begin + end :]


def character(chance: random.Random, text: str, other: Recorded) -> str:
    at = place(chance, text)
    new = chance.choice(PIECES) if chance.random() < 0.5 else chr(chance.randint(32, 126))
    return text[:at] + new + text[at + chance.randint(0, 1) :]


def cut_out(chance: random.Random, text: str, other: Recorded) -> str:
    start = place(chance, text)
    return text[:start] + text[start + chance.randint(1, 79) :]


def repeat(chance: random.Random, text: str, other: Recorded) -> str:
    lines = text.splitlines(keepends=True)
    start, at = place(chance, lines), place(chance, lines)
    piece = lines[start : start + chance.choice((1, 1, 5, 40))]
    return "".join((*lines[:at], *piece, *lines[at:]))


def swap(chance: random.Random, text: str, other: Recorded) -> str:
    lines = text.splitlines(keepends=True)
    if len(lines) > 1:
        one, two = (chance.randint(0, len(lines) - 1) for _ in range(2))
        lines[one], lines[two] = lines[two], lines[one]
    return "".join(lines)


def splice(chance: random.Random, text: str, other: Recorded) -> str:
    """Its beginning, and the end of another output of the same tool."""
    return text[: place(chance, text)] + other.stdout[place(chance, other.stdout) :]


def structure(chance: random.Random, text: str, other: Recorded) -> str:
    """In a report that is JSON: a value that is of another kind, or gone."""
    if not text.lstrip().startswith("{"):
        return number(chance, text, other)
    try:
        report = json.loads(text)
    except (ValueError, RecursionError):
        return text
    at: Any = report
    while isinstance(at, dict | list) and at:
        key = chance.choice(list(at) if isinstance(at, dict) else range(len(at)))
        if not isinstance(at[key], dict | list) or not at[key] or chance.randint(0, 6) == 6:
            if chance.randint(0, 9) < 3:
                del at[key]
            else:
                at[key] = chance.choice(VALUES)
            break
        at = at[key]
    return json.dumps(report)


LESS = (cut, drop_lines)
CHANGES = (number, number, number, character, cut_out, repeat, swap, splice, structure, structure)
