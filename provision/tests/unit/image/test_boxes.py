"""Vagrant boxes: the disk of one, and another written from parts."""

import errno
import gzip
import subprocess
import tarfile
from pathlib import Path

import pytest

from overlaylab.core.errors import UserError
from overlaylab.image import boxes


def libvirt_box(path: Path, **members: bytes) -> Path:
    """A box as Packer's vagrant post-processor writes it: GNU headers with times of access and change."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        for name, content in members.items():
            info = tarfile.TarInfo(name.replace("_", "."))
            info.size = len(content)
            header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
            header[345:369] = b"15072324712\0" * 2
            header[148:156] = b" " * 8
            header[148:156] = b"%06o\0 " % sum(header)
            file.write(bytes(header) + content + bytes(-len(content) % 512))
        file.write(bytes(1024))
    return path


def test_what_is_anywhere_on_the_disk_is_found(tmp_path) -> None:
    box = tmp_path / "a.box"
    disk = b"\0" * (2**22 - 3) + b"secret" + b"\0" * 2**22 + b"other"  # across what is read at once
    libvirt_box(box, metadata_json=b"absent", box_img=disk)
    assert boxes.found_on_disk(box, [b"secret", b"other", b"absent"]) == {b"secret", b"other"}
    assert boxes.found_on_disk(box, [b"absent"]) == set()


def test_a_box_without_a_disk_has_not_been_looked_at(tmp_path) -> None:
    libvirt_box(tmp_path / "a.box", metadata_json=b"{}")
    with pytest.raises(UserError, match=r"no member box\.img"):
        boxes.found_on_disk(tmp_path / "a.box", [b"secret"])


def test_the_disk_of_a_libvirt_box(tmp_path) -> None:
    disk = bytes(range(256)) * 8192
    box = libvirt_box(tmp_path / "a.box", Vagrantfile=b"#", box_img=disk, metadata_json=b"{}")
    assert boxes.extract_disk(box, tmp_path) == tmp_path / "box.img"
    assert (tmp_path / "box.img").read_bytes() == disk


@pytest.mark.parametrize("how", ["no disk", "cut off", "no box"])
def test_a_box_without_a_disk_is_refused(tmp_path, how) -> None:
    box = tmp_path / "a.box"
    if how == "no disk":
        libvirt_box(box, Vagrantfile=b"#")
    elif how == "cut off":
        whole = libvirt_box(box, box_img=bytes(range(256)) * 8192).read_bytes()
        box.write_bytes(whole[: len(whole) // 2])
    else:
        box.write_bytes(b"<html>not a box</html>")
    with pytest.raises(UserError, match=r"a\.box: must be the box that image:build wrote \(found: "):
        boxes.extract_disk(box, tmp_path)
    assert not (tmp_path / "box.img").exists(), "half a disk was left"


def test_a_full_disk_is_not_the_boxs_fault(tmp_path, monkeypatch) -> None:
    def full(*_) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(boxes.shutil, "copyfileobj", full)
    with pytest.raises(OSError, match="No space left"):
        boxes.extract_disk(libvirt_box(tmp_path / "a.box", box_img=b"1"), tmp_path)


def test_a_box_is_a_plain_tar_and_the_same_each_time(tmp_path) -> None:
    disk = tmp_path / "disk"
    disk.write_bytes(b"\x00\x01" * 5000)
    for name in ("a.box", "b.box"):
        boxes.write_box({"metadata.json": b'{"provider": "x"}', "box.disk": disk}, tmp_path / name)
    assert (tmp_path / "a.box").read_bytes() == (tmp_path / "b.box").read_bytes()
    with tarfile.open(tmp_path / "a.box", "r:") as archive:
        assert [(m.name, m.mode, m.size) for m in archive] == [
            ("metadata.json", 0o644, 17),
            ("box.disk", 0o644, 10000),
        ]
        assert archive.extractfile("box.disk").read() == disk.read_bytes()


def test_a_box_is_there_whole_or_not_at_all(tmp_path) -> None:
    with pytest.raises(FileNotFoundError):
        boxes.write_box({"metadata.json": b"{}", "box.disk": tmp_path / "absent"}, tmp_path / "a.box")
    assert list(tmp_path.iterdir()) == []


def test_a_box_is_unpacked_whole_and_once(tmp_path) -> None:
    box = libvirt_box(tmp_path / "a.box", Vagrantfile=b"#", box_img=b"disk", metadata_json=b"{}")
    target = tmp_path / "boxes" / "name" / "0" / "libvirt"
    boxes.unpack(box, target)
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {
        "Vagrantfile": b"#",
        "box.img": b"disk",
        "metadata.json": b"{}",
    }
    assert [path.name for path in target.parent.iterdir()] == ["libvirt"]
    box.unlink()
    boxes.unpack(box, target)


@pytest.mark.parametrize("content", [b"<html>not a box</html>", None])
def test_a_damaged_box_leaves_nothing(tmp_path, content) -> None:
    box = tmp_path / "a.box"
    if content is None:
        libvirt_box(box, box_img=b"disk")
    else:
        box.write_bytes(content)
    with pytest.raises(UserError, match=r"a\.box: must be the box that image:build wrote \(found: "):
        boxes.unpack(box, tmp_path / "0" / "libvirt")
    assert list((tmp_path / "0").iterdir()) == []


def test_a_disk_that_fills_is_not_the_boxs_fault(tmp_path, monkeypatch) -> None:
    def full(argv, **_):
        return subprocess.CompletedProcess(argv, 2, "", "tar: box.img: Cannot write: No space left on device")

    monkeypatch.setattr(boxes.subprocess, "run", full)
    with pytest.raises(UserError, match="Free some disk"):
        boxes.unpack(tmp_path / "a.box", tmp_path / "0" / "libvirt")
