"""What a bundle says of itself: for which system it is, of which commit, and every file with its size and SHA-256.

It lies in the bundle as ``bundle/manifest.json``; ``bundle/SHA256SUMS``, which `./task` checks before there is a
Python, follows from it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any

from overlaylab.core.errors import UserError

# Raised when a bundle of before could not be used any more.
FORMAT = 1

# The folder that a bundle unpacks to.
TOP = "overlaylab"
# In it, what is not the checkout.
FOLDER = "bundle"
# The part that is not in FOLDER, and the one that its user may change.
CHECKOUT = "checkout"
NAME, SUMS = f"{FOLDER}/manifest.json", f"{FOLDER}/SHA256SUMS"


@dataclass(frozen=True)
class File:
    """path: below TOP; size in bytes; sha256 in hex."""

    path: str
    bytes: int
    sha256: str
    executable: bool = False


@dataclass(frozen=True)
class Part:
    """Files that are made and used together. about: what they are, for people; licences: sorted, by name."""

    name: str
    about: str
    licences: tuple[str, ...]
    files: tuple[File, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def sha256(self) -> str:
        """Of the part's lines as sha256sum(1) prints them."""
        return hashlib.sha256(sums(self.files).encode()).hexdigest()


@dataclass(frozen=True)
class Manifest:
    """system, architecture: as in bundle_systems; version: as git describes the commit; made: seconds of the commit."""

    system: str
    architecture: str
    commit: str
    version: str
    made: int
    contents: tuple[str, ...]
    overlays: tuple[str, ...]
    parts: tuple[Part, ...]

    @property
    def files(self) -> Iterator[File]:
        return (file for part in self.parts for file in part.files)

    def part(self, name: str) -> Part | None:
        return next((part for part in self.parts if part.name == name), None)


def sums(files: tuple[File, ...]) -> str:
    """Lines for ``sha256sum --check``, which is called in TOP."""
    return "".join(f"{file.sha256}  {file.path}\n" for file in files)


def sums_of(manifest: Manifest) -> str:
    """SHA256SUMS: the manifest, and all parts but the checkout."""
    kept = tuple(file for part in manifest.parts if part.name != CHECKOUT for file in part.files)
    digest = hashlib.sha256(to_json(manifest).encode()).hexdigest()
    return f"{digest}  {NAME}\n{sums(kept)}"


def to_json(manifest: Manifest) -> str:
    """The file's text; the same manifest gives the same text."""
    data = {"format": FORMAT, **asdict(manifest)}
    for part, written in zip(manifest.parts, data["parts"], strict=True):
        written |= {"bytes": part.bytes, "sha256": part.sha256}
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def from_json(text: str | bytes, where: str) -> Manifest:
    """The manifest that `to_json` wrote. Raises UserError for any other text: a bundle may be anybody's."""
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise UserError(
                where,
                f"must have the format {FORMAT}",
                seen=data["format"],
                fix="Use the checkout that came with the bundle, or make the bundle anew",
            )
        parts = tuple(
            Part(
                str(part["name"]),
                str(part["about"]),
                tuple(map(str, part["licences"])),
                tuple(_file(file) for file in part["files"]),
            )
            for part in data["parts"]
        )
        return Manifest(
            system=str(data["system"]),
            architecture=str(data["architecture"]),
            commit=str(data["commit"]),
            version=str(data["version"]),
            made=int(data["made"]),
            contents=tuple(map(str, data["contents"])),
            overlays=tuple(map(str, data["overlays"])),
            parts=parts,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise UserError(
            where,
            "must be a manifest that bundle:make wrote",
            seen=f"{type(wrong).__name__}: {wrong}",
            fix="Unpack the bundle again, after comparing its digest",
        ) from None


def _file(data: dict[str, Any]) -> File:
    file = File(str(data["path"]), int(data["bytes"]), str(data["sha256"]), bool(data["executable"]))
    path = PurePosixPath(file.path)
    if path.is_absolute() or ".." in path.parts or "\n" in file.path or str(path) != file.path:
        raise ValueError(f"{file.path!r} is no path in a bundle")
    if not re.fullmatch(r"[0-9a-f]{64}", file.sha256):
        raise ValueError(f"{file.sha256!r} is no SHA-256")
    return file
