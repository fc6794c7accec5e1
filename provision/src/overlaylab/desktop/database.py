"""Which results databases are this lab's own: the viewer opens others with a banner."""

from __future__ import annotations

import os
from pathlib import Path

from overlaylab.core import paths


def home() -> Path:
    """What is this lab's own: the file that LAB_DB names, else the folder of results."""
    database = paths.database().absolute()
    return database if paths.DATABASE.typed else database.parent


def is_own(file: Path) -> bool:
    """Whether this is one of this lab's own files and may be written: one that is only looked at may not."""
    own = home() in (file.absolute(), file.absolute().parent)
    return own and os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)
