"""A disk that fills in the middle: telling it from other failures, and what to do about it."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError

_WORDS = (
    "No space left on device",
    "no space left on device",
    "ENOSPC",
    "Disk quota exceeded",
    "disk quota exceeded",
)

# Bytes: with less, a program that failed most likely failed for it, as what it had begun is still there.
_NEARLY = 16 * 2**20

FIX = "Free some disk, or set OVERLAYLAB_CACHE to a folder on another disk (outside your home)"


def is_reported(text: str) -> bool:
    """Whether a program's output says that a disk is full."""
    return any(words in text for words in _WORDS)


def is_full(*folders: Path) -> bool:
    """Whether nearly nothing can be written to one of these: a log that lies there has no room to tell."""
    return any(shutil.disk_usage(folder).free < _NEARLY for folder in folders if folder.exists())


def is_about(error: OSError) -> bool:
    """Whether an error of this program's own says so."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def error(where: str, seen: object) -> UserError:
    """The paragraph for something that had to be written. where: what was being made."""
    return UserError(
        where,
        f"must find room on the disk, with its cache folder {paths.cache()}",
        seen=seen,
        fix=f"{FIX}, then type the command again; nothing half made is used",
    )
