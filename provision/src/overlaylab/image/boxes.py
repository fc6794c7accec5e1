"""Vagrant boxes: unpacked, and those of other providers made from the libvirt box that ``image.build`` leaves.

A box is a tar with metadata.json, a Vagrantfile and the provider's own files
(https://developer.hashicorp.com/vagrant/docs/boxes/format).
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from pathlib import Path

from overlaylab.core import disk_full, lock
from overlaylab.core.errors import UserError

# Member of a libvirt box that is its disk, qcow2.
DISK = "box.img"


def extract_disk(box: Path, into: Path) -> Path:
    """Write the disk of a libvirt box to the folder ``into``: ``box.img``, a qcow2. Some 10 s for an image.

    Raises UserError where the box is damaged or of another provider.
    """
    target = into / DISK
    try:
        # As a stream, because seeking in a compressed tar reads it twice.
        with tarfile.open(box, "r|*") as archive:
            for member in archive:
                # Packer writes times where tarfile looks for folders: the name is the last component's.
                if Path(member.name).name == DISK and (source := archive.extractfile(member)):
                    with target.open("wb") as file:
                        shutil.copyfileobj(source, file, 2**20)
                    return target
    except (tarfile.TarError, EOFError, OSError) as wrong:
        if isinstance(wrong, OSError) and wrong.errno:  # the disk is full, say: not the box's fault
            raise
        target.unlink(missing_ok=True)
        raise _damaged(box, wrong) from wrong
    raise _damaged(box, f"no member {DISK}")


def make(disk: Path, vagrantfile: Path, target: Path, work: Path) -> None:
    """Make a libvirt box of a disk in any format that qemu-img knows, whole or not at all. Some 20 s for an image.

    work: a folder for the disk as a qcow2 that is not compressed, which nodes read faster. Raises UserError.
    """
    packed = work / DISK
    virtual = json.loads(_qemu_img("info", "--output=json", str(disk)))["virtual-size"]
    _qemu_img("convert", "-O", "qcow2", str(disk), str(packed))
    metadata = {"provider": "libvirt", "format": "qcow2", "virtual_size": -(-virtual // 2**30)}
    members: dict[str, Path | bytes] = {
        "metadata.json": json.dumps(metadata).encode(),
        "Vagrantfile": vagrantfile.read_bytes(),
        DISK: packed,
    }
    try:
        write_box(members, target, level=1)
    finally:
        packed.unlink()


def _qemu_img(*arguments: str) -> str:
    done = subprocess.run(
        ["qemu-img", *arguments], text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        raise UserError(
            f"qemu-img {arguments[0]}",
            "must turn the disk into one for nodes",
            seen=done.stderr.strip(),
            fix="Look at the disk and at this machine's free space, then type the command again",
        )
    return done.stdout


def unpack(box: Path, target: Path) -> None:
    """Make the folder `target` of what the box holds, unless it is there: whole or not at all. Some 4 s for an image.

    Where that lies below Vagrant's own, ``boxes/<name>/<version>/<provider>`` (its lib/vagrant/box_collection.rb), the
    box has been added. Raises UserError where the box is damaged.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with lock.held(target.parent):
        if target.is_dir():
            return
        # Where versions stand, Vagrant passes over names with a dot; where providers stand, it does not.
        work = target.parents[1] / ".unpacking"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        # Packer writes no times that tar believes.
        argv = [
            "tar",
            "--extract",
            "--touch",
            "--no-same-owner",
            "--file",
            str(box),
            "--directory",
            str(work),
        ]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not (work / "metadata.json").is_file():
            shutil.rmtree(work)
            if disk_full.is_reported(done.stderr):
                raise disk_full.error(f"Vagrant's copy of {box.name}", "the disk is full")
            raise _damaged(box, done.stderr.strip() or "no member metadata.json")
        work.rename(target)


def found_on_disk(box: Path, patterns: Collection[bytes]) -> set[bytes]:
    """Those of the patterns that stand on the disk of a libvirt box, be it in a file or where one has been.

    Its clusters are looked at as they are, so the disk must be one that was not compressed (Packer's
    skip_compaction); the archive may be. Some 5 s for an image. Raises UserError where the box is damaged.
    """
    found: set[bytes] = set()
    overlap = max(map(len, patterns)) - 1
    try:
        with tarfile.open(box, "r|*") as archive:
            for member in archive:
                if Path(member.name).name == DISK and (source := archive.extractfile(member)):
                    tail = b""
                    while part := source.read(2**22):
                        seen = tail + part
                        found |= {pattern for pattern in patterns if pattern in seen}
                        tail = seen[-overlap:]
                    return found
    except (tarfile.TarError, EOFError, OSError) as wrong:
        raise _damaged(box, wrong) from wrong
    raise _damaged(box, f"no member {DISK}")


def _damaged(box: Path, seen: object) -> UserError:
    return UserError(
        str(box),
        "must be the box that image:build wrote",
        seen=seen,
        fix=f"Remove the folder {box.parent} and type `./task image:build`",
    )


def write_box(members: Mapping[str, Path | bytes], target: Path, level: int = 0) -> None:
    """Tar the members, name to content or file, as the box ``target``; whole or not there at all.

    level: gzip's; 0: not compressed, as most disks and root file systems are compressed already. The same members give
    the same bytes.
    """
    partial = target.with_name(f".{target.name}.new")
    try:
        # GNU's format has no limit of 8 GiB to a member, which a disk may pass.
        with (
            partial.open("wb") as raw,
            gzip.GzipFile("", "wb", level, raw, mtime=0) if level else nullcontext(raw) as packed,
            tarfile.open(fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT) as archive,
        ):
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.mode = 0o644
                if isinstance(content, bytes):
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
                else:
                    info.size = content.stat().st_size
                    with content.open("rb") as file:
                        archive.addfile(info, file)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
