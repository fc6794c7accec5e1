"""A screen that nobody sees (Xvfb), and commands that run on it as an ordinary user: tests, screenshots, benchmarks."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.desktop import user as viewer_user
from overlaylab.desktop.user import User

SIZE = "2560x1600x24"


@contextlib.contextmanager
def screen(user: User, home: Path, size: str = SIZE) -> Iterator[dict[str, str]]:
    """The variables that lead to a new X server of that user's. It goes with the block, or with this process."""
    key = home / ".Xauthority"
    if not key.exists():
        key.write_bytes(_entry(secrets.token_bytes(16)))
        key.chmod(0o600)
        os.chown(key, user.uid, user.gid)
    told, number = os.pipe()
    # The server picks a free number by itself and tells it: two that start at once do not get the same one.
    argv = ["Xvfb", "-displayfd", str(number), "-screen", "0", size, "-nolisten", "tcp", "-auth", str(key)]
    server = subprocess.Popen(
        [*user.prefix, "setpriv", "--pdeathsig=TERM", *argv],
        pass_fds=[number],
        env=viewer_user.environment(user, home, os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    os.close(number)
    try:
        with os.fdopen(told, encoding="ascii") as pipe:
            display = pipe.readline().strip()  # ends with the server, if that ends
        if not display:
            words = server.communicate()[1].decode(errors="replace").strip().splitlines()
            raise UserError(
                "Xvfb",
                "must start",
                seen=words[-1] if words else f"exit code {server.returncode}",
                fix="Look at /tmp/.X11-unix, which has to be root's with mode 1777, and at free memory",
            )
        yield {"DISPLAY": f":{display}", "XAUTHORITY": str(key)}
    finally:
        server.terminate()
        server.wait()
        if server.stderr is not None:
            server.stderr.close()


def _entry(cookie: bytes) -> bytes:
    """A record of Xauthority(5) for any address and any display: its key is known before the server's number is."""
    fields = (b"", b"", b"MIT-MAGIC-COOKIE-1", cookie)
    return struct.pack(">H", 0xFFFF) + b"".join(struct.pack(">H", len(field)) + field for field in fields)


def run(
    command: Sequence[str],
    variables: Mapping[str, str],
    keep: Path | None = None,
    size: str = SIZE,
    screens: int = 1,
) -> int:
    """Run a command on a screen of its own, as an ordinary user in an empty home; its exit code.

    variables: on top of the usual ones. screens: so many; VIEWER_SCREENS names them all, with commas. VIEWER_OUT names a folder that the command may write to; what is in it goes
    to `keep` afterwards, with the caller's permissions. What the command has left running is ended with it.
    """
    # The checkout may lie in root's own folders; else nothing sets this user apart from any other.
    user = viewer_user.testing(paths.VIEWER / "package.json")
    with tempfile.TemporaryDirectory(prefix="overlaylab-viewer-", ignore_cleanup_errors=True) as name:
        home = viewer_user.make_home(Path(name), user)
        out = home / "out"
        out.mkdir()
        os.chown(out, user.uid, user.gid)
        with contextlib.ExitStack() as stack:
            shown = [stack.enter_context(screen(user, home, size)) for _ in range(screens)]
            display = shown[0] | {"VIEWER_SCREENS": ",".join(one["DISPLAY"] for one in shown)}
            given = {**viewer_user.environment(user, home, os.environ), "HOME": str(home)}
            process = subprocess.Popen(
                [*user.prefix, "setpriv", "--pdeathsig=TERM", *command],
                env={**given, **display, "VIEWER_OUT": str(out), **variables},
                start_new_session=True,
            )
            try:
                code = process.wait()
            finally:
                for how in (signal.SIGTERM, signal.SIGKILL):
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, how)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(timeout=5)
        if keep is not None:
            _take(out, keep)
    return code


def _take(out: Path, keep: Path) -> None:
    """Copy plain files alone: where another user wrote, a link could lead anywhere."""
    for path in sorted(out.rglob("*")):
        if path.is_file() and not path.is_symlink():
            target = keep / path.relative_to(out)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
