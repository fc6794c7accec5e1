"""Disks that somebody else made: which one a system is made from, and what configures its first boot.

A disk is chosen once, by ``image:build IMAGE=`` or ``image:fetch``, and noted in the cache: ``images/<system>.disk.json``.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from string import Template

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.model import JSON
from overlaylab.core.progress import step
from overlaylab.image import daemons, systems
from overlaylab.image.systems import System
from overlaylab.machine import bundle_source

SEED = paths.ROOT / "packer" / "seed" / "user-data"
CONFIGURATION = "node.bu"
# What IMAGE= takes to go back to packages.
NO_DISK = "none"

# Formats of disks that qemu-img knows by more than a guess.
FORMATS = ("qcow2", "vmdk", "vdi", "vhdx", "vpc")
SIGNATURE = b"\x55\xaa"


@dataclass(frozen=True)
class ForeignDisk:
    """A disk that a system is made from. origin: where it is from, in words."""

    path: str
    sha256: str
    bytes: int
    changed: int
    origin: str


def of(system: System) -> ForeignDisk | None:
    """The disk that a system is made from; None where it is made from packages. Raises UserError where it takes one."""
    if system.disk is None:
        return None
    if found := chosen(system):
        return found
    if system.packages is None:
        fetch = f"type `./task image:fetch SYSTEM={system.name}`, or " if system.disk.source else ""
        raise UserError(
            f"SYSTEM={system.name}",
            "must have a disk that it is made from",
            fix=f"To have one, {fetch}name one: `./task image:build SYSTEM={system.name} IMAGE=disk.qcow2`",
        )
    return None


def chosen(system: System) -> ForeignDisk | None:
    """The disk that was chosen for a system, None where none was; in a bundle, the one that its image was made of."""
    note = _note(system)
    if not note.exists() and (file := bundle_source.find(f"images/{note.name}")):
        note.parent.mkdir(parents=True, exist_ok=True)
        bundle_source.take(file, note)
    try:
        return ForeignDisk(**json.loads(note.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as wrong:
        raise UserError(
            str(note), "must be what image:build wrote", seen=wrong, fix="Remove that file"
        ) from wrong


def note_for_others(system: System, folder: Path) -> Path | None:
    """The chosen disk's note, written in `folder` without the path that this machine has it at; None without one."""
    found = of(system)
    if found is None:
        return None
    note = folder / _note(system).name
    note.write_text(json.dumps(asdict(replace(found, path=Path(found.path).name)), indent=1) + "\n")
    return note


def choose(system: System, image: Path | None, origin: str = "IMAGE=") -> None:
    """Note the disk that the system is made from; None: its packages again. Raises UserError for what is no such disk."""
    if system.disk is None:
        raise UserError(
            "IMAGE",
            "is for systems that are made from somebody else's disk",
            seen=f"{system.title}, which is made from packages",
            fix=f"Leave it out, or choose one of {', '.join(_with_disks())} in SYSTEM",
        )
    if image is None:
        _note(system).unlink(missing_ok=True)
        return
    refuse(image)
    before = chosen(system)
    about = image.stat()
    if before and (before.path, before.bytes, before.changed) == (
        str(image),
        about.st_size,
        about.st_mtime_ns,
    ):
        return
    with (
        step("disk-digest", f"reading {image.name}, {about.st_size / 1e6:.0f} MB", 5),
        image.open("rb") as file,
    ):
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    made = ForeignDisk(str(image), digest, about.st_size, about.st_mtime_ns, origin)
    _note(system).parent.mkdir(parents=True, exist_ok=True)
    _note(system).write_text(json.dumps(asdict(made), indent=1) + "\n")


def refuse(image: Path) -> None:
    """Raise UserError for a file that is no disk, a damaged one, or one that no PC boots from."""
    if not image.is_file():
        raise UserError("IMAGE", "must be a file", seen=image, fix="Name the disk that was downloaded")
    about = _qemu_img("info", "--output=json", str(image))
    found: JSON = json.loads(about.stdout) if about.returncode == 0 else {}
    first = _first_sector(image) if found else b""
    if not found or (found["format"] not in FORMATS and not first.endswith(SIGNATURE)):
        raise UserError(
            "IMAGE",
            "must be a disk: qcow2, vmdk, vdi, vhdx, vpc, or raw with a partition table",
            seen=f"{image.name}, {about.stderr.strip() or found.get('format', 'nothing')}",
            fix="Unpack it, if it is compressed, and name the disk itself",
        )
    if found["format"] == "qcow2" and (wrong := _damage(image)):
        raise UserError(
            "IMAGE", "must be whole", seen=f"{image.name}: {wrong}", fix="Download or copy it once more"
        )
    if not first.endswith(SIGNATURE) or not any(first[:440]):
        raise UserError(
            "IMAGE",
            f"must be a disk that a PC ({platform.machine()}) boots from by BIOS",
            seen=f"{image.name}, without boot code, as disks for other architectures are",
            fix="Choose the publisher's disk for x86_64 (amd64) and QEMU",
        )


def _damage(image: Path) -> str:
    checked = _qemu_img("check", "--output=json", str(image))
    # 3: clusters that nobody uses, which harm nothing (qemu-img(1)).
    if checked.returncode not in (0, 3):
        return checked.stderr.strip()[:300] or f"qemu-img check ended with {checked.returncode}"
    # What lies behind the end of the file is read as zeros, and checked as if it were there.
    ends: int = json.loads(checked.stdout).get("image-end-offset", 0)
    size = image.stat().st_size
    return f"{size} bytes, and its clusters end at {ends}" if ends > size else ""


def _first_sector(image: Path) -> bytes:
    with tempfile.TemporaryDirectory(prefix="overlaylab-sector-") as folder:
        sector = Path(folder) / "sector"
        _qemu_img("dd", "-O", "raw", "bs=512", "count=1", f"if={image}", f"of={sector}")
        return sector.read_bytes() if sector.exists() else b""


def _qemu_img(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["qemu-img", *arguments], text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False
    )


def programs(system: System) -> tuple[str, ...]:
    """What making a node of its disk takes, apart from what every build does: cloud-init's volume is an ISO 9660."""
    return ("xorriso",) if system.disk and system.disk.configured_by == "cloud-init" else ()


def variables(system: System, disk: ForeignDisk, work: Path, public_key: str) -> dict[str, str]:
    """Packer's variables for making a node of it. Raises UserError where the disk is not the one that was chosen."""
    path = Path(disk.path)
    if not path.exists() or path.stat().st_size != disk.bytes or path.stat().st_mtime_ns != disk.changed:
        raise UserError(
            f"SYSTEM={system.name}",
            "must be made from the disk that was chosen",
            seen=f"{path}, which is another one or gone",
            fix=f"Choose again: `./task image:build SYSTEM={system.name} IMAGE={path.name}`",
        )
    return {
        "base_image": str(path),
        "foreign": "true",
        "kit": str(work / "kit"),
        **configuration(system, work / "seed", public_key),
    }


def configuration(system: System, folder: Path, public_key: str) -> dict[str, str]:
    """What configures the first boot, written below `folder`, as Packer's variables. Raises UserError."""
    assert system.disk is not None
    folder.mkdir()
    if system.disk.configured_by == "cloud-init":
        (folder / "meta-data").write_text("instance-id: overlaylab\nlocal-hostname: overlaylab\n")
        (folder / "user-data").write_text(Template(SEED.read_text()).substitute(public_key=public_key))
        return {"seed_files": json.dumps([str(folder / name) for name in ("meta-data", "user-data")])}
    readable = system.folder / CONFIGURATION
    text = Template(readable.read_text()).substitute(public_key=public_key)
    daemons.prepare(["butane"])
    butane = daemons.ensure("butane")["binaries"]["butane"]["path"]
    made = subprocess.run([butane, "--strict"], input=text, text=True, capture_output=True, check=False)
    if made.returncode:
        raise UserError(
            str(readable), "must be what butane takes", seen=made.stderr.strip(), fix="Correct that file"
        )
    (folder / "config.ign").write_text(made.stdout)
    return {"firmware_files": json.dumps({system.disk.firmware_name: str(folder / "config.ign")})}


def _with_disks() -> list[str]:
    return [name for name in systems.names() if systems.load(name).disk]


def _note(system: System) -> Path:
    return paths.cache() / "images" / f"{system.name}.disk.json"


def fetched(system: System) -> Path:
    """Where a disk that was fetched lies."""
    return paths.cache() / "images" / f"{system.name}.fetched"


def validate(system: System, folder: Path, public_key: str) -> None:
    """Check what configures the first boot. Raises UserError."""
    configuration(system, folder / "seed", public_key)
