"""The image as a Vagrant box for VirtualBox, made on demand from the libvirt box that ``image.build`` leaves.

It lies beside that one: ``overlaylab-virtualbox-<recipe8>.box``, with metadata.json, box.ovf, a streamOptimized
VMDK and a Vagrantfile (https://developer.hashicorp.com/vagrant/docs/providers/virtualbox/boxes). The recipe is a
digest of what it is made by, so a box that is there is the right one. No MAC address stands in it: Vagrant then has
VirtualBox choose one per node (plugins/providers/virtualbox/action/match_mac_address.rb), where a box's own would
be the same on all.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from string import Template

from overlaylab.core.errors import UserError
from overlaylab.core.progress import step
from overlaylab.image import boxes, node_image, process

# The machine, with ``$`` in place of what differs.
OVF = node_image.PACKER / "virtualbox" / "box.ovf"

VAGRANTFILE = node_image.PACKER / "box.rb"
DISK = "box-disk001.vmdk"

# Raised when the code below changes what is in the box.
FORMAT = 1

# Free space that making a box needs at its peak: qcow2, VMDK and box; the box stays, some 400 MB.
DISK_BYTES = 3 * 10**9


def recipe() -> str:
    """First 8 hex digits of a digest over what a box is made by, the image apart."""
    digest = hashlib.sha256(f"format {FORMAT}\n".encode())
    for path in (OVF, VAGRANTFILE):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def box_path(system: str = "debian") -> Path:
    """The box for the present inputs; there only after ``build``."""
    return node_image.folder(system) / f"overlaylab-virtualbox-{recipe()}.box"


def box_name(system: str = "debian") -> str:
    """Name under which Vagrant knows the box: ``overlaylab/debian-virtualbox-<image12>-<recipe8>``."""
    return f"overlaylab/{system}-virtualbox-{node_image.image_key(system)[:12]}-{recipe()}"


def build(system: str = "debian") -> Path:
    """Make the box unless it is there; its path. The image must be built. Half a minute to two.

    Raises UserError for a damaged image, a missing qemu-img, and a disk that is full.
    """
    target = box_path(system)
    if target.exists():
        return target
    with process.lock(
        target.with_name(".virtualbox.lock"), "another command makes VirtualBox's box; waiting"
    ):
        if target.exists():
            return target
        for stale in target.parent.glob(".virtualbox-*"):  # of a maker that was killed: we hold its lock
            shutil.rmtree(stale, ignore_errors=True)
        free = shutil.disk_usage(target.parent).free
        if free < DISK_BYTES:
            raise UserError(
                f"disk below {target.parent}",
                f"must have {DISK_BYTES / 1e9:.1f} GB free to make VirtualBox's box",
                seen=f"{free / 1e9:.1f} GB",
                fix="Free some, or set OVERLAYLAB_CACHE to a folder on another disk (outside your home)",
            )
        with (
            step("virtualbox-box", "making VirtualBox's box from the image", 60),
            tempfile.TemporaryDirectory(prefix=".virtualbox-", dir=target.parent) as work,
        ):
            disk = boxes.extract_disk(node_image.box_path(system), Path(work))
            write(disk, f"overlaylab-{system}", target)
        for old in target.parent.glob("overlaylab-virtualbox-*.box"):
            if old != target:
                old.unlink()
    return target


def write(disk: Path, name: str, target: Path) -> None:
    """Make the box ``target`` of a qcow2; the VMDK is made beside it and removed again.

    name: of the machine, until Vagrant gives each its own.
    """
    vmdk = disk.with_name(DISK)  # qemu-img notes the name in the descriptor
    try:
        _qemu_img(
            "convert", "-f", "qcow2", "-O", "vmdk", "-o", "subformat=streamOptimized", str(disk), str(vmdk)
        )
        with vmdk.open("ab") as file:
            # VirtualBox reads a stream to the marker of its end, a sector of zeros (VMDK.cpp,
            # vmdkStreamReadSequential), which qemu-img does not promise to write.
            file.write(bytes(512))
        size = json.loads(_qemu_img("info", "--output=json", str(vmdk)))["virtual-size"]
        ovf = Template(OVF.read_text()).substitute(
            name=name, disk=DISK, disk_bytes=vmdk.stat().st_size, capacity_bytes=size
        )
        boxes.write_box(
            {
                "metadata.json": json.dumps({"provider": "virtualbox"}).encode(),
                "box.ovf": ovf.encode(),
                "Vagrantfile": VAGRANTFILE.read_bytes(),
                DISK: vmdk,
            },
            target,
        )
    finally:
        vmdk.unlink(missing_ok=True)


def _qemu_img(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["qemu-img", *arguments], text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False
        )
    except FileNotFoundError:
        done = None
    if done is None or done.returncode:
        raise UserError(
            f"qemu-img {arguments[0]}",
            "must turn the image's disk into one for VirtualBox",
            seen="it is not installed" if done is None else done.stderr.strip(),
            fix="./task setup installs what is missing; ./task image:build makes a damaged image anew "
            "once its folder is removed",
        )
    return done.stdout
