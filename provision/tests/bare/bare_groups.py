"""Control groups of a bare root: its own in every hierarchy of this machine, both versions (cgroups(7)).

Shared ones would be wrong: libvirt and LXC name theirs after the nodes, and two labs have nodes of the same names.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

PREFIX = "overlaylab-bare-"
_INIT = "init"


def hierarchies(mounts: str) -> list[tuple[Path, int]]:
    """(mount point, version) of each hierarchy in the text of /proc/mounts, once each."""
    fields = [line.split()[1:3] for line in mounts.splitlines()]
    versions = {"cgroup": 1, "cgroup2": 2}
    return list(dict.fromkeys((Path(point), versions[kind]) for point, kind in fields if kind in versions))


def make(name: str) -> list[Path]:
    """A group for this bare root in each hierarchy; whoever is in them when it makes a namespace has them as roots."""
    made = []
    for point, version in hierarchies(Path("/proc/mounts").read_text()):
        group = point / f"{PREFIX}{name}"
        group.mkdir()
        made.append(group)
        if version == 2:
            # A group with members can have none below it that controllers count (cgroups(7), no internal processes).
            (group / _INIT).mkdir()
        for setting in ("cpuset.cpus", "cpuset.mems"):
            # Version 1: empty at first, and then no process may come in.
            if version == 1 and (group / setting).exists():
                (group / setting).write_text((point / setting).read_text())
    return made


def members(groups: Sequence[Path]) -> list[Path]:
    """The files that take a process into its place in these groups."""
    return [(group / _INIT if (group / _INIT).is_dir() else group) / "cgroup.procs" for group in groups]


def remove(groups: Sequence[Path], seconds: float = 0.0) -> None:
    """Remove the groups with all below, where no process is left in them; wait so long for the last to be gone."""
    deadline = time.monotonic() + seconds
    while left := [group for group in groups if group.exists()]:
        for group in left:
            for folder, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()
        if time.monotonic() > deadline:
            return
        time.sleep(0.05)


def remove_forgotten() -> None:
    """Remove those of runs that were killed; one in use stays with all below: its empty groups are somebody's too."""
    for point, _ in hierarchies(Path("/proc/mounts").read_text()):
        remove([group for group in point.glob(f"{PREFIX}*") if not _is_used(group)])


def _is_used(group: Path) -> bool:
    for folder, _, _ in os.walk(group):
        with contextlib.suppress(OSError):
            if (Path(folder) / "cgroup.procs").read_text():
                return True
    return False
