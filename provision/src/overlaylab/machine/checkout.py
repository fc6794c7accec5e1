"""What this checkout is: its version, its commit, and whether its files are that commit's."""

from __future__ import annotations

import os
import subprocess
import tomllib
from dataclasses import dataclass

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.machine import bundle_source


@dataclass(frozen=True)
class Checkout:
    """commit: 40 hex digits; changed: whether files differ from it. Both None where nothing tells them."""

    version: str
    commit: str | None
    changed: bool | None

    def __str__(self) -> str:
        """As a run keeps it: ``0.1.0+a9ab47058231``, ``0.1.0+a9ab47058231.changed``, ``0.1.0`` (PEP 440)."""
        parts = [self.commit[:12] if self.commit else "", "changed" if self.changed else ""]
        local = ".".join(part for part in parts if part)
        return f"{self.version}+{local}" if local else self.version


def described() -> Checkout:
    """This checkout. Out of a bundle, whose files its user may change, the commit alone is known."""
    project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if (paths.ROOT / ".git").exists():
        commit, status = _git("rev-parse", "HEAD"), _git("status", "--porcelain")
        return Checkout(project["version"], commit, None if status is None else bool(status))
    return Checkout(project["version"], _of_the_bundle(), None)


def _git(*words: str) -> str | None:
    """What git says; None without git, without a commit, or in a repository of another user's."""
    argv = ["git", "-C", str(paths.ROOT), *words]
    quiet = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}  # git-status(1) would write the index
    try:
        return subprocess.run(argv, text=True, capture_output=True, check=True, env=quiet).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _of_the_bundle() -> str | None:
    try:
        return bundle_source.manifest().commit if bundle_source.present() else None
    except UserError:
        return None
