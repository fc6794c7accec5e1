"""Damaged outputs of real tools against their parsers: samples or ParseError, and no zero that was not measured.

The inputs are recorded outputs (provision/tests/fixtures), changed at random from a seed, so that a finding can be
repeated. Mutational fuzzing with a stated oracle, as Miller, Fredriksen and So began it: An Empirical Study of the
Reliability of UNIX Utilities, Communications of the ACM 33(12), 1990.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from overlaylab.core.model import JSON, Sample
from overlaylab.tools import base
from overlaylab.tools.parsers import ParseError

FIXTURES = Path("provision") / "tests" / "fixtures"
MEASURES_NOTHING = ("conf",)
"""Tests of qperf that end well without a sample."""
EXIT_CODES = (0, 1, 2, 124, 137, -9, -15, None)
NUMBERS = (
    *(
        "0",
        "-0",
        "0.0",
        "-1",
        "1",
        "00",
        "nan",
        "NaN",
        "inf",
        "Infinity",
        "-Infinity",
        "1e999",
        "1e-999",
        "1_000",
    ),
    *(
        "9" * 400,
        "1." + "0" * 400,
        "٣",
        "²",
        "0x10",
        "1,000",
        "",
        "true",
        "null",
        '"5"',
        "[]",
        "{}",
        "[" * 3000,
    ),
)
"""What stands in the place of a number: what float() takes and no tool prints, and what breaks arithmetic."""
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


@dataclass(frozen=True)
class Mutant:
    """A recorded output after damage. only_less: whole lines or the end are gone and nothing was put in."""

    origin: Recorded
    how: str
    stdout: str
    stderr: str
    exit_code: int | None
    parameters: JSON
    only_less: bool


@dataclass(frozen=True)
class Finding:
    """A mutant that broke the rule, and which rule."""

    number: int
    mutant: Mutant
    rule: str


@dataclass
class Outcome:
    """What became of the inputs: how many gave samples, how many ParseError, by tool."""

    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


def recorded(root: Path) -> list[Recorded]:
    """Every recorded output of every tool in the checkout at root."""
    found = []
    for tool in base.tools():
        for out in sorted((root / FIXTURES / tool).glob("*.out")):
            name = out.name.removesuffix(".out")
            said = json.loads(out.with_name(f"{name}.json").read_text())
            found.append(
                Recorded(
                    f"{tool}/{name}",
                    tool,
                    out.read_text(),
                    said["stderr"],
                    said["exit_code"],
                    said["parameters"],
                    bool(said.get("samples")),
                )
            )
    return found


def fuzz(
    inputs: Sequence[Recorded], number: int, seed: int, on_input: Callable[[], None] = lambda: None
) -> Outcome:
    """`number` mutants, the tools in turn, good outputs three times as often as those of failures."""
    outcome = Outcome()
    zeros = {one.name: _zeros(_parse(one)) for one in inputs}
    for index, mutant in enumerate(mutants(inputs, number, seed)):
        rule = broken_rule(mutant, zeros[mutant.origin.name], outcome)
        if rule:
            outcome.findings.append(Finding(index, mutant, rule))
        on_input()
    return outcome


def mutants(inputs: Sequence[Recorded], number: int, seed: int) -> Iterator[Mutant]:
    """The same for the same inputs and seed."""
    chance = random.Random(seed)
    by_tool: dict[str, list[Recorded]] = {}
    for one in inputs:
        by_tool.setdefault(one.tool, []).extend([one] * (3 if one.good else 1))
    tools = sorted(by_tool)
    for index in range(number):
        own = by_tool[tools[index % len(tools)]]
        yield _mutant(chance, chance.choice(own), own)


def broken_rule(mutant: Mutant, zeros: set[str], outcome: Outcome) -> str | None:
    """None where the parser did right. zeros: metrics of which the undamaged output holds a zero."""
    tool = mutant.origin.tool
    parse = base.load(tool).parse
    try:
        samples = parse(mutant.stdout, mutant.stderr, mutant.exit_code, mutant.parameters)
    except ParseError as refused:
        outcome.refused[tool] += 1
        return None if refused.reason.strip() else "ParseError says nothing"
    except Exception as wrong:
        return f"{type(wrong).__name__}: {wrong}"[:200]
    outcome.accepted[tool] += 1
    if not samples and mutant.parameters.get("test") not in MEASURES_NOTHING:
        return "no sample and no ParseError"
    if mutant.exit_code not in (0, 1) or (mutant.exit_code == 1 and tool != "ping"):
        return f"samples although the exit code is {mutant.exit_code}"
    impossible = next((rule for sample in samples if (rule := _impossible(sample))), None)
    if impossible:
        return impossible
    if mutant.only_less and (new := _zeros(samples) - zeros):
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
    if sample.value < 0:
        return f"{sample.metric} is {sample.value}"
    return None


def _zeros(samples: Sequence[Sample]) -> set[str]:
    return {sample.metric for sample in samples if sample.value == 0}


def _parse(one: Recorded) -> list[Sample]:
    try:
        return base.load(one.tool).parse(one.stdout, one.stderr, one.exit_code, one.parameters)
    except ParseError:
        return []


# -- damage ---------------------------------------------------------------------------------------


def _mutant(chance: random.Random, one: Recorded, own: Sequence[Recorded]) -> Mutant:
    stderr, exit_code, parameters = one.stderr, one.exit_code, one.parameters
    less = chance.random() < 0.3
    if less:
        how = chance.choice((_cut, _drop_lines))
        text, names = how(chance, one.stdout, one), [how.__name__.strip("_")]
    else:
        text, names = one.stdout, []
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            change = chance.choice(_CHANGES)
            other = chance.choice(own)
            text = change(chance, text, other)
            names.append(change.__name__.strip("_"))
        if chance.random() < 0.15:
            exit_code = chance.choice(EXIT_CODES)
        if chance.random() < 0.1:
            stderr = chance.choice(own).stderr
        if chance.random() < 0.1:
            parameters = chance.choice(own).parameters
    return Mutant(one, " ".join(names), text, stderr, exit_code, parameters, only_less=less)


def _cut(chance: random.Random, text: str, other: Recorded) -> str:
    return text[: chance.randrange(len(text) + 1)]


def _drop_lines(chance: random.Random, text: str, other: Recorded) -> str:
    lines = text.splitlines(keepends=True)
    for _ in range(min(len(lines), chance.choice((1, 1, 2, 5)))):
        start = chance.randrange(len(lines))
        del lines[start : start + chance.choice((1, 1, 1, 3))]
        if not lines:
            break
    return "".join(lines)


def _number(chance: random.Random, text: str, other: Recorded) -> str:
    """Something else where a number was: another number of the text, or what no tool prints."""
    spans = _number_spans(text, chance)
    if not spans:
        return text
    start, end = chance.choice(spans)
    start_, end_ = chance.choice(spans)
    new = chance.choice(NUMBERS) if chance.random() < 0.7 else text[start_:end_]
    return text[:start] + new + text[end:]


def _number_spans(text: str, chance: random.Random) -> list[tuple[int, int]]:
    """Where numbers stand, in a window of the text: all of a long one would take most of the time."""
    begin = chance.randrange(max(1, len(text) - 400))
    spans, start = [], None
    for place in range(begin, min(len(text), begin + 600)):
        digit = text[place].isdigit() or (text[place] == "." and start is not None)
        if digit and start is None:
            start = place
        elif not digit and start is not None:
            spans.append((start, place))
            start = None
    return spans


def _character(chance: random.Random, text: str, other: Recorded) -> str:
    place = chance.randrange(len(text) + 1)
    new = chance.choice(PIECES) if chance.random() < 0.5 else chr(chance.randrange(32, 127))
    return text[:place] + new + text[place + chance.randrange(2) :]


def _slice(chance: random.Random, text: str, other: Recorded) -> str:
    start = chance.randrange(len(text) + 1)
    return text[:start] + text[start + chance.randrange(1, 80) :]


def _repeat(chance: random.Random, text: str, other: Recorded) -> str:
    lines = text.splitlines(keepends=True) or [""]
    start = chance.randrange(len(lines))
    piece = lines[start : start + chance.choice((1, 1, 5, 40))]
    place = chance.randrange(len(lines) + 1)
    return "".join((*lines[:place], *piece, *lines[place:]))


def _swap(chance: random.Random, text: str, other: Recorded) -> str:
    lines = text.splitlines(keepends=True)
    if len(lines) > 1:
        a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a]
    return "".join(lines)


def _splice(chance: random.Random, text: str, other: Recorded) -> str:
    """Its beginning, and the end of another output of the same tool."""
    return text[: chance.randrange(len(text) + 1)] + other.stdout[chance.randrange(len(other.stdout) + 1) :]


def _structure(chance: random.Random, text: str, other: Recorded) -> str:
    """In a report that is JSON: a value that is of another kind, or gone."""
    if not text.lstrip().startswith("{"):
        return _number(chance, text, other)
    try:
        report = json.loads(text)
    except (ValueError, RecursionError):
        return text
    place: Any = report
    while isinstance(place, dict | list) and place:
        key = chance.choice(list(place)) if isinstance(place, dict) else chance.randrange(len(place))
        if not isinstance(place[key], dict | list) or not place[key] or chance.random() < 0.15:
            if chance.random() < 0.3:
                del place[key]
            else:
                place[key] = chance.choice(
                    (None, [], {}, "", "7", 0, -1, 1.5, True, float("nan"), 10**400, [[]], {"sum": 1})
                )
            break
        place = place[key]
    return json.dumps(report)


_CHANGES = (_number, _number, _number, _character, _slice, _repeat, _swap, _splice, _structure, _structure)
