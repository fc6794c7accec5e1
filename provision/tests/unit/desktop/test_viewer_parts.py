"""The screen, the database, the package and the doctor's rows of the viewer, each on its own."""

import json
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from overlaylab.core.errors import UserError
from overlaylab.desktop import checks, database, fallback, modules, package, screen, start
from overlaylab.desktop import runtime as viewer_runtime
from overlaylab.desktop import user as viewer_user
from overlaylab.desktop.runtime import Runtime
from overlaylab.desktop.user import User
from overlaylab.machine import packages
from overlaylab.report import viewer_file
from overlaylab.store.store import Store

OWN = User(os.getuid(), os.getgid(), "operator")


def test_a_screens_key_fits_any_address_and_display():
    assert screen._entry(b"0123456789abcdef") == (
        b"\xff\xff" b"\0\0" b"\0\0" b"\0\x12MIT-MAGIC-COOKIE-1" b"\0\x100123456789abcdef"
    )  # fmt: skip


def test_links_are_not_taken_along(tmp_path):
    out, keep = tmp_path / "out", tmp_path / "keep"
    (out / "overview").mkdir(parents=True)
    (out / "overview" / "dark.png").write_text("picture")
    (out / "passwd").symlink_to("/etc/passwd")
    screen._take(out, keep)
    assert [str(path.relative_to(keep)) for path in keep.rglob("*")] == ["overview", "overview/dark.png"]


@pytest.fixture
def results(tmp_path, own_cache, monkeypatch) -> Path:
    """The results database, of the first schema."""
    folder = tmp_path / "results"
    folder.mkdir()
    first = sorted(database.paths.DB.glob("migrations/0001*.sql"))[0]
    for path in (folder / "lab.sqlite", tmp_path / "elsewhere.sqlite"):
        with sqlite3.connect(path) as db:
            db.executescript(first.read_text() + "PRAGMA user_version = 1;")
        db.close()
    monkeypatch.setenv("LAB_DB", str(folder / "lab.sqlite"))
    return folder / "lab.sqlite"


def version(path: Path) -> int:
    with sqlite3.connect(path) as db:
        found = db.execute("PRAGMA user_version").fetchone()[0]
    db.close()
    return found


def test_our_results_are_brought_to_the_newest_schema(results):
    viewer_file.make_current(results)
    with Store.open(results.parent / "new.sqlite") as store:
        assert version(results) == store.db.execute("PRAGMA user_version").fetchone()[0] > 1


def test_without_lab_db_what_lies_beside_the_results_is_ours_too(results, monkeypatch, tmp_path):
    monkeypatch.delenv("LAB_DB")
    monkeypatch.setattr(database.paths, "ROOT", tmp_path)
    beside = results.with_name("other.sqlite")
    beside.touch()
    assert [database.is_own(path) for path in (results, beside, tmp_path / "elsewhere.sqlite")] == [
        True,
        True,
        False,
    ]
    monkeypatch.setenv("LAB_DB", str(results))
    assert [database.is_own(path) for path in (results, beside)] == [True, False]


def test_a_file_elsewhere_is_only_looked_at(results, tmp_path):
    viewer_file.make_current(tmp_path / "elsewhere.sqlite")
    assert version(tmp_path / "elsewhere.sqlite") == 1


def test_what_is_wrong_with_a_file_is_said_and_the_viewer_still_starts(results, capsys):
    results.write_text("no database")
    viewer_file.make_current(results)
    assert str(results) in "".join(capsys.readouterr().err.split())


@pytest.fixture
def builder(monkeypatch):
    """electron-builder as a stand-in, and the runtime that it was given."""

    def run(arguments, *, environment):
        assert environment["PATH"].endswith(os.environ["PATH"])
        output = next(word.partition("=")[2] for word in arguments if "directories.output" in word)
        made = Path(output) / "linux-unpacked"
        (made / "resources").mkdir(parents=True)
        (made / "resources" / "default_app.asar").touch()
        (made / "resources" / "app.asar").touch()
        (made / package.PROGRAM).write_text(" ".join(arguments[-2:]))

    monkeypatch.setattr(modules, "run_node", run)
    monkeypatch.setattr(modules, "npm", lambda: "npm-cli.js")
    return Runtime("fallback", "22.3.25", Path("/cache/electron/22.3.25"))


def test_a_package_is_our_app_in_that_runtime_and_replaces_an_older_one(builder, tmp_path):
    out = tmp_path / "new" / "viewer"
    for _ in range(2):
        program = package.package(out, builder)
    assert (
        program.read_text()
        == "--config.electronDist=/cache/electron/22.3.25 --config.electronVersion=22.3.25"
    )
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*")) == [
        "overlaylab-viewer",
        "resources",
        "resources/app.asar",
    ]
    assert [path.name for path in out.parent.iterdir()] == ["viewer"]


def test_a_folder_of_something_else_is_not_replaced(builder, tmp_path):
    (tmp_path / "letters").touch()
    with pytest.raises(UserError) as error:
        package.package(tmp_path, builder)
    assert error.value.where == f"OUT={tmp_path}"
    assert (tmp_path / "letters").exists()


def test_a_package_that_failed_leaves_the_older_one(builder, tmp_path, monkeypatch):
    package.package(tmp_path / "viewer", builder)

    def fail(arguments, *, environment):
        raise subprocess.CalledProcessError(1, arguments)

    monkeypatch.setattr(modules, "run_node", fail)
    with pytest.raises(UserError, match="electron-builder: must succeed"):
        package.package(tmp_path / "viewer", builder)
    assert [path.name for path in tmp_path.iterdir()] == ["viewer"]
    assert (tmp_path / "viewer" / "overlaylab-viewer").is_file()


@pytest.fixture
def machine(own_cache, monkeypatch):
    """A machine with apt, whose missing packages machine holds, and no screen."""
    missing: list[str] = []
    monkeypatch.setattr(packages, "missing", lambda groups, alone: missing)
    monkeypatch.setattr(packages, "uses_apt", lambda: True)
    monkeypatch.setattr(fallback, "fits", lambda: True)
    monkeypatch.setattr(viewer_user, "viewing", lambda: OWN)
    monkeypatch.setattr(start, "sandbox_problem", lambda user, folder: None)
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    return missing


def told() -> dict[str, tuple[str, str]]:
    return {check.name.removeprefix("viewer: "): (check.state, check.found) for check in checks.all_checks()}


def test_before_the_first_start_doctor_says_what_that_will_do(machine):
    machine.append("libgtk-3-0")
    pinned = viewer_runtime.current().version
    assert told() == {
        "packages": ("ok", "the first `./task view` installs libgtk-3-0"),
        "Electron": ("ok", f"{pinned} is not there yet: the first `./task view` downloads it, if it can"),
        "fallback": ("ok", "Electron 22.3.25 comes from the package index where the other cannot be had"),
        "sandbox": ("ok", "works"),
        "screen": (
            "ok",
            "neither DISPLAY nor WAYLAND_DISPLAY is set: `./task view` needs one, `./task results:report` does not",
        ),
    }


def test_afterwards_doctor_says_what_is_there(machine, own_cache, monkeypatch):
    for runtime in (viewer_runtime.current(), viewer_runtime.fallback()):
        runtime.folder.mkdir(parents=True)
        runtime.program.touch()
    monkeypatch.setenv("DISPLAY", "/private/tmp/org.xquartz:0")
    found = told()
    assert found["packages"] == ("ok", "all there")
    assert found["Electron"] == ("ok", f"{viewer_runtime.current().version} is there")
    assert found["fallback"] == ("ok", "Electron 22.3.25 is there")
    assert found["screen"] == ("ok", "/private/tmp/org.xquartz:0")


def test_doctor_tells_of_a_failed_download(machine, own_cache, monkeypatch):
    pinned = viewer_runtime.current().version
    (own_cache / "electron").mkdir(parents=True)
    note = {"at": 1000.0, "reason": "TypeError: fetch failed"}
    (own_cache / "electron" / f"{pinned}.failed.json").write_text(json.dumps(note))
    monkeypatch.setattr(viewer_runtime.time, "time", lambda: 1600.0)
    assert told()["Electron"] == (
        "ok",
        f"{pinned} could not be downloaded 10 min 00 s ago: TypeError: fetch failed",
    )


def test_a_system_that_forbids_the_sandbox_is_a_drawback_with_a_way_out(machine, monkeypatch):
    monkeypatch.setattr(start, "sandbox_problem", lambda user, folder: "no user namespaces")
    (check,) = [check for check in checks.all_checks() if check.name == "viewer: sandbox"]
    assert (check.state, check.found) == ("warning", "no user namespaces")
    assert check.advice.startswith("the viewer cannot start. Give the sandbox its helper")
