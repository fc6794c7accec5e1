"""What is installed and built again, and what is not."""

import shutil
import subprocess
from pathlib import Path

import pytest
from lab_bundle import flip, manifest

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.desktop import modules
from overlaylab.image import bundle_parts
from overlaylab.machine import bundle_manifest


@pytest.fixture
def checkout(own_cache, monkeypatch, tmp_path) -> Path:
    """A checkout with a viewer of two files and one migration, whose node does what npm and build.mjs would."""
    viewer, db = tmp_path / "viewer", tmp_path / "db"
    (viewer / "src" / "generated").mkdir(parents=True)
    (db / "migrations").mkdir(parents=True)
    (viewer / "package-lock.json").write_text("{}")
    (viewer / "src" / "main.ts").write_text("main")
    (db / "migrations" / "0001_tables.sql").write_text("CREATE")
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "VIEWER", viewer)
    monkeypatch.setattr(paths, "DB", db)
    for name, path in {
        "LOCK": "package-lock.json", "MODULES": "node_modules", "BUILT": "dist", "GENERATED": "src/generated", "UNPACKED": "unpacked",
    }.items():  # fmt: skip
        monkeypatch.setattr(modules, name, viewer / path)
    monkeypatch.setattr(modules, "npm", lambda: "npm-cli.js")
    monkeypatch.setattr(modules, "commit", lambda: "abc")
    return viewer


@pytest.fixture
def ran(checkout, monkeypatch) -> list[str]:
    """What node was given to run; it fails while this holds "broken"."""
    log: list[str] = []

    def run(arguments, *, environment=None, folder=None):
        log.append(arguments[0])
        if "broken" in log:
            raise subprocess.CalledProcessError(7, arguments)
        made = checkout / ("dist" if arguments[0] == "build.mjs" else "node_modules")
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
        (checkout / "src" / "generated" / "schema.json").write_text(f"{len(log)}")

    monkeypatch.setattr(modules, "run_node", run)
    return log


def test_modules_are_installed_when_the_lock_changes_and_not_again(checkout, ran):
    modules.ensure_modules()
    modules.ensure_modules()
    assert ran == ["npm-cli.js"]
    (checkout / "package-lock.json").write_text('{"lockfileVersion": 3}')
    modules.ensure_modules()
    assert ran == ["npm-cli.js", "npm-cli.js"]


def test_a_failed_install_is_said_and_tried_again(checkout, ran):
    ran.append("broken")
    with pytest.raises(UserError) as error:
        modules.ensure_modules()
    assert (error.value.where, error.value.seen) == ("npm ci in viewer/", "exit code 7, its output is above")
    ran.remove("broken")
    modules.ensure_modules()
    assert ran == ["npm-cli.js", "npm-cli.js"]


@pytest.mark.parametrize(
    "name",
    [
        "viewer/src/main.ts",
        "viewer/src/new.ts",
        "viewer/src/renderer/features/time/queries/time_points.sql",
        "viewer/build.mjs",
        "db/migrations/0001_tables.sql",
    ],
)
def test_a_changed_source_is_built(checkout, ran, tmp_path, name):
    modules.ensure_build()
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("changed")
    modules.ensure_build()
    assert ran == ["build.mjs", "build.mjs"]


@pytest.mark.parametrize(
    "name",
    [
        "viewer/test/unit/new.test.ts",
        "viewer/src/renderer/features/time/test/time.test.ts",
        "viewer/src/generated/schema.json",
        "db/README.md",
    ],
)
def test_what_the_build_does_not_read_is_not(checkout, ran, tmp_path, name):
    modules.ensure_build()
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("changed")
    modules.ensure_build()
    assert ran == ["build.mjs"]


def test_another_commit_is_built_because_the_build_tells_it(ran, monkeypatch):
    modules.ensure_build()
    monkeypatch.setattr(modules, "commit", lambda: "def")
    modules.ensure_build()
    assert ran == ["build.mjs", "build.mjs"]


def test_a_build_that_failed_is_not_taken_for_one(checkout, ran):
    modules.ensure_build()
    (checkout / "src" / "main.ts").write_text("mistake")
    ran.append("broken")
    with pytest.raises(UserError) as error:
        modules.ensure_build()
    assert error.value.where == "viewer/build.mjs"
    (checkout / "src" / "main.ts").write_text("main")
    ran.remove("broken")
    modules.ensure_build()
    assert ran == ["build.mjs"] * 3


def test_the_build_of_a_bundle_is_checked_before_it_is_taken(checkout, ran, tmp_path):
    (tmp_path / "work").mkdir()
    source = bundle_parts.viewer(tmp_path / "work")
    ((path, lies),) = source.files.items()
    assert path.startswith("bundle/viewer/")
    (tmp_path / path).parent.mkdir(parents=True)
    shutil.copy(lies, tmp_path / path)
    (tmp_path / bundle_manifest.NAME).write_text(bundle_manifest.to_json(manifest([source])))
    shutil.rmtree(checkout / "dist")
    (checkout / "src/generated/schema.json").unlink()
    ran.clear()

    flip(tmp_path / path, 100)
    with pytest.raises(UserError, match=f"{path}: must have the SHA-256"):
        modules.ensure_build()
    assert not (checkout / "dist").exists()
    flip(tmp_path / path, 100)
    for _ in range(2):
        modules.ensure_build()
    assert (ran, (checkout / "src/generated/schema.json").read_text()) == ([], "2")
    assert sorted(path.name for path in checkout.iterdir()) == [
        "dist",
        "node_modules",
        "package-lock.json",
        "src",
    ]
    (checkout / "src/main.ts").write_text("its user's own")
    modules.ensure_build()
    assert ran == ["build.mjs"]


def test_npm_is_found_beside_the_node_that_is_in_the_path(monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "node").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "node").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert modules.npm() == f"{tmp_path}/lib/node_modules/npm/bin/npm-cli.js"
