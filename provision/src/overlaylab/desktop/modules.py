"""What the viewer is made of: the modules that its lock names, and the build of its own sources."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from overlaylab.core import disk_full, paths
from overlaylab.core.errors import UserError
from overlaylab.core.lock import held
from overlaylab.core.progress import step
from overlaylab.machine import bundle_source

LOCK = paths.VIEWER / "package-lock.json"
MODULES = paths.VIEWER / "node_modules"
BUILT = paths.VIEWER / "dist"
GENERATED = paths.VIEWER / "src" / "generated"

# Where both of them lie for a moment, out of a bundle.
UNPACKED = paths.VIEWER / "unpacked"

_NOT_SOURCES = {
    *("node_modules", ".node_modules.unpacking", "unpacked", ".unpacked.unpacking"),
    *("dist", "release", "Taskfile.yml"),
}

# Folders of this name lie beside what they test: a changed test is no other build.
_TESTS = "test"


def run_node(
    arguments: Iterable[str], *, environment: Mapping[str, str] | None = None, folder: Path = paths.VIEWER
) -> None:
    """Run the toolchain's node in viewer/ or another folder, output to standard error. Raises CalledProcessError."""
    subprocess.run(
        [node(), *arguments],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        # Standard output is for results.
        stdout=sys.stderr.fileno(),
        check=True,
    )


def node() -> str:
    """Path of the toolchain's node, which ./task puts first."""
    found = shutil.which("node")
    if found is None:
        raise UserError("node", "must be in the path", fix="Type `./task view`, which brings its own")
    return found


def npm() -> str:
    """npm's program beside that node; the `npm` in its wheel's bin folder has lost its link to it."""
    return str(Path(node()).resolve().parents[1] / "lib/node_modules/npm/bin/npm-cli.js")


def ensure_modules() -> None:
    """Install the modules of the lock with `npm ci`, unless they are there. Raises UserError where that fails."""
    key = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    stamp = (
        MODULES / ".overlaylab-lock"
    )  # npm ci removes the folder first, so the stamp is never older than it
    if _text(stamp) == key:
        return
    with held(paths.VIEWER):
        if _text(stamp) == key:
            return
        packed = f"npm/node_modules-{key[:16]}.tar.gz"
        if not bundle_source.unpack(packed, MODULES, "the viewer's modules"):
            with step("viewer-modules", "installing the viewer's modules with npm ci", 30):
                install(paths.VIEWER)
        stamp.write_text(key)


def install(folder: Path) -> None:
    """Install the modules of the lock in `folder`. Raises UserError."""
    try:
        run_node(
            [npm(), "ci", "--no-audit", "--no-fund", "--loglevel=error"],
            environment={"npm_config_cache": str(paths.cache() / "npm")},
            folder=folder,
        )
    except subprocess.CalledProcessError as error:
        # What npm had unpacked so far is still there, unlike its cause.
        if disk_full.is_full(folder, paths.cache()):
            raise disk_full.error("npm ci in viewer/", f"exit code {error.returncode}, disk full") from None
        raise UserError(
            "npm ci in viewer/",
            "must succeed once",
            seen=f"exit code {error.returncode}, its output is above",
            fix="The first start needs npm's package registry: check the network (or your npm configuration) "
            "and type the command again; nothing half made is used",
        ) from None


def sources() -> list[Path]:
    """Every file that the build reads, sorted."""
    own = [path for top in paths.VIEWER.iterdir() if top.name not in _NOT_SOURCES for path in _files(top)]
    own = [
        path
        for path in own
        if GENERATED not in path.parents and _TESTS not in path.relative_to(paths.VIEWER).parts
    ]
    return sorted([*own, *(paths.DB / "migrations").glob("*.sql"), *paths.DB.glob("*.csv")])


def _files(top: Path) -> list[Path]:
    return [path for path in (top.rglob("*") if top.is_dir() else [top]) if path.is_file()]


def commit() -> str:
    """What the build calls itself: as build.mjs says it, or a bundle's manifest; empty outside a repository."""
    if bundled := bundle_source.version():
        return bundled
    git = ["git", "-C", str(paths.VIEWER), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(git, text=True, capture_output=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def build_key() -> str:
    """Digest of all that goes into the build, and of what it calls itself."""
    digest = hashlib.sha256(commit().encode())
    for path in sources():
        digest.update(str(path.relative_to(paths.ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def ensure_build() -> None:
    """Build the viewer where its sources or the checkout's commit changed, a second or two; or unpack the bundle's."""
    key = build_key()
    stamp = BUILT / ".overlaylab-sources"
    if _text(stamp) == key:
        return
    with held(paths.VIEWER):
        if _text(stamp) == key:
            return
        if _unpacked(key):
            return
        stamp.unlink(missing_ok=True)
        with step("viewer-build", "building the viewer", 3):
            try:
                run_node(["build.mjs"], environment={"OVERLAYLAB_COMMIT": commit()})
            except subprocess.CalledProcessError as error:
                raise UserError(
                    "viewer/build.mjs",
                    "must succeed",
                    seen=f"exit code {error.returncode}, its output is above",
                    fix="Correct what it names; `git status viewer` shows what differs from the last commit",
                ) from None
        stamp.write_text(key)


def packed(key: str) -> str:
    """Where below bundle/ the build of that key lies: BUILT and GENERATED, packed."""
    return f"viewer/{key[:16]}.tar.gz"


def _unpacked(key: str) -> bool:
    """Take the build out of the bundle beside, where it has the one of that key. Raises UserError."""
    if not bundle_source.find(packed(key)):
        return False
    bundle_source.unpack(packed(key), UNPACKED, "the viewer")
    for folder in (GENERATED, BUILT):  # the stamp lies in the latter
        shutil.rmtree(folder, ignore_errors=True)
        (UNPACKED / folder.name).rename(folder)
    UNPACKED.rmdir()
    return True


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None
