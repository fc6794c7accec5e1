"""The bundle beside this checkout: its parts instead of the network, each file checked as it is copied.

It lies in ``bundle/``, where ``tar xf`` put it, or where a link leads (docs/offline.md). Where one lies, nothing is
asked of the network: what it lacks is an error.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NoReturn

from overlaylab.core import disk_full, paths
from overlaylab.core.errors import UserError
from overlaylab.core.progress import say
from overlaylab.machine.bundle_manifest import FOLDER, NAME, File, Manifest, from_json

AGAIN = "Unpack the bundle again, after comparing its digest with the one that bundle:make printed"


def present() -> bool:
    """Whether a bundle lies beside, or did: a link whose medium was taken out counts."""
    return (paths.ROOT / NAME).exists() or (paths.ROOT / FOLDER).is_symlink()


def manifest() -> Manifest:
    """Of the bundle beside. Raises UserError where there is none that can be read."""
    return _read(paths.ROOT / NAME)


@functools.cache
def _read(path: Path) -> Manifest:
    try:
        return from_json(path.read_bytes(), str(path))
    except OSError as wrong:
        raise UserError(
            str(path),
            "must be readable",
            seen=wrong.strerror,
            fix="Put the medium with the bundle in again, or remove the link to use the network",
        ) from None


def version() -> str | None:
    """What the checkout calls itself where it came out of a bundle and has no repository of its own."""
    return manifest().version if present() and not (paths.ROOT / ".git").exists() else None


def supply(target: Path, what: str, *, packed: bool = False) -> bool:
    """Make the folder `target` of the cache from the bundle's folder of the same name; False without a bundle.

    packed: files are unpacked beside their archives ``<file>.gz`` too. Whole or not at all. Raises UserError where the
    bundle lacks it, or a file of it is damaged.
    """
    if not present():
        return False
    inside = f"{FOLDER}/{target.relative_to(paths.cache())}"
    files = [file for file in manifest().files if file.path.startswith(f"{inside}/")]
    if not files:
        lacks(what, target.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    say(f"{what}: from the bundle, {sum(file.bytes for file in files) / 1e6:.0f} MB")
    with _beside(target) as folder:
        work = folder / "made"
        for file in files:
            copy = work / file.path.removeprefix(f"{inside}/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            take(file, copy)
            if packed and copy.suffix == ".gz":
                with gzip.open(copy) as archive, _written(copy.with_suffix("")) as plain:
                    shutil.copyfileobj(archive, plain, 1 << 20)
        shutil.rmtree(target, ignore_errors=True)
        work.rename(target)
    return True


def unpack(path: str, target: Path, what: str) -> bool:
    """Make the folder `target` from the tar at `path` below bundle/; False without a bundle. Raises UserError."""
    if not present():
        return False
    file = find(path)
    if file is None:
        lacks(what, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    say(f"{what}: from the bundle, {file.bytes / 1e6:.0f} MB")
    with _beside(target) as folder:
        archive, made = folder / "archive", folder / "made"
        take(file, archive)
        try:
            # Checked a line before: it is what bundle:make packed (Python 3.11.2 knows no filter=).
            with tarfile.open(archive) as tar:
                tar.extractall(made)
        except OSError as wrong:
            raise _uncopied(target, wrong) from None
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)
    return True


def find(path: str) -> File | None:
    """The file at that path below bundle/; None where the bundle beside lacks it, or there is none."""
    if not present():
        return None
    return next((file for file in manifest().files if file.path == f"{FOLDER}/{path}"), None)


def take(file: File, copy: Path) -> None:
    """Copy a file of the bundle to `copy`, comparing what is copied with the manifest. Raises UserError."""
    digest = hashlib.sha256()
    try:
        source = (paths.ROOT / file.path).open("rb")
    except OSError as wrong:
        raise UserError(file.path, "must be there and readable", seen=wrong.strerror, fix=AGAIN) from None
    with source, _written(copy) as made:
        while chunk := source.read(1 << 20):
            digest.update(chunk)
            made.write(chunk)
    if digest.hexdigest() != file.sha256:
        copy.unlink()
        raise _differs(file, digest.hexdigest())
    copy.chmod(0o755 if file.executable else 0o644)


def check(file: File) -> None:
    """Compare a file of the bundle with the manifest where it lies. Raises UserError."""
    try:
        with (paths.ROOT / file.path).open("rb") as source:
            digest = hashlib.file_digest(source, "sha256").hexdigest()
    except OSError as wrong:
        raise UserError(file.path, "must be there and readable", seen=wrong.strerror, fix=AGAIN) from None
    if digest != file.sha256:
        raise _differs(file, digest)


def lacks(what: str, wanted: str) -> NoReturn:
    """Say that the bundle does not have what this checkout needs."""
    held = manifest()
    raise UserError(
        f"{paths.ROOT / FOLDER}, made of commit {held.commit[:12]}",
        f"must hold {what} as this checkout needs it, {wanted}",
        seen=f"{', '.join(held.contents)}; daemons of {', '.join(held.overlays) or 'no overlay'}",
        fix="Make a bundle of this checkout with it (`./task bundle:make`, WITH, OVERLAYS and SYSTEM), go back to the files that "
        f"came with this one, or move the folder {FOLDER}/ away to use the network",
    )


def _differs(file: File, digest: str) -> UserError:
    return UserError(
        file.path, f"must have the SHA-256 {file.sha256} that the manifest states", seen=digest, fix=AGAIN
    )


@contextlib.contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """A folder to make `target` in. Its name is the same each time: one that a kill has left goes with the next call."""
    folder = target.parent / f".{target.name}.unpacking"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _written(path: Path) -> Iterator[BinaryIO]:
    """A new file whose OSError (a full disk, a medium that cannot be read) is a UserError."""
    try:
        with path.open("wb") as file:
            yield file
    except OSError as wrong:
        raise _uncopied(path, wrong) from None


def _uncopied(path: Path, wrong: OSError) -> UserError:
    return UserError(
        str(path),
        "must be copied out of the bundle",
        seen=wrong.strerror or str(wrong),
        fix=(
            "Free some disk, or set OVERLAYLAB_CACHE to a folder on another disk"
            if disk_full.is_about(wrong)
            else "Look at the medium that holds the bundle, and at the cache folder"
        )
        + ", then type the command again; nothing half made is used",
    )
