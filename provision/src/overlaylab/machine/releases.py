"""Releases of Debian and Ubuntu: which of `packages`' packages have another name there, and which are not there.

Debian's rows were read from its package lists (main, amd64) in November 2026. No list of Ubuntu's was at hand: its row
has what its documentation and reports say for certain; what it does not name was never looked up, and apt-get decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Release:
    """renamed: {package: its name there}; absent: {package: why}."""

    title: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)


# https://wiki.debian.org/ReleaseGoals/64bit-time: those with a time in their interface.
_WIDER_TIMES = {name: f"{name}t64" for name in ("libgtk-3-0", "libasound2", "libatk-bridge2.0-0", "libcups2")}

RELEASES = {
    "debian-12": Release("Debian 12"),
    "debian-13": Release(
        "Debian 13",
        renamed=_WIDER_TIMES,
        absent={
            "packer": "not in Debian 13's main",
            "vagrant-lxc": "not in Debian 13's main",
        },
    ),
    "ubuntu-24.04": Release(
        "Ubuntu 24.04",
        # In main and universe. The old names are in no list of 24.04's; libasound2 is a virtual package with two providers.
        renamed=_WIDER_TIMES,
        absent={
            # documentation.ubuntu.com/public-images, Vagrant; github.com/zulip/zulip/issues/32837.
            "vagrant": "dropped by Ubuntu for its licence",
            "vagrant-libvirt": "needs Ubuntu's vagrant",
            "vagrant-lxc": "needs Ubuntu's vagrant",
            # snapcraft.io/blog/chromium-in-ubuntu-deb-to-snap-transition.
            "chromium": "a snap on Ubuntu",
        },
    ),
}


def key(os_release: Path = Path("/etc/os-release")) -> str:
    """``ubuntu-24.04``: os-release(5)'s ID and VERSION_ID; without them, what is there of it."""
    try:
        lines = os_release.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    fields = {name: value.strip("\"'") for name, _, value in (line.partition("=") for line in lines)}
    return "-".join(filter(None, (fields.get("ID"), fields.get("VERSION_ID"))))


def here() -> Release | None:
    """This machine's; None where it is none of RELEASES."""
    return RELEASES.get(key())


def warning(name: str) -> str:
    """One line for a machine whose `key` is not among RELEASES."""
    known = ", ".join(release.title for release in RELEASES.values())
    return f"packages may have other names here: {name or 'this system'} is none of {known}"
