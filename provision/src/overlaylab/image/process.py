"""Running the long programs of an image build, so that nothing outlives them: no VM, no mount, no folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from overlaylab.core import disk_full
from overlaylab.core.errors import UserError
from overlaylab.core.progress import say

# Seconds that Packer has to stop its VM and clean up.
GRACE = 20

# How much of a log an error shows.
LOG_LINES = 3

# What apt, mmdebstrap, Packer and the image's own test write before what went wrong.
MARKS = ("E: ", "image test failed:", "errored after", "Error: ", "error:", "mkfs.ext4: ", "grub-mkimage: ")


def run(
    argv: Sequence[str],
    log: Path,
    environment: Mapping[str, str],
    *,
    what: str,
    cwd: Path | None = None,
    own_mounts: bool = False,
) -> None:
    """Run a program with its output in ``log``. Raises UserError with the log's end if it fails.

    Interrupted, it is asked to stop as Ctrl-C would ask, then killed with all its children.
    own_mounts: as root, give it mounts and process ids of its own, which the kernel takes back at its end
    (mmdebstrap mounts /proc and /sys below the new root, and does so in the host's view).
    """
    if own_mounts and os.geteuid() == 0:
        # unshare(1) ignores the milder signals; its own end is the end of all that it started.
        wrapper = ["setpriv", "--pdeathsig", "KILL", "--"]
        wrapper += ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
    else:
        wrapper = ["setpriv", "--pdeathsig", "TERM", "--"]
    with log.open("w") as output:
        with _held_back() as signals:
            process = subprocess.Popen(
                [*wrapper, *argv],
                cwd=cwd,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            for number in signals:
                signal.raise_signal(number)
            code = process.wait()
        except BaseException:
            _stop(process)
            log.unlink(missing_ok=True)
            raise
    if code:
        text = log.read_text(errors="replace")
        if disk_full.is_full(log.parent) and not disk_full.is_reported(text):
            text += "No space left on device"  # the log had no room either
        raise UserError(
            f"image:build, {what}",
            "must succeed",
            seen=f"exit code {code}, its log: {last_words(text)}",
            fix=advice(text) + f" The whole log is {log}",
        )


def last_words(text: str) -> str:
    """What a log says went wrong, on one line: its first lines that look like errors, else its end."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if any(mark in line for mark in MARKS)]
    return " | ".join(wrong[:LOG_LINES] or lines[-LOG_LINES:]) or "none"


def advice(text: str) -> str:
    """What to do about a failed build, from what its log says."""
    if "Temporary failure resolving" in text or "Could not connect to" in text or "Failed to fetch" in text:
        return "The first build downloads some 250 MB of Debian packages: check the network and type the command again."
    if disk_full.is_reported(text):
        return f"{disk_full.FIX}."
    if "subuid" in text or "subgid" in text:
        return (
            "An ordinary user needs subordinate ids: "
            "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER."
        )
    return "Type the command again; if it fails the same way, the log says more."


@contextlib.contextmanager
def _held_back() -> Iterator[list[int]]:
    """What interrupts meanwhile only comes into the list: a program that has begun would have nobody to stop it."""
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # no other is interrupted
        yield came
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in numbers}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGINT)
        process.wait(GRACE)
    with contextlib.suppress(ProcessLookupError):  # also whoever is left when the leader is gone
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def end_leftovers(folder: Path) -> None:
    """Kill what a builder that was itself killed left running: processes with ``folder`` in their arguments.

    The folder's name is random, so nobody else's are meant.
    """
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # ended meanwhile, or not ours
            if os.fsencode(folder) in (process / "cmdline").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)


def remove(folder: Path) -> None:
    """Remove a build folder, also what root of an ordinary user's namespace owns in it."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists() and os.geteuid() != 0:
        # A maker's folder, or the one that such folders are in.
        roots = [str(root) for root in (folder / "root", *folder.glob("*/root"))]
        argv = ["mmdebstrap", "--unshare-helper", "rm", "-rf", "--one-file-system", *roots]
        subprocess.run(argv, check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def workspace(parent: Path) -> Iterator[Path]:
    """A folder beside the result, so that moving into place is one rename; always removed."""
    work = Path(tempfile.mkdtemp(prefix=".building-", dir=parent))
    work.chmod(0o755)  # in its user namespace, an ordinary user's root is somebody else
    try:
        yield work
    finally:
        remove(work)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let a closed terminal or `kill` end the build as Ctrl-C does, through the clean-up."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    # SIGINT too: asyncio's own handler only cancels what waits for it.
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def lock(path: Path, waiting: str | None = None) -> Iterator[None]:
    """Hold an exclusive lock, which ends with the process however it ends; says ``waiting`` if it must."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting:
                say(waiting)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
