"""Starting the viewer: what has to be there first, and Electron with the file that was asked for."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from overlaylab.core import paths, task_log
from overlaylab.core.errors import UserError
from overlaylab.core.progress import say
from overlaylab.desktop import database, modules
from overlaylab.desktop import runtime as viewer_runtime
from overlaylab.desktop import user as viewer_user
from overlaylab.desktop.runtime import Runtime
from overlaylab.desktop.user import User
from overlaylab.machine import packages, ready, userns


def prepare(kind: str | None, groups: Sequence[str] = (packages.VIEWER,)) -> Runtime:
    """Packages, modules, runtime and build, each only where it is missing; the runtime."""
    ready.ensure_packages(groups, alone=True)
    modules.ensure_modules()
    runtime = viewer_runtime.ensure(kind)
    modules.ensure_build()
    return runtime


def view(file: Path | None, kind: str | None, make_current: Callable[[Path], None]) -> NoReturn:
    """Show a file, by default the results database, in a window of this process: Ctrl-C closes it.

    make_current: what is done to it before the viewer, which only reads, opens it.
    """
    check_display(os.environ)
    shown = _file(file)
    runtime = prepare(kind)
    if shown is not None:
        make_current(shown)
    user = viewer_user.viewing()
    check_sandbox(user, runtime)
    environment = dict(os.environ)
    if not user.is_self:
        home = paths.cache() / f"viewer-{user.uid}"
        # Made here, so that nobody else's folder is taken for it.
        viewer_user.make_home(home, user)
        key = viewer_user.hand_over_display(user, home, os.environ)
        environment = {**viewer_user.environment(user, home, os.environ), **key}
        say(
            f"the viewer runs as {user.name}, because Electron's sandbox does not work for root; "
            f"it can save below {environment['HOME']}"
        )
        if shown is not None and not viewer_user.may_read(user, shown):
            raise UserError(
                f"{shown}",
                f"must be readable by {user.name}",
                fix="Start the viewer as the file's owner, or copy the file to where that user can read it",
            )
    environment["ELECTRON_OVERRIDE_DIST_PATH"] = str(runtime.folder)
    # Chromium reports each service that a machine lacks (session bus, 3D) as an error; what is fatal is still said.
    # Behind the app: what stands before it would count among the app's own arguments.
    argv = [*user.prefix, str(runtime.program), str(paths.VIEWER), "--log-level=3", *_platform(os.environ)]
    argv += [f"--home={database.home()}"]  # a file from elsewhere opens with a banner
    argv += [str(shown)] if shown is not None else []
    sys.stdout.flush()
    task_log.end("the viewer is started")
    sys.stderr.flush()
    os.execvpe(argv[0], argv, environment)


def _file(file: Path | None) -> Path | None:
    """What is to be shown, absolute: what was asked for, else the results database, None before it exists."""
    if file is None:
        return paths.database().absolute() if paths.database().exists() else None
    if not file.exists():
        raise UserError(f"{file}", "must exist", fix="Correct FILE, or leave it out for the results database")
    return file.absolute()


def _platform(environment: Mapping[str, str]) -> list[str]:
    """X where there is a display (XWayland, under Wayland), as Electron before 38 does by itself; else Wayland."""
    return [] if environment.get("DISPLAY") else ["--ozone-platform=wayland"]


def check_display(environment: Mapping[str, str]) -> None:
    """Raise UserError where no window can be opened."""
    if problem := display_problem(environment):
        raise UserError(
            "viewer",
            "must have a screen",
            seen=problem,
            fix="Type `./task view` in a terminal on the desktop, or over `ssh -X`; "
            "`./task results:report` writes an HTML file instead",
        )


def display_problem(environment: Mapping[str, str]) -> str | None:
    """Why no window can be opened; None where one can, as far as can be told without opening it."""
    display = environment.get("DISPLAY")
    if not display:
        return None if environment.get("WAYLAND_DISPLAY") else "neither DISPLAY nor WAYLAND_DISPLAY is set"
    parts = re.fullmatch(r"(?:unix)?([^:/]*):(\d+)(?:\.\d+)?", display)
    if parts is None:
        return None  # a path or a protocol: X's own library will say
    host, number = parts[1], int(parts[2])
    addresses: list[str | tuple[str, int]] = (
        [(host, 6000 + number)] if host else [f"\0/tmp/.X11-unix/X{number}", f"/tmp/.X11-unix/X{number}"]
    )
    return (
        None
        if any(_answers(address) for address in addresses)
        else f"no X server answers at DISPLAY={display}"
    )


def _answers(address: str | tuple[str, int]) -> bool:
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tried, contextlib.suppress(OSError):
        tried.settimeout(5)
        tried.connect(address)
        return True
    return False


def check_sandbox(user: User, runtime: Runtime) -> None:
    """Raise UserError where the renderer's sandbox cannot work; Electron itself would only abort."""
    if problem := sandbox_problem(user, runtime.folder):
        raise UserError("viewer's sandbox", "must work", seen=problem, fix=sandbox_advice(runtime.folder))


def sandbox_problem(user: User, runtime: Path) -> str | None:
    """Why Chromium's sandbox has neither user namespaces nor its helper; None where it has one of them."""
    with contextlib.suppress(OSError):
        helper = (runtime / "chrome-sandbox").stat()
        if helper.st_uid == 0 and stat.S_IMODE(helper.st_mode) == 0o4755:
            return None
    values = userns.settings()
    refused = f"{user.name} may not make user namespaces: "
    if userns.APPARMOR in userns.forbidden(values):
        # AppArmor decides for each program: that unshare may (it has a profile since Ubuntu 25.04) says nothing.
        return refused + userns.reasons(values) if _is_unconfined(user, runtime) else None
    tried = subprocess.run(
        [*user.prefix, "unshare", "--user", "--map-root-user", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode == 0:
        return None
    words = tried.stderr.strip().splitlines()
    return refused + (userns.reasons(values) or (words[-1] if words else f"exit code {tried.returncode}"))


def _is_unconfined(user: User, runtime: Path) -> bool:
    """Whether no AppArmor profile is for this Electron: as node, without a sandbox, it tells which one it runs under."""
    program = runtime / "electron"
    if not program.exists():
        return not (userns.PROFILES / userns.electron(runtime).profile).exists()
    asked = subprocess.run(
        [*user.prefix, "env", "ELECTRON_RUN_AS_NODE=1", str(program), "-p",
         "require('fs').readFileSync('/proc/self/attr/current', 'utf8')"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    return asked.returncode == 0 and asked.stdout.strip("\0\n ") == "unconfined"


def sandbox_advice(runtime: Path) -> str:
    """What to do where the sandbox cannot work: a profile where AppArmor alone forbids it, else Chromium's helper."""
    values = userns.settings()
    forbidden, wide = (
        userns.forbidden(values),
        userns.remedy(values, userns.electron(runtime)),
    )
    if forbidden == [userns.APPARMOR]:
        return wide
    helper = shlex.quote(str(runtime / "chrome-sandbox"))
    own = f"Give the sandbox its helper: sudo chown root:root {helper} && sudo chmod 4755 {helper}"
    return f"{own}. Or: {wide}" if wide and userns.APPARMOR not in forbidden else own
