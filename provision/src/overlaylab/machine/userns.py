"""User namespaces of ordinary users, which mmdebstrap and Chromium's sandbox make: what forbids them, and the remedy.

Settings come in as a mapping, words go out: `remedy` and `forbidden` can be tried for machines that nobody has here.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from overlaylab.core.errors import UserError
from overlaylab.machine.packages import find_program
from overlaylab.machine.root import is_root, user_name

# Ubuntu 24.04 and later: without a profile that allows it, a program has no rights in a namespace that it makes.
APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"

# {setting: the value with which it forbids}. sysctl/kernel.rst and sysctl/user.rst; the second is Debian's own.
FORBIDS = {APPARMOR: "1", "kernel.unprivileged_userns_clone": "0", "user.max_user_namespaces": "0"}

# What to set where nothing narrower than the whole machine's setting helps.
ALLOWS = {"kernel.unprivileged_userns_clone": "1", "user.max_user_namespaces": "1000"}

SYSCTL_FILE = "/etc/sysctl.d/60-overlaylab.conf"
PROFILES = Path("/etc/apparmor.d")


@dataclass(frozen=True)
class Program:
    """One that makes user namespaces. profile: the file of its AppArmor profile; path: as apparmor.d(5) writes it."""

    profile: str
    path: str


# Ubuntu's package apparmor brings this profile: gitlab.com/apparmor, profiles/apparmor.d/mmdebstrap.
MMDEBSTRAP = Program("mmdebstrap", "/usr/bin/mmdebstrap")


def electron(runtime: Path) -> Program:
    """Every version in the folder beside `runtime`: a new one needs no new profile."""
    return Program("overlaylab-electron", f"{runtime.parent}/*/electron")


def settings(folder: Path = Path("/proc/sys")) -> dict[str, str]:
    """The settings that can forbid user namespaces and that this kernel has."""
    found = {}
    for name in FORBIDS:
        with contextlib.suppress(OSError):
            found[name] = Path(folder, *name.split(".")).read_text(encoding="ascii").strip()
    return found


def forbidden(values: Mapping[str, str]) -> list[str]:
    """Names of the settings that forbid them, in the order of FORBIDS."""
    return [name for name, bad in FORBIDS.items() if values.get(name) == bad]


def reasons(values: Mapping[str, str]) -> str:
    """``kernel.unprivileged_userns_clone is 0``; empty where no setting forbids."""
    return ", ".join(f"{name} is {values[name]}" for name in forbidden(values))


def remedy(values: Mapping[str, str], program: Program, profiles: Path = PROFILES) -> str:
    """The commands that allow this program what these settings forbid, and nobody else where that is possible."""
    names = forbidden(values)
    steps = []
    if APPARMOR in names:
        steps.append(f"Allow it to this program alone: {_profile_command(program, profiles)}")
    if lines := [f"{name}={ALLOWS[name]}" for name in names if name in ALLOWS]:
        steps.append(
            f"Allow it on this machine: printf '%s\\n' {' '.join(lines)} | sudo tee {SYSCTL_FILE} && "
            f"sudo sysctl --load {SYSCTL_FILE}"
        )
    return ". ".join(steps)


def _profile_command(program: Program, profiles: Path) -> str:
    file = profiles / program.profile
    load = f"sudo apparmor_parser --replace {file}"
    if file.exists():
        return load  # it was not loaded, or the program would not have been refused
    lines = (
        "abi <abi/4.0>,",
        "include <tunables/global>",
        f'profile {program.profile} "{program.path}" flags=(unconfined) {{',
        "  userns,",
        "}",
    )
    return f"printf '%s\\n' {shlex.join(lines)} | sudo tee {file} && {load}"


@dataclass(frozen=True)
class Trouble:
    """found: why a program gets no user namespace; fix: what to do, sentences without the last full stop."""

    found: str
    fix: str


def mmdebstrap_trouble() -> Trouble | None:
    """Why mmdebstrap, which must be installed, cannot work for this user; None where it can, as for root."""
    if is_root():
        return None
    # Its own test of what it is about to use: namespace, subordinate ids, AppArmor's say.
    tried = subprocess.run(
        [find_program("mmdebstrap") or "mmdebstrap", "--unshare-helper", "true"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if tried.returncode == 0:
        return None
    words = tried.stderr.strip().splitlines()
    return explain(words[-1] if words else f"exit code {tried.returncode}", settings(), user_name())


def explain(words: str, values: Mapping[str, str], user: str, etc: Path = Path("/etc")) -> Trouble:
    """What mmdebstrap's refusal means. words: its last line; etc: where subuid(5) and AppArmor's profiles lie."""
    if forbidden(values):
        return Trouble(reasons(values), remedy(values, MMDEBSTRAP, etc / "apparmor.d"))
    without = [file for file in ("subuid", "subgid") if not _has_range(etc / file, user)]
    if without:
        start = max(_free(etc / "subuid"), _free(etc / "subgid"))
        options = " ".join(f"--add-{file}s {start}-{start + 65535}" for file in without)
        files = " and ".join(f"/etc/{file}" for file in without)
        return Trouble(f"{user} has no range in {files}", f"Give {user} one: sudo usermod {options} {user}")
    return Trouble(
        words,
        "No setting of this kernel forbids it, so a container or its runtime may: allow it there, or work as root, "
        "who needs none",
    )


def _ranges(file: Path) -> list[tuple[str, int, int]]:
    """(user, first id, how many) of subuid(5)."""
    with contextlib.suppress(OSError):
        fields = [line.split(":") for line in file.read_text(encoding="utf-8").splitlines()]
        return [(name, int(first), int(many)) for name, first, many in (f for f in fields if len(f) == 3)]
    return []


def _has_range(file: Path, user: str) -> bool:
    return any(name in (user, str(os.getuid())) and many >= 65536 for name, _, many in _ranges(file))


def _free(file: Path) -> int:
    return max([100000, *(first + many for _, first, many in _ranges(file))])


def check_mmdebstrap() -> None:
    """Raise UserError where mmdebstrap cannot make a user namespace."""
    if trouble := mmdebstrap_trouble():
        raise UserError(
            "user namespaces",
            f"must be allowed to mmdebstrap, which makes the image's disk as {user_name()}",
            seen=trouble.found,
            fix=f"{trouble.fix}. Then type the command again",
        )
