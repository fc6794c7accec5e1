"""Whom the viewer runs as. For root it is somebody else: Chromium's sandbox does not work for root.

That somebody may read what root may (the capability CAP_DAC_READ_SEARCH, which the sandboxed processes lose again),
so that results in root's folders open, and may write nothing but a home of its own.
"""

from __future__ import annotations

import dataclasses
import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from overlaylab.core.errors import UserError
from overlaylab.machine.root import is_root

# A user that nothing else on the machine runs as: of the range that neither Debian nor systemd gives away.
#
# https://www.debian.org/doc/debian-policy/ch-opersys.html#uid-and-gid-classes, https://systemd.io/UIDS-GIDS
STRANGER = 65529

# Without the secure bit, access(2), which SQLite asks about a journal, takes no account of capabilities.
_READING = (
    "--securebits=+no_setuid_fixup",
    "--inh-caps=-all,+dac_read_search",
    "--ambient-caps=-all,+dac_read_search",
)

_KEPT = {
    "PATH",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "DISPLAY",
    "LAB_DB",
    "CI",
    "DEBUG",
    "PYTHONPATH",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
}
_KEPT_BEGINNINGS = ("LC_", "ELECTRON_", "NODE_", "OVERLAYLAB_", "VIEWER_")


@dataclass(frozen=True)
class User:
    """Somebody to run programs as; `prefix` is what stands before a command for that, empty for oneself."""

    uid: int
    gid: int
    name: str
    prefix: tuple[str, ...] = ()
    # Where its files are, for somebody who has a home on this machine.
    home: Path | None = None

    @property
    def is_self(self) -> bool:
        return not self.prefix


def testing(needed: Path) -> User:
    """As `viewing`, but a user without privileges at all where that one can read the file that is needed."""
    user = viewing()
    if user.is_self:
        return user
    plain = dataclasses.replace(user, prefix=tuple(word for word in user.prefix if word not in _READING))
    return plain if may_read(plain, needed) else user


def viewing() -> User:
    """Oneself; for root, the user that typed sudo, else a stranger. Raises UserError where neither can be had."""
    if not is_root():
        return User(os.getuid(), os.getgid(), _name(os.getuid()) or str(os.getuid()))
    uid = int(os.environ.get("SUDO_UID") or 0) or STRANGER
    entry = _entry(uid)
    gid = entry.pw_gid if entry else uid
    if shutil.which("setpriv") is None:
        raise UserError(
            "viewer as root",
            "must be able to become another user: Electron's sandbox does not work for root",
            seen="no setpriv",
            fix="Start it as an ordinary user, or install util-linux",
        )
    become = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--init-groups" if entry else "--clear-groups"]
    # Where root itself lacks it, as in many containers, ordinary permissions have to do.
    for prefix in ([*become, *_READING], become):
        if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
            name, home = (entry.pw_name, Path(entry.pw_dir)) if entry else (f"user {uid}", None)
            return User(uid, gid, name, tuple(prefix), home)
    raise UserError(
        "viewer as root",
        "must be able to become another user: Electron's sandbox does not work for root",
        seen=f"setpriv cannot become user {uid}",
        fix="Start it as an ordinary user",
    )


def _entry(uid: int) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        return None


def _name(uid: int) -> str | None:
    entry = _entry(uid)
    return entry.pw_name if entry else None


def make_home(folder: Path, user: User) -> Path:
    """Make `folder` a home of that user's alone, with what is expected in one."""
    for path in (
        folder,
        folder / "config",
        folder / "cache",
        folder / "data",
        folder / "runtime",
        folder / "tmp",
    ):
        path.mkdir(mode=0o700, exist_ok=True)
        os.chown(path, user.uid, user.gid, follow_symlinks=False)
    return folder


def environment(user: User, home: Path, given: Mapping[str, str]) -> dict[str, str]:
    """What a program gets of the environment `given` as another user, or in a test: no keys, no session bus."""
    kept = {
        name: value for name, value in given.items() if name in _KEPT or name.startswith(_KEPT_BEGINNINGS)
    }
    return {
        **kept,
        "HOME": str(user.home or home),
        "USER": user.name.replace(" ", "-"),
        "LOGNAME": user.name.replace(" ", "-"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_RUNTIME_DIR": str(home / "runtime"),
        "TMPDIR": str(home / "tmp"),
    }


def hand_over_display(user: User, home: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Give that user root's key to the X server; the variables that name it. Raises UserError under Wayland alone."""
    if not given.get("DISPLAY"):
        raise UserError(
            "viewer as root",
            "must be given an X display: a Wayland session admits its own user alone",
            seen=f"WAYLAND_DISPLAY={given.get('WAYLAND_DISPLAY')}, no DISPLAY",
            fix="Start it as the user of that session",
        )
    key = Path(given.get("XAUTHORITY") or Path(given.get("HOME") or "/root") / ".Xauthority")
    if not key.is_file():  # a server that asks for none, or by user: it will say so itself
        return {}
    copy = home / ".Xauthority"
    copy.unlink(missing_ok=True)
    # Made as nobody else's from the start; its bytes are a password.
    with os.fdopen(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key.read_bytes())
    os.chown(copy, user.uid, user.gid)
    return {"XAUTHORITY": str(copy)}


def may_read(user: User, path: Path) -> bool:
    """Whether that user can read a file."""
    return (
        subprocess.run([*user.prefix, "test", "-r", str(path)], capture_output=True, check=False).returncode
        == 0
    )
