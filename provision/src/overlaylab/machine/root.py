"""Running a command as root: directly, through sudo where a terminal can ask, else through ``sudo -n``."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence

from overlaylab.core.errors import UserError
from overlaylab.core.progress import say


def user_name() -> str:
    """Name of the user that runs this process; USER may be somebody else's after ``su`` or ``sudo``."""
    return pwd.getpwuid(os.getuid()).pw_name


def is_root() -> bool:
    """Whether this process needs no sudo."""
    return os.geteuid() == 0


def prefix(argv: Sequence[str] = ()) -> list[str]:
    """What stands before a command that needs root: nothing, ``sudo`` or ``sudo -n``.

    argv: what root is to type where sudo does not do it. Raises UserError where root is out of reach, before anything was begun.
    """
    if is_root():
        return []
    by_root = f", or have root type: {shlex.join(argv)}" if argv else ""
    if shutil.which("sudo") is None:
        raise UserError(
            "sudo",
            "must be installed where you are not root",
            seen=f"user {user_name()}, no sudo",
            fix=f"Install sudo and let {user_name()} use it{by_root}; then type the command again",
        )
    if sys.stdin is not None and sys.stdin.isatty():
        return ["sudo"]
    asked = subprocess.run(
        ["sudo", "-n", "true"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if asked.returncode != 0:
        raise UserError(
            "sudo",
            "must not need a password where no terminal can ask for it",
            seen=asked.stderr.strip() or f"exit code {asked.returncode}",
            fix=f"Type the command in a terminal, where sudo can ask{by_root}; then type it again",
        )
    return ["sudo", "-n"]


def end_as_root(pids: Sequence[int], why: str, signal: str = "TERM") -> None:
    """Send processes a signal as root: by the shell's own kill, as a minimal system has no other."""
    run_as_root(["sh", "-c", 'kill -s "$@"', "kill", signal, *map(str, pids)], why)


def run_as_root(
    argv: Sequence[str],
    why: str,
    *,
    capture: bool = False,
    stdin: int | None = None,
    stderr: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run ``argv`` as root after saying why; its exit code is the caller's to judge.

    capture: keep stdout (text) in the result instead of passing it to the operator's stderr.
    """
    before = prefix(argv)
    say(f"{why}{' (with sudo)' if before else ''}")
    return subprocess.run(
        [*before, *argv],
        text=True,
        # stdout belongs to the command's own result (tables, JSON).
        stdout=subprocess.PIPE if capture else sys.stderr.fileno(),
        check=False,
        stdin=stdin,
        stderr=stderr,
    )
