"""What the readers of foreign files give, and how they look into JSON that may hold anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from overlaylab.core.model import JSON, Sample
from overlaylab.tools.parsers import ParseError

T = TypeVar("T")

# 2100, in s since 1970.
LATEST = 4102444800
# Characters: a text stands in the head of every table.
LONGEST_TEXT = 200


@dataclass(frozen=True)
class MeasuredTrial:
    """One benchmark of a file. duration: seconds, None where it is not said; raw: the part of the file, as JSON."""

    benchmark: str
    parameters: JSON
    direction: str
    duration: float | None
    raw: str
    samples: tuple[Sample, ...]


@dataclass(frozen=True)
class Measured:
    """What a file holds. machine: None where it is not said; about: further facts for the run's arguments.

    left_out: names of what has no metric here.
    """

    tool: str
    tool_version: str | None
    started_at: str
    machine: str | None
    trials: tuple[MeasuredTrial, ...]
    about: Mapping[str, object] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def member(holder: JSON, name: str, kind: type[T], where: str) -> T:
    """holder[name], of that kind. Raises ParseError."""
    value = holder.get(name)
    if not isinstance(value, kind):
        raise ParseError(f"{where} has no {name}")
    return value


def number(value: object, where: str) -> float:
    """A finite number. Raises ParseError; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParseError(f"{where} is no number")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise ParseError(f"{where} is no finite number")
    return found


def words(value: object) -> str | None:
    """A text as it may be shown: printable, in one line, and not endless. None for an empty one, or what is none."""
    if not isinstance(value, str):
        return None
    beginning = " ".join(value[: 4 * LONGEST_TEXT].split())
    plain = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in beginning)
    if len(plain) > LONGEST_TEXT:
        plain = f"{plain[: LONGEST_TEXT - 1]}…"
    return plain or None


def moment(seconds: float, where: str) -> datetime:
    """The time so many seconds after 1970, until 2100. A machine without a clock begins in 1970. Raises ParseError."""
    if not 0 <= seconds < LATEST:
        raise ParseError(f"{where} is no time from 1970 to 2100")
    return datetime.fromtimestamp(seconds, UTC)


def seconds(text: object, where: str) -> float:
    """A time in ISO 8601, without a zone in UTC, in s since 1970. Raises ParseError."""
    try:
        when = datetime.fromisoformat(text if isinstance(text, str) else "")
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ParseError(f"{where} is no time in ISO 8601") from None


def stamp(moment: datetime) -> str:
    """UTC in ISO 8601 with milliseconds; a moment without a zone is UTC."""
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return known.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
