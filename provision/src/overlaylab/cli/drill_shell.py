"""A shell on a node of a drill, and its recording."""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Sequence
from pathlib import Path

CHUNK = 65536


def open_shell(argv: Sequence[str], recording: Path | None) -> int:
    """Run the program in this terminal; its exit code. recording: the file to write what the terminal shows to."""
    if recording is None:
        # Ctrl-C is for whoever sits in that shell.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return subprocess.call(argv)
        finally:
            signal.signal(signal.SIGINT, before)
    return record(argv, recording)


class Recording:
    """An asciicast of version 2: a header, then a line for all that was shown, with seconds since its start.

    What is typed is not kept, beyond what the terminal shows of it.
    https://docs.asciinema.org/manual/asciicast/v2/
    """

    def __init__(self, path: Path, columns: int, rows: int, title: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        )
        self._began = time.monotonic()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        header = {
            "version": 2,
            "width": columns,
            "height": rows,
            "timestamp": int(time.time()),
            "title": title,
        }
        self._put(header)

    def shown(self, data: bytes) -> None:
        if text := self._decoder.decode(data):
            self._put([round(time.monotonic() - self._began, 6), "o", text])

    def resized(self, columns: int, rows: int) -> None:
        self._put([round(time.monotonic() - self._began, 6), "r", f"{columns}x{rows}"])

    def close(self) -> None:
        self._file.close()

    def _put(self, line: object) -> None:
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()  # a terminal that is closed ends this at any moment


def size(descriptor: int) -> tuple[int, int]:
    """Columns and rows of a terminal; 80 by 24 where it does not say."""
    try:
        rows, columns, *_ = struct.unpack("HHHH", fcntl.ioctl(descriptor, termios.TIOCGWINSZ, bytes(8)))
    except OSError:
        return 80, 24
    return columns or 80, rows or 24


def record(argv: Sequence[str], path: Path) -> int:
    """Run the program in a terminal of its own that shows here, and keep what it shows; its exit code."""
    child, master = pty.fork()
    if child == 0:
        try:
            os.execvp(argv[0], list(argv))
        finally:
            os._exit(127)
    columns, rows = size(sys.stdin.fileno())
    _resize(master, columns, rows)
    recording = Recording(path, columns, rows, path.stem)

    def resized(*_: object) -> None:
        now = size(sys.stdin.fileno())
        _resize(master, *now)
        recording.resized(*now)

    before_resize = signal.signal(signal.SIGWINCH, resized)
    raw = termios.tcgetattr(sys.stdin) if sys.stdin.isatty() else None
    try:
        if raw is not None:
            tty.setraw(sys.stdin)
        _carry(master, recording)
    finally:
        if raw is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, raw)
        signal.signal(signal.SIGWINCH, before_resize)
        recording.close()
        os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _resize(master: int, columns: int, rows: int) -> None:
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _carry(master: int, recording: Recording) -> None:
    """Until the program has closed its terminal."""
    sources = [master, sys.stdin.fileno()]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if master in ready:
            try:
                data = os.read(master, CHUNK)
            except OSError:  # EIO: the other side is closed (pty(7))
                return
            if not data:
                return
            os.write(sys.stdout.fileno(), data)
            recording.shown(data)
        if sys.stdin.fileno() in ready:
            typed = os.read(sys.stdin.fileno(), CHUNK)
            if typed:
                os.write(master, typed)
            else:
                sources.remove(sys.stdin.fileno())
                os.write(master, b"\x04")
