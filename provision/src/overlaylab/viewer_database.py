"""What is done to a results database before the viewer, which only reads, opens it."""

from __future__ import annotations

import os
from pathlib import Path

from overlaylab import paths
from overlaylab.errors import UserError
from overlaylab.progress import say


def home() -> Path:
    """What is this lab's own: the file that LAB_DB names, else the folder of results."""
    database = paths.database().absolute()
    return database if os.environ.get("LAB_DB") else database.parent


def is_own(file: Path) -> bool:
    """Whether this is one of this lab's own files and may be written: one that is only looked at may not."""
    own = home() in (file.absolute(), file.absolute().parent)
    return own and os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)


def make_current(file: Path) -> None:
    """Bring one of our own files to the newest schema, with the rows that the viewer reads.

    What is wrong with a file, the viewer says in its window.
    """
    if not is_own(file):
        return
    # Lazily: they import all that measuring takes.
    from overlaylab import comparison
    from overlaylab.store import Store

    try:
        with Store.open(file, create=False) as store:
            comparison.refresh(store)
    except UserError as error:
        say(f"{error}")
