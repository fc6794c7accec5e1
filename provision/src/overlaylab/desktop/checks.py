"""What ``./task doctor`` says of the viewer. Nothing here stands in the lab's way, changes anything or needs a network."""

from __future__ import annotations

import os
from collections.abc import Callable

from overlaylab.core.errors import UserError
from overlaylab.core.progress import readable
from overlaylab.desktop import fallback, start
from overlaylab.desktop import runtime as viewer_runtime
from overlaylab.desktop import user as viewer_user
from overlaylab.machine import bundle_source, packages
from overlaylab.machine.checks import OK, WARNING, Check


def all_checks() -> list[Check]:
    """Every check, in the order in which the viewer needs them."""
    return [check() for check in _CHECKS]


def check_packages() -> Check:
    name = "viewer: packages"
    try:
        missing = packages.missing([packages.VIEWER], alone=True)
    except UserError as error:
        return Check(name, WARNING, f"{error.where}: {error.seen}", error.fix)
    if missing:
        return Check(name, OK, f"the first `./task view` installs {', '.join(missing)}")
    if not packages.uses_apt():
        return Check(
            name, OK, "not looked at on a system without apt; Electron names a library that it lacks"
        )
    return Check(name, OK, "all there")


def check_current() -> Check:
    name, runtime = "viewer: Electron", viewer_runtime.current()
    if runtime.ready():
        return Check(name, OK, f"{runtime.version} is there")
    if bundle_source.present():
        return _bundled(name, runtime)
    if not (noted := viewer_runtime.failure(runtime)):
        return Check(
            name, OK, f"{runtime.version} is not there yet: the first `./task view` downloads it, if it can"
        )
    ago, reason = noted
    return Check(name, OK, f"{runtime.version} could not be downloaded {readable(max(ago, 0))} ago: {reason}")


def check_fallback() -> Check:
    name, runtime = "viewer: fallback", viewer_runtime.fallback()
    if runtime.ready():
        return Check(name, OK, f"Electron {runtime.version} is there")
    if bundle_source.present():
        return _bundled(name, runtime)
    if not fallback.fits():
        return Check(name, OK, f"none for this processor, {os.uname().machine}")
    return Check(
        name, OK, f"Electron {runtime.version} comes from the package index where the other cannot be had"
    )


def _bundled(name: str, runtime: viewer_runtime.Runtime) -> Check:
    held = bundle_source.find(f"electron/{runtime.version}.tar.gz")
    return Check(name, OK, f"{runtime.version} {'comes from' if held else 'is not in'} the bundle beside")


def check_sandbox() -> Check:
    name = "viewer: sandbox"
    try:
        user = viewer_user.viewing()
    except UserError as error:
        return Check(name, WARNING, f"{error.where}: {error.seen}", error.fix)
    ready = [one for one in (viewer_runtime.current(), viewer_runtime.fallback()) if one.ready()]
    folder = (ready or [viewer_runtime.current()])[0].folder
    problem = start.sandbox_problem(user, folder)
    if problem:
        return Check(name, WARNING, problem, f"the viewer cannot start. {start.sandbox_advice(folder)}")
    whom = "" if user.is_self else f"; for root, the viewer runs as {user.name}"
    return Check(name, OK, f"works{whom}")


def check_display() -> Check:
    name = "viewer: screen"
    problem = start.display_problem(os.environ)
    if problem:
        return Check(name, OK, f"{problem}: `./task view` needs one, `./task results:report` does not")
    return Check(name, OK, os.environ.get("DISPLAY") or f"Wayland, {os.environ.get('WAYLAND_DISPLAY')}")


_CHECKS: tuple[Callable[[], Check], ...] = (
    check_packages,
    check_current,
    check_fallback,
    check_sandbox,
    check_display,
)
