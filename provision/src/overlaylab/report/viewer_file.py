"""What is done to a results database before the viewer, which only reads, opens it."""

from __future__ import annotations

from pathlib import Path

from overlaylab.core.errors import UserError
from overlaylab.core.progress import say
from overlaylab.desktop import database
from overlaylab.report import comparison
from overlaylab.store.store import Store


def make_current(file: Path) -> None:
    """Bring one of our own files to the newest schema, with the rows that the viewer reads.

    What is wrong with a file, the viewer says in its window.
    """
    if not database.is_own(file):
        return
    try:
        with Store.open(file, create=False) as store:
            comparison.refresh(store)
    except UserError as error:
        say(f"{error}")
