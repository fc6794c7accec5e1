"""The kit's definition: what overlays and tools call is in it; its key; a manifest that is none."""

import json
import re
from pathlib import Path

import pytest

from overlaylab.core.errors import UserError
from overlaylab.core.paths import NODE_HOME, ROLES
from overlaylab.image import kit, package_lock
from overlaylab.specs import overlays
from overlaylab.tools import base as tools

# What a node's own system has to have: systemd, and Docker for the overlays that rest on it.
OF_THE_SYSTEM = {"systemctl", "dockerd", "containerd", "runc", "docker-proxy"}


def in_the_kit(command: str) -> bool:
    return command.removeprefix(f"{NODE_HOME}/bin/") in kit.programs()


@pytest.mark.parametrize("name", overlays.names())
def test_what_an_overlay_calls_is_in_the_kit_or_is_asked_of_the_system(name: str) -> None:
    overlay = overlays.load(name)
    wanted = {*overlay.needs.commands, *(c for mode in overlay.modes.values() for c in mode.commands)}
    assert {command for command in wanted if not in_the_kit(command)} <= OF_THE_SYSTEM


def test_what_the_tools_are_is_in_the_kit() -> None:
    assert all(in_the_kit(tools.load(name).version_argv()[0]) for name in tools.names())


def test_programs_that_scripts_name_by_the_kits_path_are_in_it() -> None:
    named = {
        found
        for path in ROLES.rglob("*")
        if path.is_file() and "README" not in path.name
        for found in re.findall(rf"{NODE_HOME}/bin/([\w/-]+\w)", path.read_text(errors="replace"))
    }
    assert {"bird", "birdc", "etcd", "python3"} <= named
    assert named - {"cni"} <= kit.programs()


def test_every_version_is_asked_of_a_program_that_is_there() -> None:
    assert {argv[0] for argv in kit.spec().data["versions"].values()} <= kit.programs()


def test_names_are_found_once() -> None:
    names = [name for part in kit.parts(kit.spec()) for name in part.programs]
    assert len(names) == len(set(names))
    files = [
        part.prefix + name.rpartition("/")[2] for part in kit.parts(kit.spec()) for name in part.programs
    ]
    assert len(files) == len(set(files))


def test_the_lock_has_all_packages_of_the_definition() -> None:
    locked = {package.name for package in package_lock.read(kit.DEFINITION / kit.LOCK)}
    asked = {name for part in kit.parts(kit.spec()) for name in part.packages}
    assert asked | {kit.spec().data["compiler"]} <= locked


@pytest.fixture
def definition(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "definition"
    folder.mkdir()
    for name in (kit.SPEC, kit.LAUNCHER, kit.SCRIPT, kit.LOCK):
        (folder / name).write_bytes((kit.DEFINITION / name).read_bytes())
    monkeypatch.setattr(kit, "DEFINITION", folder)
    return folder


@pytest.mark.parametrize("name", [kit.SPEC, kit.LAUNCHER, kit.SCRIPT, kit.LOCK])
def test_everything_that_goes_in_changes_the_key(definition: Path, name: str) -> None:
    before = kit.key()
    with (definition / name).open("a") as file:
        file.write("\n# more\n")
    assert kit.key() != before


def test_a_manifest_that_is_none_is_told_with_what_to_do(definition: Path) -> None:
    assert kit.cached() is None
    kit.folder().mkdir(parents=True)
    (kit.folder() / kit.MANIFEST).write_text(json.dumps({"digest": "d1"}))
    with pytest.raises(UserError, match=r"must be the manifest that kit:build wrote.*Remove the folder"):
        kit.cached()


def test_strict_refuses_packages_that_mirrors_dropped(
    definition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def run(argv: list[str], log: Path, environment: dict[str, str], **_: object) -> None:
        folder = Path(argv[2])
        asked.append("locked" if (folder / "preferences").exists() else "today's")
        asked[-1] += " with snapshots" if (folder / "snapshots.sources").exists() else ""
        log.write_text("E: Unable to correct problems, you have held broken packages.\n")
        raise UserError("image:build", "must succeed", fix="")

    monkeypatch.setattr(kit, "_preflight", lambda: None)
    monkeypatch.setattr(kit.process, "run", run)
    monkeypatch.setattr(package_lock, "LISTS", kit.folder())
    with pytest.raises(UserError, match="must be those of the lock, as LOCK=strict asks"):
        kit.ensure(package_lock.policy("strict", "http://127.0.0.1/@SNAPSHOTID@"))
    assert asked == ["locked", "locked with snapshots"]
    asked.clear()
    with pytest.raises(UserError, match="must succeed"):
        kit.ensure()
    assert asked == ["locked", "today's"]
    assert not list(kit.folder().parent.glob(".building-*"))
