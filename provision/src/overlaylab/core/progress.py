"""What goes on, and how long it will take: estimates come from how long the same step took here before."""

from __future__ import annotations

import contextlib
import json
import os
import re
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from overlaylab.core import paths, task_log

# Control characters, and what reorders or hides text (https://www.unicode.org/reports/tr9/, 2).
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")

# Columns; no table is as wide, and none is made wider than its content.
UNFOLDED = 10_000

console = Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """One line for the user, on standard error: standard output is for results."""
    console.print(text, markup=False, soft_wrap=True)
    task_log.write(visible(text))


def visible(text: str) -> str:
    """The text with codes in place of what hides."""
    return HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class PlainConsole(Console):
    """Prints what others wrote as it is, but for what would command the terminal: names come from any file."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"highlight": False, "markup": False, "emoji": False} | options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Segments without hidden characters, which take no room in a table either."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else HIDDEN.sub("", text), style, control)


def output(kind: type[Console] = Console, **options: Any) -> Console:
    """Standard output for results. A terminal, or COLUMNS, folds them; a pipe or a file gets each line whole."""
    own = sys.stdout.isatty() or "COLUMNS" in os.environ
    return kind(width=None if own else UNFOLDED, highlight=False, **options)


def readable(seconds: float) -> str:
    """Seconds as people say them: ``8 s``, ``3 min 20 s``."""
    whole = round(seconds)
    return f"{whole} s" if whole < 90 else f"{whole // 60} min {whole % 60:02d} s"


def _file() -> Path:
    return paths.cache() / "durations.json"


def _read() -> dict[str, list[float]]:
    try:
        found = json.loads(_file().read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def estimate(key: str, default: float | None = None) -> float | None:
    """Median of the last durations of this step on this machine, in seconds; else the default."""
    known = _read().get(key)
    return statistics.median(known) if known else default


def remember(key: str, seconds: float) -> None:
    """Keep a duration for later estimates (the last five count)."""
    durations = _read()
    durations[key] = [*durations.get(key, []), round(seconds, 1)][-5:]
    temporary = _file().with_suffix(".new")
    with contextlib.suppress(OSError):  # an estimate is never worth a failure
        temporary.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(durations, indent=1))
        temporary.replace(_file())


@contextlib.contextmanager
def step(key: str, text: str, default: float | None = None) -> Iterator[None]:
    """Announce a step with its estimate, and say how long it took. A failed step is not remembered."""
    expected = estimate(key, default)
    about = f" (about {readable(expected)})" if expected and expected >= 3 else ""
    started = time.monotonic()
    if console.is_terminal:
        task_log.write(visible(f"{text}{about} …"))
        with console.status(f"{text}{about}"):
            yield
    else:
        say(f"{text}{about} …")
        yield
    took = time.monotonic() - started
    remember(key, took)
    say(f"{text}: {readable(took)}")
