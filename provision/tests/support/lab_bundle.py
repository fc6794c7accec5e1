"""A small bundle for tests: parts of a few bytes, beside a checkout of a few files."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

from overlaylab.core import paths
from overlaylab.image import bundle_make, bundle_systems
from overlaylab.image.bundle_parts import Source
from overlaylab.machine import releases
from overlaylab.machine.bundle_manifest import TOP, Manifest

KEY = "0123456789abcdef"
# The note of a disk that a system was made from.
DISK = {"path": "flatcar.img", "sha256": "d" * 64, "bytes": 5, "changed": 1, "origin": "IMAGE="}


def sources(folder: Path) -> list[Source]:
    """Parts with one or two files each, as bundle_parts makes them."""
    contents = {
        "checkout": {"README.md": b"read\n", "task": b"#!/bin/sh\n", "provision/a/b.txt": b"b", "vagrant/pair.yml": b"pair"},
        "toolchain": {f"bundle/toolchain/{KEY}/one-1.whl": b"wheel one", f"bundle/toolchain/{KEY}/two-2.whl": b"2"},
        "packages": {"bundle/packages/InRelease": b"signed", "bundle/packages/key.asc": b"key\n\nof it\n"},
        "image": {
            "bundle/images/debian-123456789abc/overlaylab.box": b"box" * 1000,
            "bundle/images/flatcar.disk.json": json.dumps(DISK).encode(),
        },
        "daemons": {"bundle/daemons/weave-123456789abc/manifest.json": b"{}"},
        "viewer": {"bundle/viewer/123456789abcdef0.tar.gz": b"main"},
    }  # fmt: skip
    made = []
    for name, files in contents.items():
        lies = {}
        for path, content in files.items():
            lies[path] = folder / "sources" / path
            lies[path].parent.mkdir(parents=True, exist_ok=True)
            lies[path].write_bytes(content)
            lies[path].chmod(0o755 if path == "task" else 0o644)
        made.append(Source(name, f"what {name} is", ("Apache-2.0",), lies))
    return made


def manifest(parts: list[Source], **other) -> Manifest:
    """Their manifest; for this machine unless told otherwise."""
    fields = {
        "system": releases.key(), "architecture": bundle_systems.architecture(), "commit": "c" * 40,
        "version": "cccccccc", "made": 1700000000, "contents": ("lab",), "overlays": ("weave",),
        "parts": tuple(bundle_make.measured(part) for part in parts),
    }  # fmt: skip
    return Manifest(**{**fields, **other})


def bundle(folder: Path, **other) -> Path:
    """The file `small.tar` in `folder`."""
    parts = sources(folder)
    files = {path: lies for part in parts for path, lies in part.files.items()}
    out = folder / "small.tar"
    bundle_make.write(manifest(parts, **other), files, out)
    return out


def unpacked(folder: Path, **other) -> Path:
    """Its top folder, as tar(1) leaves it on a target, with this checkout's script for bundles in it."""
    with tarfile.open(bundle(folder, **other)) as tar:
        tar.extractall(folder / "target")
    top = folder / "target" / TOP
    script = top / "provision" / "toolchain" / "bundle.sh"
    script.parent.mkdir(parents=True)
    shutil.copy(paths.PROVISION / "toolchain" / "bundle.sh", script)
    return top


def flip(path: Path, place: int) -> None:
    """Change one byte."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
