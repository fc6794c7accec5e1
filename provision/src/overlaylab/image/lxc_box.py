"""The node image as a Vagrant box for system containers: the same file system, without what only a VM needs.

It is made from the image's own box when it is first asked for, and lies beside it as ``overlaylab-lxc.box``.
What differs in a container is a list of few things: no kernel, modules and boot loader (``packer/lxc/pack.sh``),
the files below ``packer/lxc/rootfs`` (eth0 is not networkd's), and ``packer/lxc/config``.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.model import JSON
from overlaylab.core.progress import say, step
from overlaylab.image import boxes, node_image, process
from overlaylab.image.vagrant import read_json
from overlaylab.machine import ready
from overlaylab.machine.packages import find_program
from overlaylab.machine.root import run_as_root

# Configuration, template and files of the box, whatever the system.
DEFINITION = paths.ROOT / "packer" / "lxc"

BOX = "overlaylab-lxc.box"
MANIFEST = "lxc.json"
# Raised when what follows changes in a way that makes older boxes unusable.
FORMAT = 2

# Free space that making a box may need: the disk as it is written, and the box.
DISK_BYTES = 4 * 10**9

PROGRAMS = ("qemu-img", "sfdisk", "unshare", "mount", "tar")

# Types of a partition with a Linux file system, of MBR and of GPT.
LINUX_PARTITIONS = ("83", "0FC63DAF-8483-4772-8E79-3D69D8477DE4")


def key(system: str = "debian") -> str:
    """SHA-256 in hex over the image's key and every file that makes the box."""
    digest = hashlib.sha256(f"format {FORMAT} {node_image.image_key(system)}\n".encode())
    for path in sorted(path for path in DEFINITION.rglob("*") if path.is_file()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(DEFINITION)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def name(system: str = "debian") -> str:
    """The box's image; the root file system that all nodes of it share is named after it."""
    return f"{system}-{key(system)[:12]}"


def box_path(system: str = "debian") -> Path:
    """The box for the present inputs; there only after ``build``."""
    return node_image.folder(system) / BOX


def is_built(system: str = "debian") -> bool:
    """Whether the box is there and made of what is there now."""
    return (
        read_json(node_image.folder(system) / MANIFEST).get("key") == key(system)
        and box_path(system).exists()
    )


def build(system: str = "debian") -> Path:
    """Make the box unless it is there, the image first; the box. Root is asked for, and why is said.

    Raises UserError for missing programs or room, and for a step that fails.
    """
    if is_built(system):
        return box_path(system)
    folder = node_image.build(system)
    with process.lock(folder.parent / ".lock", "another image:build runs; waiting for it"):
        if is_built(system):
            return box_path(system)
        _preflight()
        # image.build clears away folders of this name whose maker was killed.
        work = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
        try:
            with process.interruptible(), step("lxc-box", "image: packing it for containers", 30):
                _build_in(work, folder, system)
        finally:
            process.remove(work)
    size = box_path(system).stat().st_size
    say(f"box {name(system)} for containers is ready: {box_path(system)} ({size / 1e6:.0f} MB)")
    return box_path(system)


def _preflight() -> None:
    absent = [program for program in PROGRAMS if find_program(program) is None]
    if absent:
        raise UserError(
            "the box for containers",
            "needs the programs " + ", ".join(PROGRAMS),
            seen="missing " + ", ".join(absent),
            fix="Type `./task setup`, which installs them",
        )
    ready.preflight(0, DISK_BYTES)


def _build_in(work: Path, folder: Path, system: str) -> None:
    started = time.monotonic()
    log = folder.parent / f"{system}-lxc.log"
    disk = work / "disk.raw"
    packed_disk = boxes.extract_disk(folder / node_image.BOX, work)
    process.run(
        ["qemu-img", "convert", "-O", "raw", str(packed_disk), str(disk)], log, {}, what="qemu-img convert"
    )
    packed_disk.unlink()
    offset = root_offset(_partitions(disk))
    content = work / "box"
    content.mkdir()
    rootfs = content / "rootfs.tar.gz"
    rootfs.touch()  # written by root, it stays ours
    mounts = work / "mounts"
    mounts.mkdir()
    packed = run_as_root(
        [
            "unshare", "--mount", "--propagation", "private", "--",
            "sh", str(DEFINITION / "pack.sh"), str(disk), str(offset), str(mounts), str(rootfs),
        ],
        "reading the image's file system with its owners and capabilities, which needs a mount",
    )  # fmt: skip
    if packed.returncode:
        raise UserError(
            "the box for containers",
            "must be packed from the image's file system",
            seen=f"exit code {packed.returncode}, its output is above",
            fix="Look whether this kernel has loop devices and ext4, then type the command again",
        )
    image_name = name(system)
    # By its content too: on one machine, two users' images of the same key may be of packages of different days.
    with rootfs.open("rb") as packed_rootfs:
        content_digest = hashlib.file_digest(packed_rootfs, "sha256").hexdigest()
    shared = f"{image_name}-{content_digest[:12]}"
    metadata = {"provider": "lxc", "version": "1.0.0", "template-opts": {"--image": shared}}
    (content / "metadata.json").write_text(json.dumps(metadata) + "\n")
    shutil.copyfile(DEFINITION / "config", content / "lxc-config")
    shutil.copyfile(DEFINITION / "template.sh", content / "lxc-template")
    (content / "lxc-template").chmod(0o755)
    # Not boxes.write_box: LXC takes no template that is not executable.
    with tarfile.open(work / BOX, "w") as made:
        for path in sorted(content.iterdir()):
            made.add(path, f"./{path.name}")
    (work / BOX).replace(folder / BOX)
    written = {
        "key": key(system),
        "name": image_name,
        "bytes": (folder / BOX).stat().st_size,
        "build_seconds": round(time.monotonic() - started, 1),
    }
    (folder / MANIFEST).write_text(json.dumps(written, indent=1) + "\n")
    log.unlink(missing_ok=True)


def _partitions(disk: Path) -> JSON:
    program = find_program("sfdisk")
    assert program is not None
    asked = subprocess.run([program, "--json", disk], check=True, capture_output=True, text=True)
    table: JSON = json.loads(asked.stdout)
    return table


def root_offset(table: JSON) -> int:
    """Where the root file system begins on a disk, in bytes: its largest Linux partition.

    table: as ``sfdisk --json`` prints it. Raises UserError where there is none.
    """
    described = table["partitiontable"]
    linux = [part for part in described["partitions"] if part["type"].upper() in LINUX_PARTITIONS]
    if not linux:
        raise UserError(
            described.get("device", "the image's disk"),
            "must have a partition with a Linux file system",
            seen=", ".join(part["type"] for part in described["partitions"]) or "no partition",
            fix="Choose a SYSTEM whose image has one",
        )
    root = max(linux, key=lambda part: part["size"])
    return int(root["start"] * described.get("sectorsize", 512))
