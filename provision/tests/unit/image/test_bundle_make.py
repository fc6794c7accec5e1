"""bundle:make as a whole, on parts of a few bytes: what a call that was ended leaves, and what goes into none."""

import json
import os
import shutil
import signal
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from overlaylab.core.errors import UserError
from overlaylab.desktop import modules
from overlaylab.desktop import runtime as viewer_runtime
from overlaylab.image import (
    bundle_make,
    bundle_packages,
    bundle_parts,
    bundle_systems,
    bundle_verify,
    daemons,
    kit,
    lxc_box,
    node_image,
    systems,
)
from overlaylab.image.bundle_parts import Source
from overlaylab.machine import ready, wheels

REQUEST = bundle_make.Request("debian-12", overlays=("weave",))


@pytest.fixture
def made(tmp_path, own_cache, monkeypatch) -> list[str]:
    """Makers of parts that cost nothing; what they made. The last one's is Electron."""
    log: list[str] = []

    def files(folder: Path, *names: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / name).write_text(name)
        return folder

    def download(lock, folder, options):
        log.append("wheels")
        with zipfile.ZipFile(files(folder) / "one-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr("one-1.dist-info/METADATA", "Name: one\nLicense: MIT\n")
        return True

    def sign(folder):
        log.append("repository")
        files(folder, "InRelease", "key.asc")

    def build(name):
        log.append("daemons")
        files(own_cache / "daemons/weave-1", "manifest.json", "weaver.gz")

    def box(system="debian"):
        return own_cache / f"images/{system}-1"

    archive = str(own_cache / "daemons/weave-1/weaver.gz")
    kits = files(own_cache / "kits/k1", kit.ARCHIVE, kit.MANIFEST)
    made_kit = kit.Kit(kits / kit.ARCHIVE, "", "", "amd64", {}, (), {})
    runtime = viewer_runtime.Runtime("current", "45", files(tmp_path / "electron", "electron"))
    for module, fakes in {
        bundle_systems: {"architecture": lambda: "amd64"},
        ready: {"ensure_packages": lambda groups: None},
        bundle_make: {"described": lambda: ("c" * 40, "cccccccc", 1700000000)},
        bundle_parts: {
            "checkout": lambda work: Source("checkout", "", (), {"task": files(work, "task") / "task"}),
            "history": lambda work: Source("history", "", (), {"bundle/h": files(work, "h") / "h"}),
        },
        bundle_packages: {"closure": lambda *asked: [], "sign": sign},
        wheels: {"download": download},
        node_image: {
            "build": lambda name: files(box(name), node_image.BOX, node_image.MANIFEST),
            "folder": box,
        },
        kit: {"ensure": lambda: made_kit},
        lxc_box: {"build": lambda name: files(box(name), lxc_box.BOX, lxc_box.MANIFEST)},
        daemons: {
            "cached": lambda name: Path(archive).exists(),
            "prepare": build,
            "ensure": lambda name: {"binaries": {"weaver": {"archive": archive}}},
        },
        modules: {
            "install": lambda folder: log.append("modules") or files(folder / "node_modules", "x"),
            "ensure_modules": lambda: None,
            "ensure_build": lambda: None,
            "build_key": lambda: "f" * 64,
            "BUILT": files(tmp_path / "dist", "main.cjs"),
            "GENERATED": files(tmp_path / "generated", "schema.json"),
        },
        viewer_runtime: {"ensure": lambda: log.append("electron") or runtime},
    }.items():
        for name, fake in fakes.items():
            monkeypatch.setattr(module, name, fake)
    return log


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed(out: Path) -> None:
    """A call that ends by SIGKILL where a test put it."""
    child = os.fork()
    if not child:
        try:
            bundle_make.make(out, REQUEST)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def hidden(*folders: Path) -> list[str]:
    """What is unfinished there."""
    return [path.name for folder in folders for path in folder.glob(".*")]


def test_a_call_that_was_interrupted_between_parts_goes_on_where_it_was(
    made, tmp_path, own_cache, monkeypatch
):
    whole = viewer_runtime.ensure

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(viewer_runtime, "ensure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bundle_make.make(tmp_path / "b.tar", REQUEST)
    assert made == ["wheels", "repository", "daemons", "modules"]
    assert not (tmp_path / "b.tar").exists() and hidden(tmp_path, own_cache / "bundle") == []

    monkeypatch.setattr(viewer_runtime, "ensure", whole)
    digest = bundle_make.make(tmp_path / "b.tar", REQUEST)
    assert made == ["wheels", "repository", "daemons", "modules", "electron"]
    assert (
        bundle_verify.verify(tmp_path / "b.tar").digest
        == digest
        == bundle_make.make(tmp_path / "c.tar", REQUEST)
    )


def test_what_a_call_that_was_killed_has_left_goes_with_the_next(made, tmp_path, own_cache, monkeypatch):
    home, add_file = own_cache / "bundle", tarfile.TarFile.addfile

    def add_and_kill(self, member, content=None):
        add_file(self, member, content)
        if member.name.endswith("bundle/h"):
            kill()

    with monkeypatch.context() as patch:
        patch.setattr(tarfile.TarFile, "addfile", add_and_kill)
        killed(tmp_path / "first.tar")
    assert (tmp_path / ".first.tar.new").exists()
    assert sorted(name[:5] for name in hidden(home)) == [".out", ".work"]

    next(home.glob("node_modules-*")).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(modules, "install", lambda folder: kill())
        killed(tmp_path / "second.tar")
    assert hidden(tmp_path) == []
    assert sorted(name[:5] for name in hidden(home)) == [".modu", ".out", ".work"]

    (tmp_path / ".own.new").write_text("its user's")
    bundle_make.make(tmp_path / "third.tar", REQUEST)
    assert hidden(home, tmp_path) == [".own.new"]


def test_no_key_and_no_password_of_the_maker_is_in_a_bundle(made, tmp_path, own_cache, monkeypatch):
    for name in ("ssh/id_ed25519", "ssh/id_ed25519.pub", "secrets/weave-password"):
        (own_cache / name).parent.mkdir(parents=True, exist_ok=True)
        (own_cache / name).write_text("nobody else's")
    sources: list[Path] = []
    measured = bundle_make.measured
    monkeypatch.setattr(
        bundle_make, "measured", lambda source: sources.extend(source.files.values()) or measured(source)
    )
    bundle_make.make(tmp_path / "b.tar", REQUEST)
    assert len(sources) > 10
    assert not [
        path
        for path in sources
        for name in ("ssh", "secrets")
        if path.resolve().is_relative_to(own_cache / name)
    ]
    assert b"nobody else's" not in (tmp_path / "b.tar").read_bytes()


@pytest.mark.parametrize("name", ["ssh/id_ed25519", "secrets/weave-password"])
@pytest.mark.parametrize("linked", [False, True])
def test_a_part_that_would_hold_one_is_refused_and_nothing_is_written(
    made, tmp_path, own_cache, monkeypatch, name, linked
):
    secret = own_cache / name
    secret.parent.mkdir(parents=True)
    secret.write_text("nobody else's")
    lies = tmp_path / "link"
    lies.symlink_to(secret)
    monkeypatch.setattr(
        bundle_parts, "history", lambda work: Source("h", "", (), {"bundle/h": lies if linked else secret})
    )
    with pytest.raises(UserError) as error:
        bundle_make.make(tmp_path / "b.tar", REQUEST)
    assert (error.value.where, error.value.seen) == ("bundle/h", str(secret))
    assert not (tmp_path / "b.tar").exists()


def test_every_part_but_the_checkout_lies_below_bundle(made, tmp_path):
    bundle_make.make(tmp_path / "b.tar", REQUEST)
    parts = bundle_verify.read(tmp_path / "b.tar").parts
    assert [
        part.name for part in parts if not all(file.path.startswith("bundle/") for file in part.files)
    ] == ["checkout"]


def test_images_of_several_systems_come_without_the_disks_that_they_are_made_from(made, tmp_path, own_cache):
    (own_cache / "images").mkdir(parents=True, exist_ok=True)
    about = {"sha256": "d" * 64, "bytes": 5, "changed": 1, "origin": "IMAGE="}
    chosen = {"path": str(tmp_path / "secret place" / "flatcar.img"), **about}
    (own_cache / "images/flatcar.disk.json").write_text(json.dumps(chosen))
    out = tmp_path / "b.tar"
    bundle_make.make(out, replace(REQUEST, nodes=("debian", "flatcar")))
    image = bundle_verify.read(out).part("image")
    assert image is not None and image.about.startswith("debian-1, flatcar-1: ")
    assert [file.path for file in image.files] == [
        "bundle/images/debian-1/lxc.json",
        "bundle/images/debian-1/manifest.json",
        "bundle/images/debian-1/overlaylab-lxc.box",
        "bundle/images/debian-1/overlaylab.box",
        "bundle/images/flatcar-1/manifest.json",
        "bundle/images/flatcar-1/overlaylab.box",
        "bundle/images/flatcar.disk.json",
    ]
    with tarfile.open(out) as tar:
        note = json.load(tar.extractfile("overlaylab/bundle/images/flatcar.disk.json"))
    assert note == {"path": "flatcar.img", **about}


def test_a_system_that_the_checkout_does_not_have_is_refused(made, tmp_path, monkeypatch):
    (tmp_path / "more/mine").mkdir(parents=True)
    shutil.copy(systems.DEFINITIONS / "debian/system.yml", tmp_path / "more/mine")
    monkeypatch.setenv("OVERLAYLAB_SYSTEMS", str(tmp_path / "more"))
    with pytest.raises(UserError) as error:
        bundle_make.make(tmp_path / "b.tar", replace(REQUEST, nodes=("mine",)))
    assert str(error.value) == (
        "SYSTEM=mine: must be one of packer/systems, which the bundle carries with the checkout "
        f"(found: {tmp_path / 'more/mine'}). Copy its folder there, and commit it"
    )
