"""The viewer as somebody installs it: packages, modules, Electron, build, and the app folder that is made of it."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from overlaylab.core import paths
from overlaylab.desktop import modules
from overlaylab.store.store import Store


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that other users can enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.turn("nodes")
def test_the_packaged_app_runs_from_any_place_without_node(lab, shared: Path) -> None:
    temporary = shared / "temporary"
    temporary.mkdir(mode=0o777)
    temporary.chmod(0o777)
    lab.environment["TMPDIR"] = str(temporary)
    program = shared / "made" / "overlaylab-viewer"
    assert str(program) in lab.run("viewer:package", f"OUT={program.parent}").splitlines()
    # electron-builder's reader of settings had left one.
    assert list(temporary.glob("jiti*")) == []
    elsewhere = shared / "copied to here"
    (shared / "made").rename(elsewhere)
    Store.open(shared / "lab.sqlite").close()

    done = subprocess.run(
        [paths.PROVISION / "bin" / "lab", "viewer", "as-user", "--", "node",
         paths.VIEWER / "test" / "runtime" / "packaged.mjs", elsewhere / program.name, shared / "lab.sqlite"],
        env=lab.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=120, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["title"] == "lab.sqlite – overlaylab"
    version = json.loads((paths.VIEWER / "package.json").read_text())["version"]
    commit = modules.commit()
    assert commit and told["about"].startswith(f"overlaylab {version} ({commit}), Electron ")


def test_without_a_screen_the_viewer_says_what_to_do(lab) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        lab.environment.pop(name, None)
    said = " ".join(lab.run("view", code=2).split())
    assert "viewer: must have a screen (found: neither DISPLAY nor WAYLAND_DISPLAY is set)" in said
