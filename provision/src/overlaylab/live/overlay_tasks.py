"""The tasks ``lab:<overlay>``: written from what the roles say about themselves, so that no list names them twice."""

from __future__ import annotations

import textwrap
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.model import HOST
from overlaylab.run.options import declared
from overlaylab.run.selection import ALL
from overlaylab.specs import overlays


def path() -> Path:
    """The Taskfile that `text` belongs in."""
    return paths.PROVISION / "Taskfile.overlays.yml"


def text() -> str:
    """A Taskfile with a task for every overlay that has a role, and one for all of them."""
    tasks = [_task(name) for name in overlays.names()]
    tasks.append(_entry(ALL, "Measure all overlays in all modes, in one table", "arguments"))
    return "\n".join(
        ['# Written by ./task docs:overlays from the roles.\nversion: "3"\n\ntasks:', "\n".join(tasks)]
    )


def _task(name: str) -> str:
    if name == HOST:
        return _entry(name, "Measure the host network of the nodes itself", "overlays", "arguments")
    return _entry(name, f"Measure {overlays.load(name).title} against the host", "overlays")


def _entry(name: str, says: str, *without: str) -> str:
    """without: the options that mean nothing there."""
    typed = ", ".join(option.variable for option in declared().values() if option.name not in without)
    lines = textwrap.wrap(f"({typed})", 100, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(
        [
            f"  lab:{name}:",
            "    desc: >-",
            f"      {says}",
            *lines,
            f"    cmds: [{{task: measure, vars: {{OVERLAY: {name}}}}}]",
            "",
        ]
    )
