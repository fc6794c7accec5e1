"""The log of a task: what it said, with the time of day. Kept where the task took more than some seconds."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from itertools import dropwhile, takewhile
from pathlib import Path

from overlaylab.core import paths

# Logs, per cache folder.
KEPT = 20

# s: what a shorter task said still stands on the terminal.
LONG = 3.0

# The variable that names the log to the program that takes this one's place.
HANDED_OVER = "OVERLAYLAB_LOG"

_current: TaskLog | None = None


class TaskLog:
    """Makes its file with the first line. That it cannot be written is never worth a failure."""

    def __init__(self, typed: str, version: Callable[[], str], continued: str | None) -> None:
        self._typed = typed
        self._version = version
        self._path = Path(continued) if continued else None
        self._file: int | None = None
        self._began = time.monotonic() - (LONG if continued else 0)
        self._lock = threading.RLock()  # daemons are built in threads, which say something too

    def write(self, text: str) -> None:
        with self._lock, contextlib.suppress(OSError):
            if self._file is None:
                self._open()
            self._put(text)

    def close(self, last: str) -> Path | None:
        """Write the last words; the file, None where nothing is kept."""
        with self._lock, contextlib.suppress(OSError):
            if self._path is not None:
                self.write(last)
            if self._path is not None and self._file is not None:
                os.close(self._file)
                self._file = None
                if time.monotonic() - self._began < LONG:
                    self._path.unlink()
                elif self._path.exists():  # lab:destroy removes its own
                    _remove_old(self._path.parent)
                    return self._path
        return None

    def _open(self) -> None:
        if self._path is not None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND)
            return
        if paths.cache().stat().st_uid != os.geteuid():  # root leaves nothing in a user's
            return
        folder = paths.cache() / "logs" / "tasks"
        folder.mkdir(parents=True, exist_ok=True)
        began = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        path = folder / f"{began}-{_name(self._typed)}-{os.getpid()}.log"
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        self._path = path
        self._put(f"{self._typed}\noverlaylab {self._version()}, {time.strftime('%Y-%m-%d, UTC%z')}")

    def _put(self, text: str) -> None:
        if self._file is not None:
            now = time.strftime("%H:%M:%S")
            lines = "".join(f"{now} {line}\n" for line in text.splitlines())
            os.write(self._file, lines.encode(errors="backslashreplace"))


def begin(typed: str, version: Callable[[], str]) -> None:
    """From now on what is said is kept. version: asked for with the first line."""
    global _current
    _current = TaskLog(typed, version, os.environ.pop(HANDED_OVER, None))


def write(text: str) -> None:
    if _current is not None:
        _current.write(text)


def end(last: str) -> None:
    """End the log with these words, and say once where it lies."""
    global _current
    ended, _current = _current, None
    if ended is not None and (path := ended.close(last)):
        with contextlib.suppress(OSError):  # a terminal that is gone
            print(f"the log of this is {path}", file=sys.stderr)


def hand_over() -> None:
    """Let the program that takes this one's place carry the log on."""
    if _current is not None and (path := _current.close("carried on with the groups that were joined")):
        os.environ[HANDED_OVER] = str(path)


def _name(typed: str) -> str:
    """What was typed without options, variables and what follows ``--``: ``lab-weave``."""
    words = typed.partition(" -- ")[0].split()[1:]
    # Where a value has blanks, its words look like tasks.
    of_tasks = dropwhile(lambda word: word.startswith("-") or "=" in word, words)
    named = " ".join(takewhile(lambda word: "=" not in word, of_tasks))
    return re.sub("[^A-Za-z0-9.]+", "-", named)[:60].strip("-.") or "task"


def _remove_old(folder: Path) -> None:
    for old in sorted(folder.glob("*.log"), key=lambda log: log.stat().st_mtime)[:-KEPT]:
        old.unlink(missing_ok=True)
