"""One run at a time per cluster, and one command at a time at what clusters share."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError


@contextlib.contextmanager
def cluster_lock(cluster: str, purpose: str) -> Iterator[None]:
    """Hold the cluster's lock. UserError, naming the owner, where another process holds it.

    The kernel releases the lock when its owner ends, however it ends (flock(2)): nothing to clean up.
    """
    folder = paths.cache() / "clusters" / cluster
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise UserError(
                f"cluster {cluster}",
                "is used by one command at a time",
                seen=_owner(file.read()),
                fix="Wait until it ends, or interrupt it; ./task lab:resume carries its run on",
            ) from None
        file.truncate(0)
        file.write(
            json.dumps(
                {
                    "pid": os.getpid(),
                    "purpose": purpose,
                    "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
                }
            )
        )
        file.flush()
        yield
        file.truncate(0)


def is_held(cluster: str) -> bool:
    """Whether another process of this cache folder holds the cluster's lock right now."""
    try:
        with (paths.cache() / "clusters" / cluster / "lock").open("r") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, ValueError):
        return False  # nobody here ever used it
    return False


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
    path = paths.cache() / "clusters" / f"{name}.lock"
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


def _owner(text: str) -> str:
    try:
        owner = json.loads(text)
        return f"process {owner['pid']}, {owner['purpose']}, since {owner['since']}"
    except (ValueError, KeyError):
        return "another process"
