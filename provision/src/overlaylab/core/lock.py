"""One run at a time per cluster, and one command at a time at what clusters share."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from overlaylab.core import paths
from overlaylab.core.errors import UserError

WAIT = "Wait until it ends, or interrupt it; ./task lab:resume carries its run on"


@contextlib.contextmanager
def cluster_lock(cluster: str, purpose: str, fix: str = WAIT) -> Iterator[int]:
    """Hold the cluster's lock; its descriptor. UserError, naming the owner, where another process holds it.

    fix: what others are told to do. The kernel releases the lock when its owner ends, however it ends (flock(2)):
    nothing to clean up.
    """
    folder = paths.cache() / "clusters" / cluster
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = _read(file.read())
            raise UserError(
                f"cluster {cluster}",
                "is used by one command at a time",
                seen=_in_words(owner),
                fix=owner.get("fix", WAIT),
            ) from None
        yield from _owned(file, purpose, fix)


@contextlib.contextmanager
def handed_over(descriptor: int, purpose: str, fix: str = WAIT) -> Iterator[int]:
    """Hold a cluster's lock on, which the process that started this one had and may have let go of since."""
    with os.fdopen(descriptor, "a+") as file:
        yield from _owned(file, purpose, fix)


def _owned(file: IO[str], purpose: str, fix: str) -> Iterator[int]:
    """Write into the lock who holds it, as long as that is this process."""
    since = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    file.truncate(0)
    file.write(json.dumps({"pid": os.getpid(), "purpose": purpose, "since": since, "fix": fix}))
    file.flush()
    yield file.fileno()
    file.seek(0)
    if _read(file.read()).get("pid") == os.getpid():
        file.truncate(0)


def holder(cluster: str) -> int | None:
    """The process that holds the cluster's lock; None where none does."""
    return named(cluster) if is_held(cluster) else None


def named(cluster: str) -> int | None:
    """The process that wrote its name into the cluster's lock last, whether or not it still holds it."""
    try:
        pid = _read((paths.cache() / "clusters" / cluster / "lock").read_text()).get("pid")
    except (OSError, ValueError):
        return None
    return pid if isinstance(pid, int) else None


def is_held(cluster: str) -> bool:
    """Whether another process of this cache folder holds the cluster's lock right now."""
    return _is_locked(paths.cache() / "clusters" / cluster / "lock")


def is_taken(name: str) -> bool:
    """Whether another process holds the lock that `turn` waits for."""
    return _is_locked(_of_turn(name))


def _is_locked(path: Path) -> bool:
    try:
        with path.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, ValueError):
        return False  # nobody here ever used it
    return False


def _of_turn(name: str) -> Path:
    return paths.cache() / "clusters" / f"{name}.lock"


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold that folder, which is made where it is missing, against other commands that do the same; waits its turn."""
    folder.mkdir(parents=True, exist_ok=True)
    # A folder can be locked itself (flock(2)), so that no file has to lie about in it.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.asynccontextmanager
async def turn(name: str, say: Callable[[str], None], waiting: str) -> AsyncIterator[None]:
    """Hold the lock of that name once nobody else of this cache folder does; `waiting` is said where it takes a while."""
    path = _of_turn(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        told = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    say(waiting)
                told = True
            await asyncio.sleep(0.2)
        yield


def _read(text: str) -> dict[str, Any]:
    """Who holds a lock, as it wrote it down; empty where that cannot be read."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _in_words(owner: Mapping[str, Any]) -> str:
    if not owner.keys() >= {"pid", "purpose", "since"}:
        return "another process"
    return f"process {owner['pid']}, {owner['purpose']}, since {owner['since']}"
