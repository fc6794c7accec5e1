"""What bare roots share so that a run does not fetch and build all of it again: downloads, and what has a content key.

Everything in here is named by what it holds, so that what is there is right: an image and daemons by the digest of
their inputs, downloads as their own programs keep them. Nothing else is shared.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import bare_roots
from bare_space import USER

# The ordinary user's cache folder, below a root.
OWN = Path("var/tmp") / f"overlaylab-{USER}"


@dataclass(frozen=True)
class Shared:
    """One kind. inside: where it lies below a root; entries: which of that folder's entries count.

    whole: a file that every finished entry has; kept: so many of the newest entries stay, None for all.
    linked: entries are never written again, so that they are shared as hard links.
    replaced: a run's own take the place of all that was there, as their names say nothing of what they hold.
    """

    name: str
    inside: Path
    entries: str = "*"
    whole: str | None = None
    kept: int | None = None
    linked: bool = True
    replaced: bool = False


ALL = (
    Shared("packages", Path("var/cache/apt/archives"), "*.deb"),
    Shared("pip", OWN / "pip"),
    Shared("uv", OWN / "uv", replaced=True),
    Shared("npm", OWN / "npm"),
    Shared("electron", OWN / "electron"),
    Shared("daemons", OWN / "daemons", "[a-z]*-*", "manifest.json", 40),
    # The box for containers is added to an image's folder later.
    Shared("images", OWN / "images", "[a-z]*-*", "manifest.json", 3, linked=False),
)
# A walk installs it anew, as a newcomer does.
TOOLCHAIN = Shared("toolchain", OWN / "toolchain", "*", ".complete", 1)


def folder() -> Path:
    return bare_roots.state() / "shared"


def lend(root: Path, *, toolchain: bool = False) -> None:
    """Put all that is shared into a root in which nothing has run yet, before its users own anything.

    toolchain: as installed, too; it knows its own path, which is the same in every root.
    """
    for shared in (*ALL, *((TOOLCHAIN,) if toolchain else ())):
        _copy(shared, folder() / shared.name, root / shared.inside)


def collect(root: Path) -> None:
    """Keep what a run has fetched and built."""
    for shared in (*ALL, TOOLCHAIN):
        target = folder() / shared.name
        if shared.replaced and (root / shared.inside).exists():
            shutil.rmtree(target, ignore_errors=True)
        _copy(shared, root / shared.inside, target)
        entries = sorted(target.glob(shared.entries), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in entries[shared.kept :] if shared.kept else []:
            shutil.rmtree(old)


def _copy(shared: Shared, source: Path, target: Path) -> None:
    found = [
        path for path in source.glob(shared.entries) if not shared.whole or (path / shared.whole).exists()
    ]
    if not found:
        return
    target.mkdir(parents=True, exist_ok=True)
    # What is there already stays.
    if shared.linked:
        argv = ["cp", "--archive", "--no-clobber", "--link", "--target-directory", str(target), "--"]
        subprocess.run([*argv, *map(str, found)], check=True)
        return
    for folder in found:
        # A kill leaves no file in part, and a folder without the one that says that it is whole.
        for file in sorted(folder.iterdir(), key=lambda path: path.name == shared.whole):
            copy = target / folder.name / file.name
            if not copy.exists():
                copy.parent.mkdir(exist_ok=True)
                partial = copy.with_name(f".{file.name}.copying")
                subprocess.run(["cp", "--archive", "--reflink=auto", "--", file, partial], check=True)
                partial.replace(copy)
