"""Systems as data: definitions, disks that somebody else made, what configures their first boot."""

import json
import subprocess
from pathlib import Path

import pytest

from overlaylab.core.errors import UserError
from overlaylab.image import base, daemons, foreign_disk, node_image, systems

DISKLESS = """title: Mine
id: mine
release: "1"
run: nothing
packages: {suite: mine, components: [main], include: [systemd]}
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OVERLAYLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def disk(path: Path, boots: bool = True, form: str = "qcow2") -> Path:
    """A small disk with the signature of a partition table, and boot code where it boots."""
    raw = path.with_suffix(".raw")
    raw.write_bytes((b"\xeb" * 440 if boots else bytes(440)) + bytes(70) + b"\x55\xaa" + bytes(2**20))
    subprocess.run(["qemu-img", "convert", "-O", form, raw, path], check=True)
    return path


def test_all_systems_of_the_project_can_be_read() -> None:
    assert systems.names() == ["debian", "fedora-coreos", "flatcar", "ubuntu"]
    for name in systems.names():
        assert systems.load(name).name == name
    ubuntu = systems.load("ubuntu")
    assert ubuntu.packages and ubuntu.disk
    assert (ubuntu.packages.suite, ubuntu.disk.configured_by) == ("noble", "cloud-init")


def test_a_folder_elsewhere_adds_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/system.yml").write_text(DISKLESS)
    monkeypatch.setenv("OVERLAYLAB_SYSTEMS", str(tmp_path))
    assert "mine" in systems.names() and systems.load("mine").title == "Mine"


def test_nothing_but_a_definition_knows_a_system_by_name() -> None:
    """No branch per system: neither code nor what makes images names one, but for what is said of the default."""
    source = node_image.paths.ROOT / "provision/src/overlaylab"
    files = [
        *source.rglob("*.py"),
        *(node_image.PACKER / "scripts").iterdir(),
        *(node_image.PACKER / "base").iterdir(),
    ]
    found = {
        (path.name, word)
        for path in files
        for word in ("flatcar", "coreos", '"ubuntu"')
        if word in path.read_text().lower()
    }
    # bundle_systems and releases: the machine that runs the lab.
    assert {
        (name, word)
        for name, word in found
        if name not in ("bundle_systems.py", "releases.py", "packages.py")
    } == set()


def test_a_system_made_from_a_disk_says_how_to_have_one(cache: Path) -> None:
    with pytest.raises(UserError) as wrong:
        node_image.image_key("flatcar")
    assert str(wrong.value) == (
        "SYSTEM=flatcar: must have a disk that it is made from. To have one, type `./task image:fetch "
        "SYSTEM=flatcar`, or name one: `./task image:build SYSTEM=flatcar IMAGE=disk.qcow2`"
    )


def test_a_disk_is_chosen_once_and_part_of_the_key(cache: Path, tmp_path: Path) -> None:
    ubuntu = systems.load("ubuntu")
    before = node_image.image_key("ubuntu")
    assert foreign_disk.of(ubuntu) is None  # packages
    image = disk(tmp_path / "disk.qcow2")
    foreign_disk.choose(ubuntu, image)
    found = foreign_disk.of(ubuntu)
    assert found is not None and (found.path, found.origin) == (str(image), "IMAGE=")
    assert node_image.image_key("ubuntu") != before
    foreign_disk.choose(ubuntu, None)
    assert node_image.image_key("ubuntu") == before


def test_a_system_of_packages_takes_no_disk(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError) as wrong:
        foreign_disk.choose(systems.load("debian"), disk(tmp_path / "disk.qcow2"))
    assert str(wrong.value) == (
        "IMAGE: is for systems that are made from somebody else's disk (found: Debian 12, which is made from packages). "
        "Leave it out, or choose one of fedora-coreos, flatcar, ubuntu in SYSTEM"
    )


def _no_file(folder: Path) -> Path:
    return folder / "absent.qcow2"


def _no_disk(folder: Path) -> Path:
    path = folder / "page.qcow2"
    path.write_text("<html>404</html>" * 100)
    return path


def _truncated(folder: Path) -> Path:
    path = disk(folder / "disk.qcow2")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


def _no_pc(folder: Path) -> Path:
    return disk(folder / "arm.qcow2", boots=False)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_no_file, "IMAGE: must be a file"),
        (_no_disk, "IMAGE: must be a disk: qcow2, vmdk, vdi, vhdx, vpc, or raw with a partition table"),
        (_truncated, "IMAGE: must be whole"),
        (
            _no_pc,
            "IMAGE: must be a disk that a PC (x86_64) boots from by BIOS (found: arm.qcow2, without boot code",
        ),
    ],
)
def test_what_is_no_such_disk_is_refused_before_anything_is_noted(
    cache: Path, tmp_path: Path, make, words: str
) -> None:
    with pytest.raises(UserError) as wrong:
        foreign_disk.choose(systems.load("ubuntu"), make(tmp_path))
    assert str(wrong.value).startswith(words)
    assert not cache.exists()


@pytest.mark.parametrize("form", ["qcow2", "raw", "vmdk"])
def test_formats_that_publishers_use_are_taken(cache: Path, tmp_path: Path, form: str) -> None:
    foreign_disk.refuse(disk(tmp_path / f"disk.{form}x", form=form))


def test_another_file_under_the_chosen_name_is_refused(cache: Path, tmp_path: Path) -> None:
    ubuntu = systems.load("ubuntu")
    image = disk(tmp_path / "disk.qcow2")
    foreign_disk.choose(ubuntu, image)
    chosen = foreign_disk.of(ubuntu)
    assert chosen is not None
    image.write_bytes(image.read_bytes() + b"x")
    with pytest.raises(UserError, match="must be made from the disk that was chosen"):
        foreign_disk.variables(ubuntu, chosen, tmp_path, "ssh-ed25519 AAAA")


def test_cloud_init_is_told_of_a_user_and_a_key(tmp_path: Path) -> None:
    given = foreign_disk.configuration(systems.load("ubuntu"), tmp_path / "seed", "ssh-ed25519 AAAA")
    meta, user = map(Path, json.loads(given["seed_files"]))
    assert (meta.name, user.name) == ("meta-data", "user-data")
    assert user.read_text().startswith("#cloud-config\n")
    assert '    ssh_authorized_keys: ["ssh-ed25519 AAAA"]\n' in user.read_text()


@pytest.mark.parametrize(
    ("name", "firmware"),
    [("flatcar", "opt/org.flatcar-linux/config"), ("fedora-coreos", "opt/com.coreos/config")],
)
def test_ignition_gets_what_butane_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, firmware: str
) -> None:
    butane = tmp_path / "butane"
    butane.write_text("#!/bin/sh\ncat\n")
    butane.chmod(0o755)
    monkeypatch.setattr(daemons, "prepare", lambda names: None)
    monkeypatch.setattr(daemons, "ensure", lambda name: {"binaries": {name: {"path": str(butane)}}})
    given = foreign_disk.configuration(systems.load(name), tmp_path / "seed", "ssh-ed25519 AAAA")
    assert json.loads(given["firmware_files"]) == {firmware: str(tmp_path / "seed/config.ign")}
    assert 'ssh_authorized_keys: ["ssh-ed25519 AAAA"]' in (tmp_path / "seed/config.ign").read_text()


def test_an_archive_counts_until_another_is_named(cache: Path, tmp_path: Path) -> None:
    debian = systems.load("debian")
    assert base._environment(debian, tmp_path)["ARCHIVE"] == ""
    sources = tmp_path / "mirror.sources"
    sources.write_text("Types: deb\n")
    base.choose_archive(debian, sources)
    sources.unlink()
    kept = Path(base._environment(debian, tmp_path)["ARCHIVE"])
    assert kept.read_text() == "Types: deb\n" and kept.is_relative_to(cache)
    with pytest.raises(UserError, match="must be a file with sources of packages"):
        base.choose_archive(debian, sources)
    base.choose_archive(debian, None)
    assert base._environment(debian, tmp_path)["ARCHIVE"] == ""


@pytest.mark.parametrize(
    "line", ["URIs: copy://{}/archive", "URIs: file:{}/archive", "Signed-By: {}/archive/key.gpg"]
)
def test_an_ordinary_users_archive_lies_where_the_builders_user_may_look(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    debian = systems.load("debian")
    private = tmp_path / "private"
    (private / "archive").mkdir(parents=True)
    sources = tmp_path / "mirror.sources"
    sources.write_text(f"Types: deb\n{line.format(private)}\n")
    monkeypatch.setattr(base, "is_root", lambda: False)
    # pytest's own folders are private too.
    monkeypatch.setattr(
        base, "unsearchable_folder", lambda folder: private if folder == private / "archive" else None
    )
    with pytest.raises(UserError, match=f"{private} has mode 0755.*chmod o\\+x"):
        base.choose_archive(debian, sources)
    monkeypatch.setattr(base, "unsearchable_folder", lambda folder: None)
    base.choose_archive(debian, sources)
    monkeypatch.setattr(base, "unsearchable_folder", lambda folder: private)
    sources.write_text("Types: deb\nURIs: http://example.org/debian\nSigned-By:\n -----BEGIN PGP\n")
    base.choose_archive(debian, sources)
