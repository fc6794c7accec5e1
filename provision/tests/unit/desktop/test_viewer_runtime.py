"""Which Electron is taken, and what is left of one that could not be made."""

import json
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from overlaylab.core.errors import UserError
from overlaylab.desktop import fallback, modules
from overlaylab.desktop import runtime as viewer_runtime
from overlaylab.desktop.runtime import DownloadError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def electron(own_cache, monkeypatch) -> Path:
    """The folder of the runtimes, on a machine that has the viewer's modules."""
    monkeypatch.setattr(modules, "ensure_modules", lambda: None)
    monkeypatch.setattr(fallback, "fits", lambda: True)
    return own_cache / "electron"


@pytest.fixture
def made(electron, monkeypatch) -> list[str]:
    """What was made, in order; nothing is downloaded. Every current runtime fails while `made` holds "offline"."""
    log: list[str] = []

    def download(runtime, work, folder):
        log.append("download")
        (work / "cache").mkdir()
        if "offline" in log:
            raise DownloadError("fetch failed")
        (folder / "electron").touch()

    def fall_back(folder):
        log.append("fallback")
        (folder / "electron").touch()

    monkeypatch.setattr(viewer_runtime, "download_current", download)
    monkeypatch.setattr(fallback, "make", fall_back)
    return log


def test_current_is_what_the_package_pins(electron):
    pinned = json.loads((viewer_runtime.paths.VIEWER / "package.json").read_text())["devDependencies"][
        "electron"
    ]
    assert viewer_runtime.current().folder == electron / pinned


def test_the_current_one_is_made_once(made, electron):
    first = viewer_runtime.ensure()
    assert (first.kind, first.ready()) == ("current", True)
    assert viewer_runtime.ensure() == first
    assert made == ["download"]
    assert names(electron) == [first.version]


def test_the_fallback_takes_its_place_and_the_failure_is_remembered(made, electron, capsys):
    made.append("offline")
    assert viewer_runtime.ensure().kind == "fallback"
    assert viewer_runtime.ensure().kind == "fallback"
    assert made == ["offline", "download", "fallback"]
    said = " ".join(capsys.readouterr().err.split())
    assert f"Electron {viewer_runtime.current().version} cannot be downloaded here: fetch failed" in said
    assert "the viewer runs in Electron 22.3.25 instead" in said
    assert names(electron) == ["22.3.25", f"{viewer_runtime.current().version}.failed.json"]


def test_a_day_later_the_current_one_is_tried_again(made, electron):
    made.append("offline")
    viewer_runtime.ensure()
    note = electron / f"{viewer_runtime.current().version}.failed.json"
    note.write_text(
        json.dumps({"at": time.time() - viewer_runtime.FORGET_AFTER - 1, "reason": "fetch failed"})
    )
    made[:] = []
    assert viewer_runtime.ensure().kind == "current"


@pytest.mark.parametrize(
    "note", ["", "[]", '{"at": "x", "reason": ""}', '{"at": 99999999999, "reason": "later"}']
)
def test_a_note_that_says_nothing_stops_nobody(made, electron, note):
    electron.mkdir(parents=True)
    (electron / f"{viewer_runtime.current().version}.failed.json").write_text(note)
    assert viewer_runtime.ensure().kind == "current"


def test_asked_for_the_current_one_no_other_is_taken(made):
    made.append("offline")
    with pytest.raises(UserError) as error:
        viewer_runtime.ensure("current")
    assert str(error.value.seen) == "fetch failed"
    assert "leave RUNTIME out" in error.value.fix
    assert made == ["offline", "download"]


def test_asked_for_the_fallback_nothing_else_is_tried(made):
    assert viewer_runtime.ensure("fallback").kind == "fallback"
    assert made == ["fallback"]


def test_an_unknown_kind_is_a_mistake(made):
    with pytest.raises(UserError) as error:
        viewer_runtime.ensure("newest")
    assert (error.value.where, error.value.seen) == ("RUNTIME", "newest")


def test_another_processor_has_no_fallback(made, monkeypatch):
    monkeypatch.setattr(fallback, "fits", lambda: False)
    made.append("offline")
    with pytest.raises(UserError) as error:
        viewer_runtime.ensure()
    assert error.value.rule == "must be Electron's own on this processor"


def test_interrupted_nothing_half_made_is_left(electron, made, monkeypatch):
    def interrupted(folder):
        (folder / "electron").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(fallback, "make", interrupted)
    with pytest.raises(KeyboardInterrupt):
        viewer_runtime.ensure("fallback")
    assert names(electron) == []


def test_what_a_killed_command_left_goes(made, electron):
    (electron / ".new-killed" / "runtime").mkdir(parents=True)
    viewer_runtime.ensure()
    assert not (electron / ".new-killed").exists()


@pytest.fixture
def installer(electron, monkeypatch, tmp_path):
    """installer(shell text) makes that text what node runs instead of the package's install.js; the work folder."""
    viewer = tmp_path / "viewer"
    (viewer / "node_modules" / "electron").mkdir(parents=True)
    monkeypatch.setattr(viewer_runtime.paths, "VIEWER", viewer)
    electron.mkdir(parents=True)
    work = tmp_path / "work"
    (work / "runtime").mkdir(parents=True)

    def use(text: str) -> Path:
        node = tmp_path / "node"
        node.write_text(f"#!/bin/sh\npackage=$(dirname $1)\n{text}\n")
        node.chmod(0o755)
        monkeypatch.setattr(modules, "node", lambda: str(node))
        return work

    return use


RUNTIME = viewer_runtime.Runtime("current", "1.2.3", Path("/nowhere"))


def test_what_the_package_unpacked_is_moved_out_of_the_modules(installer):
    work = installer(
        "mkdir $package/dist && echo code >$package/dist/electron && echo electron >$package/path.txt"
    )
    viewer_runtime.download_current(RUNTIME, work, work / "runtime")
    assert (work / "runtime" / "electron").read_text() == "code\n"
    assert names(viewer_runtime.paths.VIEWER / "node_modules" / "electron") == []


@pytest.mark.parametrize(("proxy", "told"), [("http://127.0.0.1:9", "true"), ("", "")])
def test_a_proxy_is_heeded(installer, monkeypatch, proxy, told):
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ELECTRON_GET_USE_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", proxy)
    work = installer(
        "mkdir $package/dist && printf '%s' \"${ELECTRON_GET_USE_PROXY:-}\" >$package/dist/electron"
    )
    viewer_runtime.download_current(RUNTIME, work, work / "runtime")
    assert (work / "runtime" / "electron").read_text() == told


def test_the_packages_own_words_are_the_reason(installer):
    work = installer(
        "mkdir $package/dist; echo 'node:internal:77' >&2; echo 'TypeError: fetch failed' >&2; echo '   at install.js:1' >&2; exit 1"
    )
    with pytest.raises(DownloadError, match=r"^TypeError: fetch failed$"):
        viewer_runtime.download_current(RUNTIME, work, work / "runtime")
    assert names(viewer_runtime.paths.VIEWER / "node_modules" / "electron") == []


def test_a_download_without_a_byte_is_given_up(installer, monkeypatch):
    started = []

    def popen(*arguments, **options):
        started.append(subprocess.Popen(*arguments, **options))
        return started[0]

    monkeypatch.setattr(viewer_runtime, "STALLED", 0.0)
    monkeypatch.setattr(viewer_runtime, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": popen}))
    work = installer("exec sleep 1000")
    with pytest.raises(DownloadError, match="nothing came"):
        viewer_runtime.download_current(RUNTIME, work, work / "runtime")
    assert started[0].returncode == -signal.SIGKILL
