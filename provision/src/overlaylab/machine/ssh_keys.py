"""SSH key pairs: the one that lets this user into the nodes, and throw-away ones for building images."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

from overlaylab.core import disk_full, paths
from overlaylab.core.errors import UserError


def ensure() -> Path:
    """Private SSH key of this user (ed25519, 0600), made at the first call; ``.pub`` lies beside it."""
    key = paths.cache() / "ssh" / "id_ed25519"
    if not (key.exists() and public_file(key).exists()):
        key.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (key.parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not key.exists():
                make(key, "overlaylab")
            elif not public_file(key).exists():
                public = subprocess.run(["ssh-keygen", "-y", "-f", key], check=True, stdout=subprocess.PIPE)
                public_file(key).write_bytes(public.stdout)
    return key


def make(key: Path, comment: str = "") -> None:
    """Write a new pair without a passphrase in place of what is there: ``key`` and ``key.pub``. Raises UserError."""
    key.unlink(missing_ok=True)
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(key)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        # On a full disk it leaves an empty file, which the next call would take for the key.
        for half in (key, public_file(key)):
            half.unlink(missing_ok=True)
        seen = (done.stderr or done.stdout).strip() or f"ssh-keygen ended with {done.returncode}"
        if disk_full.is_reported(seen) or disk_full.is_full(key.parent):
            raise disk_full.error(f"SSH key {key}", seen)
        raise UserError(f"SSH key {key}", "must be made", seen=seen, fix="Correct what ssh-keygen names")


def public(key: Path) -> str:
    """The public half of a private key file, ``ssh-ed25519 AAAA…``, without its comment."""
    return " ".join(public_file(key).read_text().split()[:2])


def public_file(key: Path) -> Path:
    """The file with the public half of a private key file."""
    return key.with_name(key.name + ".pub")
