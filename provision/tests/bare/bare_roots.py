"""Bare roots: made once from a list of packages, kept as an archive, unpacked anew for each use."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

SUITE = "bookworm"
# What a new user's machine has beyond dpkg's essential packages; whatever else is needed, the project installs.
PACKAGES = ("python3", "sudo", "ca-certificates", "git")


# The same with systemd as its first process, as on most machines.
WITH_SYSTEMD = (*PACKAGES, "systemd-sysv", "dbus", "libpam-systemd")


def state() -> Path:
    """Where roots, runs and shared caches lie: OVERLAYLAB_BARE."""
    return Path(os.environ.get("OVERLAYLAB_BARE") or "/var/tmp/overlaylab-bare")


def archive(packages: Sequence[str] = PACKAGES) -> Path:
    """The root as a tar file, made from Debian's packages where it is not there yet: half a minute."""
    key = hashlib.sha256(" ".join((SUITE, *packages)).encode()).hexdigest()[:12]
    target = state() / "roots" / f"{SUITE}-{key}.tar"
    if target.exists():
        return target
    if shutil.which("mmdebstrap") is None:
        raise SystemExit(
            "bare root: mmdebstrap is missing; apt-get install mmdebstrap debian-archive-keyring brings it"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    print(f"bare root: making {target.name} of Debian's packages, about half a minute", flush=True)
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}", "--format=tar",
             *(f"--aptopt={line}" for line in apt_settings()), SUITE, str(partial), *mirrors()],
            check=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def apt_settings() -> list[str]:
    """This machine's own proxies and certificates of apt, as lines of apt.conf(5)."""
    names = ("http::Proxy", "https::Proxy", "https::CAInfo", "ftp::Proxy")
    argv = ["apt-config", "dump", '--format=%F "%v";%n', *(f"Acquire::{name}" for name in names)]
    dumped = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    return [line for line in dumped.splitlines() if line.strip()]


def mirrors() -> list[str]:
    """Where this machine gets the suite from, as lines of sources.list(5); without any, mmdebstrap knows where."""
    shown = "$(ORIGIN) deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
    argv = ["apt-get", "indextargets", "--format", shown, "Created-By: Packages"]
    listed = subprocess.run(argv, capture_output=True, text=True, check=False).stdout.splitlines()
    wanted = re.compile(rf"Debian (deb \S+ {SUITE}(-updates|-security)? main)")
    return list(dict.fromkeys(found[1] for line in listed if (found := wanted.fullmatch(line))))


@contextlib.contextmanager
def unpacked(packages: Sequence[str] = PACKAGES, later: contextlib.ExitStack | None = None) -> Iterator[Path]:
    """A fresh copy of the root, removed afterwards; copies that a killed run left are removed first.

    later: with which it is removed instead. For minutes after many files were removed, ext4 takes several times as long
    to make others (recently_deleted() in the kernel's fs/ext4/ialloc.c): that is not the next machine's to bear.
    """
    runs = state() / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    for left in runs.iterdir():
        with left.open() if left.is_file() else contextlib.nullcontext() as lock:
            if lock is not None and _lock(lock):
                _remove(left.with_suffix(""))
    folder = Path(tempfile.mkdtemp(dir=runs))
    with contextlib.ExitStack() as now:
        removal = later or now
        lock = removal.enter_context(folder.with_suffix(".lock").open("w"))
        _lock(lock)
        removal.callback(_remove, folder)
        subprocess.run(["tar", "--extract", "--file", archive(packages), "--numeric-owner", "--xattrs",
                        "--xattrs-include=*", "--directory", folder], check=True)  # fmt: skip
        folder.chmod(0o755)
        yield folder


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_suffix(".lock").unlink()


def _lock(file) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
