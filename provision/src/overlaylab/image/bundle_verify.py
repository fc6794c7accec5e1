"""Reading a bundle's file: its manifest, and whether every part is what the manifest says."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from overlaylab.core.errors import UserError
from overlaylab.machine.bundle_manifest import NAME, SUMS, TOP, File, Manifest, from_json, sums_of

# Bytes: what is longer is none of ours.
LARGEST_MANIFEST = 50 * 10**6

FETCH = "Copy it again from where it was made, and compare its digest first"


@dataclass(frozen=True)
class Verified:
    """A bundle that is whole; digest: SHA-256 of the file, in hex."""

    manifest: Manifest
    digest: str


class _Digesting:
    """A file whose every byte is counted while tarfile reads it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        chunk = self.file.read(size)
        self.digest.update(chunk)
        return chunk


@contextmanager
def _opened(path: Path) -> Iterator[tuple[_Digesting, tarfile.TarFile]]:
    try:
        with path.open("rb") as file:
            stream = _Digesting(file)
            # As a stream: each byte is read once, and in order. tarfile calls read() alone, its stubs want more.
            with tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload]  # only read()
                yield stream, tar
    except (tarfile.TarError, EOFError) as wrong:
        raise UserError(str(path), "must be a whole bundle", seen=f"{wrong}", fix=FETCH) from None
    except OSError as wrong:
        raise UserError(
            str(path), "must be a bundle that can be read", seen=wrong.strerror or wrong, fix="Correct FILE"
        ) from None


def read(path: Path) -> Manifest:
    """The manifest, which is the bundle's first file. Nothing is checked. Raises UserError."""
    with _opened(path) as (_, tar):
        return _manifest(path, tar, iter(tar))


def _manifest(path: Path, tar: tarfile.TarFile, members: Iterator[tarfile.TarInfo]) -> Manifest:
    for member in members:
        if member.isdir():
            continue
        if member.name == f"{TOP}/{NAME}" and member.isfile() and member.size <= LARGEST_MANIFEST:
            source = tar.extractfile(member)
            assert source is not None
            return from_json(source.read(), f"{path}: {NAME}")
        break
    raise UserError(str(path), f"must begin with {TOP}/{NAME}", fix="Name a file that bundle:make wrote")


def verify(path: Path) -> Verified:
    """Compare every file with the manifest: none damaged, missing, beyond it or twice. Raises UserError."""
    wrong: dict[str, str] = {}
    with _opened(path) as (stream, tar):
        members = iter(tar)
        manifest = _manifest(path, tar, members)
        sums = sums_of(manifest).encode()
        left: dict[str, File] = {file.path: file for file in manifest.files}
        left[SUMS] = File(SUMS, len(sums), hashlib.sha256(sums).hexdigest())
        for member in members:
            name = member.name.removeprefix(f"{TOP}/")
            if member.isdir():
                continue
            file = left.pop(name, None) if member.name.startswith(f"{TOP}/") else None
            source = tar.extractfile(member) if member.isfile() else None
            if file is None or source is None:
                wrong[name] = "is not in the manifest"
                continue
            read_back = hashlib.sha256()
            while chunk := source.read(1 << 20):
                read_back.update(chunk)
            if (read_back.hexdigest(), bool(member.mode & 0o100)) != (file.sha256, file.executable):
                wrong[name] = "differs from the manifest"
        while stream.read(1 << 20):  # what stands behind the end of the archive belongs to the file's digest
            pass
        digest = stream.digest.hexdigest()
    wrong |= dict.fromkeys(left, "is missing")
    if wrong:
        parts = {file.path: part.name for part in manifest.parts for file in part.files}
        told = [f"{name} ({parts.get(name, 'no part')}) {what}" for name, what in list(wrong.items())[:3]]
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise UserError(str(path), "must hold what its manifest says", seen=", ".join(told) + more, fix=FETCH)
    return Verified(manifest, digest)
