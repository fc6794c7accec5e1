"""VirtualBox's box: what it holds, what its machine is, and when it is made anew."""

import json
import shutil
import struct
import subprocess
import tarfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from overlaylab.core.errors import UserError
from overlaylab.image import boxes, node_image, virtualbox_box

CAPACITY = 64 * 2**20
OVF = "{http://schemas.dmtf.org/ovf/envelope/1}"
RASD = "{http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData}"
# Values of ResourceType in CIM_ResourceAllocationSettingData.
CPU, MEMORY, NIC, HARD_DISK, OTHER_STORAGE = "3", "4", "10", "17", "20"

needs_qemu_img = pytest.mark.skipif(shutil.which("qemu-img") is None, reason="no qemu-img")


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A qcow2 of 64 MiB with a pattern at 1 MiB and near its end, holes elsewhere."""
    raw = tmp_path / "raw"
    with raw.open("wb") as file:
        file.truncate(CAPACITY)
        for offset in (2**20, CAPACITY - 2**20):
            file.seek(offset)
            file.write(b"overlaylab" * 1000)
    found = tmp_path / "box.img"
    subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, found], check=True)
    return found


@pytest.fixture
def image_folder(monkeypatch, own_cache) -> Path:
    """Where the image of these tests lies."""
    monkeypatch.setattr(node_image, "image_key", lambda system="debian": "0123456789abcdef")
    folder = own_cache / "images" / "debian-0123456789ab"
    folder.mkdir(parents=True)
    return folder


@needs_qemu_img
def test_the_box_holds_what_vagrant_and_virtualbox_ask_for(disk, tmp_path) -> None:
    virtualbox_box.write(disk, "overlaylab-debian", tmp_path / "a.box")
    folder = tmp_path / "unpacked"
    with tarfile.open(tmp_path / "a.box") as archive:
        archive.extractall(folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "Vagrantfile",
        "box-disk001.vmdk",
        "box.ovf",
        "metadata.json",
    ]
    assert json.loads((folder / "metadata.json").read_text()) == {"provider": "virtualbox"}
    vagrantfile = (folder / "Vagrantfile").read_text()
    assert 'config.ssh.username = "lab"' in vagrantfile
    assert "base_mac" not in vagrantfile, "all nodes would have one address"
    check_disk(folder, disk)
    check_machine(ElementTree.parse(folder / "box.ovf").getroot(), folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.box", "box.img", "raw", "unpacked"]


def check_disk(folder: Path, disk: Path) -> None:
    vmdk = folder / "box-disk001.vmdk"
    said = subprocess.run(["qemu-img", "info", "--output=json", vmdk], check=True, capture_output=True)
    about = json.loads(said.stdout)
    assert about["format-specific"]["data"]["create-type"] == "streamOptimized"
    assert about["virtual-size"] == CAPACITY
    # "identical" or exit code 1.
    subprocess.run(["qemu-img", "compare", "-f", "vmdk", "-F", "qcow2", vmdk, disk], check=True)
    assert grains(vmdk) == [2**20 // 512, (CAPACITY - 2**20) // 512]


def grains(vmdk: Path) -> list[int]:
    """First sectors of the data blocks, read as VirtualBox imports them: in sequence, to the end's marker.

    "Virtual Disk Format 5.0" (VMware), SparseExtentHeader and grain markers.
    """
    data = vmdk.read_bytes()
    assert data[:4] == b"KDMV" and len(data) % 512 == 0
    position = 512 * int.from_bytes(data[64:72], "little")  # overHead
    found: list[int] = []
    while True:
        sector, size = struct.unpack_from("<QI", data, position)
        if size == 0:
            assert data[position : position + 512] == bytes(512)
            return found
        found.append(sector)
        position += -(-(12 + size) // 512) * 512


def check_machine(envelope: ElementTree.Element, folder: Path) -> None:
    file, drive = envelope.find(f".//{OVF}File"), envelope.find(f".//{OVF}Disk")
    assert file.get(f"{OVF}href") == "box-disk001.vmdk"
    assert file.get(f"{OVF}size") == str((folder / "box-disk001.vmdk").stat().st_size)
    assert drive.get(f"{OVF}fileRef") == file.get(f"{OVF}id")
    assert drive.get(f"{OVF}capacity") == str(CAPACITY)
    assert drive.get(f"{OVF}format").endswith("#streamOptimized")
    items = {
        item.findtext(f"{RASD}ResourceType"): {child.tag.removeprefix(RASD): child.text for child in item}
        for item in envelope.iter(f"{OVF}Item")
    }
    assert set(items) == {CPU, MEMORY, NIC, HARD_DISK, OTHER_STORAGE}
    assert items[HARD_DISK]["HostResource"] == f"/disk/{drive.get(f'{OVF}diskId')}"
    assert items[HARD_DISK]["Parent"] == items[OTHER_STORAGE]["InstanceID"]
    assert items[OTHER_STORAGE]["ResourceSubType"] == "VirtioSCSI"
    assert (items[NIC]["ResourceSubType"], items[NIC]["Connection"]) == ("VirtioNet", "NAT")
    assert (items[MEMORY]["VirtualQuantity"], items[MEMORY]["AllocationUnits"]) == ("1024", "MegaBytes")
    assert len({item["InstanceID"] for item in items.values()}) == len(items)


def test_the_initramfs_loads_the_drivers_of_the_boxs_controller() -> None:
    initramfs = (node_image.PACKER / "base" / "initramfs.sh").read_text()
    modules = next(line for line in initramfs.splitlines() if line.startswith("INCLUDE_MODULES="))
    assert {"virtio_pci", "virtio_scsi", "sd_mod", "ext4"} <= set(modules.split('"')[1].split())


@needs_qemu_img
def test_the_box_is_made_once_from_the_image(image_folder, disk, monkeypatch) -> None:
    extracted: list[Path] = []

    def extract(box: Path, into: Path) -> Path:
        extracted.append(box)
        return Path(shutil.copy(disk, into / boxes.DISK))

    monkeypatch.setattr(boxes, "extract_disk", extract)
    (image_folder / ".virtualbox-killed").mkdir()
    (image_folder / "overlaylab-virtualbox-00000000.box").write_text("of an older recipe")
    box = virtualbox_box.build()
    assert box == image_folder / f"overlaylab-virtualbox-{virtualbox_box.recipe()}.box"
    assert virtualbox_box.build() == box
    assert extracted == [image_folder / "overlaylab.box"]
    assert sorted(path.name for path in image_folder.iterdir()) == [".virtualbox.lock", box.name]


def test_another_recipe_gives_another_box(image_folder, monkeypatch, tmp_path) -> None:
    before = virtualbox_box.box_path(), virtualbox_box.box_name()
    assert before[1] == f"overlaylab/debian-virtualbox-0123456789ab-{virtualbox_box.recipe()}"
    edited = tmp_path / "box.ovf"
    edited.write_text(virtualbox_box.OVF.read_text().replace("1024", "2048"))
    monkeypatch.setattr(virtualbox_box, "OVF", edited)
    assert (virtualbox_box.box_path(), virtualbox_box.box_name()) != before


@needs_qemu_img
def test_a_disk_that_is_none_is_refused_in_qemu_imgs_words(tmp_path) -> None:
    (tmp_path / "box.img").write_bytes(b"no disk")
    with pytest.raises(
        UserError, match=r"qemu-img convert: must turn .* \(found: .*box\.img.*qcow2 format\)"
    ):
        virtualbox_box.write(tmp_path / "box.img", "a", tmp_path / "a.box")
    assert [path.name for path in tmp_path.iterdir()] == ["box.img"]


def test_without_qemu_img_setup_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"it is not installed\)\. \./task setup installs"):
        virtualbox_box.write(tmp_path / "box.img", "a", tmp_path / "a.box")


def test_a_full_disk_is_told_before_anything_is_unpacked(image_folder, monkeypatch) -> None:
    monkeypatch.setattr(virtualbox_box, "DISK_BYTES", 10**18)
    with pytest.raises(UserError, match=r"must have 1000000000\.0 GB free to make VirtualBox's box"):
        virtualbox_box.build()
    assert [path.name for path in image_folder.iterdir()] == [".virtualbox.lock"]
