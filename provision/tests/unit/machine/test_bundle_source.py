"""On the target: parts of a bundle beside the checkout are checked, copied whole, or refused in one paragraph."""

import errno
import gzip
import subprocess
import tarfile
from dataclasses import asdict
from pathlib import Path

import pytest
from lab_bundle import DISK, KEY, bundle, flip, unpacked

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.desktop import modules
from overlaylab.image import bundle_make, bundle_parts, foreign_disk, node_image, systems
from overlaylab.machine import bundle_apt, bundle_source, packages

SCRIPT = paths.PROVISION / "toolchain" / "bundle.sh"


@pytest.fixture
def beside(tmp_path, monkeypatch, own_cache) -> Path:
    """The top folder of an unpacked bundle, which is the checkout from now on."""
    top = unpacked(tmp_path)
    monkeypatch.setattr(paths, "ROOT", top)
    own_cache.mkdir()
    return top


def test_without_a_bundle_nothing_is_supplied(tmp_path, monkeypatch, own_cache):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    assert not bundle_source.supply(own_cache / "images" / "debian-123456789abc", "the image")
    assert (
        bundle_apt.options() == [] and bundle_apt.failed([], "") is None and bundle_source.version() is None
    )


def test_a_folder_of_the_cache_comes_out_of_the_bundle(beside, own_cache):
    target = own_cache / "images" / "debian-123456789abc"
    assert bundle_source.supply(target, "the image")
    assert (target / "overlaylab.box").read_bytes() == b"box" * 1000
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_an_image_of_the_bundle_takes_no_programs_that_build_one(beside, own_cache, monkeypatch):
    target = own_cache / "images" / "debian-123456789abc"
    monkeypatch.setattr(node_image, "folder", lambda system: target)
    monkeypatch.setattr(node_image, "_preflight", lambda system: pytest.fail("nothing is to be built"))
    assert node_image.build() == target and (target / node_image.BOX).exists()
    monkeypatch.setattr(node_image, "folder", lambda system: own_cache / "images" / "debian-000000000000")
    with pytest.raises(UserError, match="must hold the image of debian as this checkout needs it"):
        node_image.build()


def test_the_key_of_an_image_that_was_made_from_a_disk_is_known_without_the_disk(beside, own_cache):
    disk = foreign_disk.of(systems.load("flatcar"))
    assert disk is not None and asdict(disk) == DISK
    assert len(node_image.image_key("flatcar")) == 64
    assert foreign_disk.of(systems.load("ubuntu")) is None


def test_a_damaged_part_is_refused_and_nothing_of_it_is_kept(beside, own_cache):
    flip(beside / "bundle/images/debian-123456789abc/overlaylab.box", 1500)
    target = own_cache / "images" / "debian-123456789abc"
    with pytest.raises(UserError) as error:
        bundle_source.supply(target, "the image")
    assert error.value.where == "bundle/images/debian-123456789abc/overlaylab.box"
    assert not list(target.parent.iterdir())


def test_a_part_that_the_checkout_needs_otherwise_is_refused_by_name(beside, own_cache):
    with pytest.raises(UserError) as error:
        bundle_source.supply(own_cache / "images" / "debian-000000000000", "the image of debian")
    assert "made of commit cccccccccccc" in error.value.where
    assert error.value.rule == "must hold the image of debian as this checkout needs it, debian-000000000000"
    assert error.value.seen == "lab; daemons of weave"


def test_a_full_disk_is_said_and_nothing_half_made_is_left(beside, own_cache, monkeypatch):
    target = own_cache / "images" / "debian-123456789abc"

    def full(file, copy):
        with bundle_source._written(copy) as made:
            made.write(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(bundle_source, "take", full)
    with pytest.raises(UserError, match=r"No space left on device.*type the command again"):
        bundle_source.supply(target, "the image")
    assert not list(target.parent.iterdir())


def test_a_link_whose_medium_is_gone_does_not_open_the_network(tmp_path, monkeypatch, own_cache):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    (tmp_path / "bundle").symlink_to(tmp_path / "medium")
    assert bundle_source.present()
    with pytest.raises(UserError, match="Put the medium with the bundle in again"):
        bundle_source.supply(own_cache / "images" / "debian-123456789abc", "the image")


def test_without_git_the_manifest_says_the_version(beside):
    assert bundle_source.version() == "cccccccc"
    assert modules.commit() == "cccccccc"


def test_what_was_packed_is_unpacked_with_its_modes(tmp_path, beside, own_cache, monkeypatch):
    folder = tmp_path / "runtime"
    (folder / "locales").mkdir(parents=True)
    (folder / "electron").write_text("program")
    (folder / "electron").chmod(0o4755)
    (folder / "locales" / "en").write_text("en")
    (folder / "link").symlink_to("electron")
    packed = beside / "bundle" / "electron" / "1.tar.gz"
    packed.parent.mkdir()
    bundle_parts.pack(folder, packed)
    again = tmp_path / "again.tar.gz"
    bundle_parts.pack(folder, again)
    assert packed.read_bytes() == again.read_bytes()
    part = bundle_make.measured(bundle_parts.Source("e", "", (), {"bundle/electron/1.tar.gz": packed}))
    held = bundle_source.manifest()
    monkeypatch.setattr(bundle_source, "manifest", lambda: type(held)(**{**vars(held), "parts": (part,)}))
    assert bundle_source.find("electron/1.tar.gz") and not bundle_source.find("electron/2.tar.gz")
    target = own_cache / "electron" / "1"
    assert bundle_source.unpack("electron/1.tar.gz", target, "Electron")
    assert (target / "electron").stat().st_mode & 0o7777 == 0o755
    assert (target / "link").readlink() == Path("electron") and (
        target / "locales" / "en"
    ).read_text() == "en"
    with pytest.raises(UserError, match="must hold Electron as this checkout needs it"):
        bundle_source.unpack("electron/2.tar.gz", target, "Electron")


def test_archives_of_daemons_are_unpacked_beside_them(tmp_path, beside, own_cache, monkeypatch):
    archive = beside / "bundle" / "daemons" / "weave-1" / "weaver.gz"
    archive.parent.mkdir()
    archive.write_bytes(gzip.compress(b"weaver", mtime=0))
    part = bundle_make.measured(
        bundle_parts.Source("d", "", (), {"bundle/daemons/weave-1/weaver.gz": archive})
    )
    held = bundle_source.manifest()
    monkeypatch.setattr(bundle_source, "manifest", lambda: type(held)(**{**vars(held), "parts": (part,)}))
    assert bundle_source.supply(own_cache / "daemons" / "weave-1", "the daemons", packed=True)
    assert (own_cache / "daemons" / "weave-1" / "weaver").read_bytes() == b"weaver"


def options_of(told: list[str]) -> dict[str, str]:
    return dict(word.removeprefix("--option=").split("=", 1) for word in told)


def test_apt_is_told_of_the_bundle_alone_in_folders_of_its_own(beside, own_cache):
    told = options_of(bundle_apt.options())
    assert told["Dir::Etc::sourcelist"] == "/dev/null"
    assert {told[f"Dir::{name}"] for name in ("State::lists", "Cache", "Etc::sourceparts")} == {
        f"{own_cache}/apt/lists",
        f"{own_cache}/apt",
        f"{own_cache}/apt/sources",
    }
    assert (own_cache / "apt" / "sources" / "overlaylab.sources").read_text() == (
        f"Types: deb\nURIs: file:{beside}/bundle/packages/\nSuites: ./\nSigned-By:\n key\n .\n of it\n"
    )


def test_a_blank_in_the_path_is_written_as_a_uri_has_it(tmp_path, monkeypatch, own_cache):
    (tmp_path / "a b%").mkdir()
    top = unpacked(tmp_path / "a b%")
    monkeypatch.setattr(paths, "ROOT", top)
    own_cache.mkdir()
    bundle_apt.options()
    written = (own_cache / "apt" / "sources" / "overlaylab.sources").read_text()
    assert f"URIs: file:{tmp_path}/a%20b%25/target/overlaylab/bundle/packages/\n" in written


def test_damaged_lists_of_packages_never_reach_apt(beside):
    flip(beside / "bundle" / "packages" / "InRelease", 3)
    with pytest.raises(UserError, match=r"bundle/packages/InRelease: must have the SHA-256"):
        bundle_apt.options()


@pytest.mark.parametrize("other", [{"system": "debian-99"}, {"architecture": "riscv64"}])
def test_a_bundle_for_another_machine_is_refused(tmp_path, monkeypatch, own_cache, other):
    monkeypatch.setattr(paths, "ROOT", unpacked(tmp_path, **other))
    own_cache.mkdir()
    with pytest.raises(UserError) as error:
        bundle_apt.options()
    assert error.value.rule.startswith("must be for this machine")
    assert next(iter(other.values())) in error.value.rule
    assert "bundle:make" not in error.value.where and error.value.fix.startswith("Make a bundle with FOR=")


def test_installing_asks_the_bundle_where_one_lies_beside(beside, monkeypatch):
    called = []
    monkeypatch.setattr(
        packages,
        "run_as_root",
        lambda argv, why, **other: called.append(argv) or subprocess.CompletedProcess(argv, 100, stderr=""),
    )
    monkeypatch.setattr(packages, "prefix", lambda argv: [])
    monkeypatch.setattr(packages.host_apt, "wait_until_free", lambda: None)
    with pytest.raises(UserError, match="this machine is newer than the bundle"):
        packages.install(["tini"])
    for argv in called:
        assert set(bundle_apt.options()) < set(argv)


UNKNOWN = "E: Unable to locate package newtool\nE: Package 'redir' has no installation candidate\n"


def test_a_package_that_an_older_bundle_lacks_is_told_as_such(beside):
    with pytest.raises(UserError) as error:
        bundle_apt.failed(["newtool", "redir"], UNKNOWN)
    assert (error.value.where, error.value.rule) == (
        f"{beside}/bundle, made of commit cccccccccccc",
        "must hold all packages as this checkout needs it, newtool, redir",
    )
    assert error.value.fix.startswith("Make a bundle of this checkout")


def test_where_the_bundle_does_hold_a_package_it_is_not_called_old(beside):
    (beside / "bundle/packages/Packages").write_text("Package: newtool\nVersion: 1\n\nPackage: redir\n")
    assert bundle_apt.failed(["newtool", "redir"], UNKNOWN).seen == UNKNOWN.strip().replace("\n", " | ")


def test_an_installation_that_was_cut_off_is_not_the_bundles_fault(beside):
    assert bundle_apt.failed(["tini"], "E: dpkg was interrupted, you must manually run …") is None
    assert bundle_apt.failed(["tini"], "E: Could not get lock /var/lib/dpkg/lock") is None


def door(top: Path, cache: Path, line: str) -> subprocess.CompletedProcess[str]:
    """What ./task does with the script, in the folder `top`."""
    begin = f'set -eu; root="{top}"; bundle="{top}/bundle"; . "{SCRIPT}"; '
    environment = {"PATH": "/usr/bin:/bin", "OVERLAYLAB_CACHE": str(cache), "HOME": str(cache)}
    return subprocess.run(["sh", "-c", begin + line, "task"], env=environment, capture_output=True, text=True)


def test_the_front_door_checks_every_part_before_it_uses_one(beside, own_cache):
    assert door(beside, own_cache, "bundle_check").returncode == 0
    parts = [part for part in bundle_source.manifest().parts if part.name != "checkout"]
    files = [beside / file.path for part in parts for file in part.files]
    for path in [*files, beside / "bundle/manifest.json", beside / "bundle/SHA256SUMS"]:
        flip(path, 0)
        done = door(beside, own_cache, "bundle_check; echo used")
        assert done.returncode == 2 and done.stdout == ""
        assert len(done.stderr.strip().splitlines()) <= 2
        flip(path, 0)
        path.rename(path.with_name("away"))
        assert door(beside, own_cache, "bundle_check; echo used").returncode == 2
        path.with_name("away").rename(path)
    # The checkout is its user's to change.
    (beside / "README.md").write_text("other")
    assert door(beside, own_cache, "bundle_check").returncode == 0


def test_the_front_door_names_what_is_damaged(beside, own_cache):
    flip(beside / "bundle" / "toolchain" / KEY / "one-1.whl", 2)
    done = door(beside, own_cache, "bundle_check")
    assert f"bundle/toolchain/{KEY}/one-1.whl: FAILED" in done.stderr
    assert done.stderr.rstrip().endswith("comparing its digest with the one that bundle:make printed")


def test_a_tar_that_was_cut_while_it_unpacked_is_noticed(tmp_path, own_cache):
    """Wherever it was behind ./task itself, in the checkout too."""
    whole = bundle(tmp_path)
    with tarfile.open(whole) as tar:
        files = [member for member in tar if member.isfile()]
    names = [file.name.removeprefix("overlaylab/") for file in files]
    first = names.index("task") + 1
    for place in range(first, len(names)):
        target = tmp_path / str(place)
        target.mkdir()
        with whole.open("rb") as file:
            cut = file.read(files[place].offset_data + files[place].size // 2)
        done = subprocess.run(["tar", "-xf", "-"], input=cut, cwd=target, capture_output=True)
        assert done.returncode == 2
        done = door(target / "overlaylab", own_cache, "bundle_check; echo used")
        assert (done.returncode, done.stdout) == (2, "")
        told = done.stderr.splitlines()[-1]
        if names[place] == "vagrant/pair.yml":
            assert "are missing: bundle/toolchain/" in told
        if place + 1 < len(names):
            assert "must hold all files of the bundle (found: " in told and "and unpack it again" in told


def test_files_of_the_checkout_that_a_cut_tar_left_out_are_named(beside, own_cache):
    (beside / "provision/a/b.txt").unlink()
    assert door(beside, own_cache, "bundle_check").returncode == 0  # its user's to remove
    (beside / "bundle/packages/key.asc").unlink()
    told = door(beside, own_cache, "bundle_check").stderr
    assert "(found: 2 are missing: provision/a/b.txt bundle/packages/key.asc )" in told
    (beside / ".git").mkdir()
    told = door(beside, own_cache, "bundle_check").stderr
    assert "(found: 1 are missing: bundle/packages/key.asc )" in told


def test_a_bundle_is_checked_once_for_each_cache_folder_and_each_bundle(beside, own_cache):
    line = "bundle_check_once; echo used"
    assert door(beside, own_cache, line).stderr.startswith("overlaylab: checking the bundle")
    assert door(beside, own_cache, line).stderr == ""
    flip(beside / "bundle" / "toolchain" / KEY / "one-1.whl", 2)
    with (beside / "bundle/manifest.json").open("a") as file:
        file.write(" ")
    assert door(beside, own_cache, line).stdout == ""


def test_a_bundle_of_an_older_checkout_is_refused_by_its_toolchain(beside, own_cache):
    assert door(beside, own_cache, f"bundle_wheels {KEY}").stdout == f"{beside}/bundle/toolchain/{KEY}"
    done = door(beside, own_cache, "bundle_wheels fedcba9876543210")
    assert done.returncode == 2
    assert f"locks, fedcba9876543210 (found: {KEY}). The bundle is of another commit" in done.stderr


def test_the_front_door_refuses_a_bundle_for_another_system(tmp_path, own_cache):
    done = door(unpacked(tmp_path, system="debian-99"), own_cache, "bundle_check; echo used")
    assert done.returncode == 2 and "found: debian-99-" in done.stderr and done.stdout == ""
