"""The tasks ``lab:<overlay>``: written from what the roles say about themselves, so that no list names them twice."""

from __future__ import annotations

from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.model import HOST
from overlaylab.run.selection import ALL
from overlaylab.specs import overlays


def path() -> Path:
    """The Taskfile that `text` belongs in."""
    return paths.PROVISION / "Taskfile.overlays.yml"


def text() -> str:
    """A Taskfile with a task for every overlay that has a role, and one for all of them."""
    tasks = [_task(name) for name in overlays.names()]
    tasks.append(
        _entry(
            ALL,
            "Measure all overlays in all modes, in one table",
            " OVERLAYS, MODES,",
        )
    )
    return "\n".join(
        ['# Written by ./task docs:overlays from the roles.\nversion: "3"\n\ntasks:', "\n".join(tasks)]
    )


def _task(name: str) -> str:
    if name == HOST:
        return _entry(name, "Measure the host network of the nodes itself", " MODES,")
    return _entry(name, f"Measure {overlays.load(name).title} against the host", " MODES, ARGUMENTS,")


def _entry(name: str, says: str, typed: str) -> str:
    return f"""  lab:{name}:
    desc: >-
      {says}
      (PROFILE, PROFILES, CLUSTER, SUITE,{typed}
      BLOCKS, SCALE, SEED, FRESH, MARGIN, PRECISION, PROVIDER, INVENTORY, DRY_RUN)
    cmds: [{{task: measure, vars: {{OVERLAY: {name}}}}}]
"""
