"""Systems that a bundle can be for, by the names of `machine.releases`."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

from overlaylab.core.errors import UserError


@dataclass(frozen=True)
class System:
    """A release of a distribution.

    origin, releases: as apt_preferences(5) names what its packages come from, one pin for each release.
    python: of its package python3, which the toolchain's wheels have to fit. glibc: the newest that wheels may ask for.
    """

    name: str
    origin: str
    releases: tuple[str, ...]
    python: tuple[int, int]
    glibc: tuple[int, int]


SYSTEMS = {
    system.name: system
    for system in (
        System(
            "debian-12",
            "Debian",
            ("n=bookworm", "n=bookworm-updates", "n=bookworm-security"),
            (3, 11),
            (2, 36),
        ),
        System(
            "debian-13", "Debian", ("n=trixie", "n=trixie-updates", "n=trixie-security"), (3, 13), (2, 41)
        ),
        # All of Ubuntu's pockets have the release's codename, backports too.
        System(
            "ubuntu-24.04", "Ubuntu", ("a=noble", "a=noble-updates", "a=noble-security"), (3, 12), (2, 39)
        ),
    )
}

# dpkg's names of architectures, and what wheels call them.
WHEELS = {"amd64": "x86_64", "arm64": "aarch64"}


def chosen(asked: str) -> tuple[System, str]:
    """The system and architecture that FOR names: ``debian-12`` or ``debian-12-arm64``. Raises UserError."""
    here = architecture()
    name, dash, wanted = asked.rpartition("-")
    if not dash or wanted not in WHEELS:
        name, wanted = asked, here
    if name not in SYSTEMS:
        raise UserError(
            "FOR",
            f"must be one of {', '.join(SYSTEMS)}",
            seen=asked or "nothing",
            fix="Name the system of the machine that the bundle is for",
        )
    if wanted != here:
        raise UserError(
            "FOR",
            f"must be of this machine's architecture, {here}: image and daemons are built here and tried here",
            seen=wanted,
            fix=f"Make that bundle on a machine with {wanted}",
        )
    return SYSTEMS[name], wanted


def architecture() -> str:
    """dpkg's name of this machine's architecture."""
    try:
        asked = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        machine = os.uname().machine
        return {wheel: name for name, wheel in WHEELS.items()}.get(machine, machine)
    return asked.stdout.strip()
