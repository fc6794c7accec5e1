"""A series of drills on one cluster, with one score."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError


@dataclass(frozen=True)
class Series:
    """drills: in the order in which they come; attempts: ids of those that were begun."""

    drills: tuple[str, ...]
    attempts: tuple[str, ...]
    trainee: str | None
    profile: str | None
    provider: str | None

    @property
    def left(self) -> tuple[str, ...]:
        return self.drills[len(self.attempts) :]

    def after(self, attempt_id: str) -> Series:
        return replace(self, attempts=(*self.attempts, attempt_id))


def choose(names: Sequence[str], count: int) -> tuple[str, ...]:
    """So many of them by chance, none twice. UserError where there are not as many."""
    if count > len(names):
        raise UserError(
            "COUNT",
            f"must be at most {len(names)}, the drills that there are",
            seen=count,
            fix="Take fewer, or leave LEVEL out",
        )
    return tuple(random.sample(list(names), count))


def score(scores: Sequence[int | None]) -> int:
    """The mean, where a drill that was not repaired counts nothing."""
    return round(sum(one or 0 for one in scores) / len(scores))


def path(cluster: str) -> Path:
    return paths.cache() / "clusters" / cluster / "gameday.json"


def read(cluster: str) -> Series | None:
    """None where none was begun, or what is there is of another version."""
    try:
        data = json.loads(path(cluster).read_text())
        return Series(**data | {name: tuple(data[name]) for name in ("drills", "attempts")})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(cluster: str, series: Series) -> None:
    path(cluster).parent.mkdir(parents=True, exist_ok=True)
    path(cluster).write_text(json.dumps(asdict(series)))


def forget(cluster: str) -> None:
    path(cluster).unlink(missing_ok=True)
