"""One run at a time per cluster."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime

from overlaylab import paths
from overlaylab.errors import UserError


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


def _owner(text: str) -> str:
    try:
        owner = json.loads(text)
        return f"process {owner['pid']}, {owner['purpose']}, since {owner['since']}"
    except (ValueError, KeyError):
        return "another process"
