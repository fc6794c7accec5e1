"""What is patched in Romana's libraries, tried with the compiler that builds its daemons."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from overlaylab.image import daemon_sources, daemons

FIXTURE = Path(__file__).parents[1] / "fixtures" / "romana" / "watch_test.go"


@pytest.mark.turn("nodes")
def test_a_change_between_read_and_watch_is_seen(tmp_path: Path) -> None:
    """The peer's block, allotted while the agent started, had been missed for good: no route, and no overlay."""
    recipe = daemons.load_recipe("romana")
    environment = daemons.environment(recipe)
    work = tmp_path / "work"
    work.mkdir()
    for pin in ("go.mod", "go.sum"):
        shutil.copy(recipe.folder / pin, work)
    daemon_sources.copy_patched("romana", recipe.patched, work, environment)
    # In place of the library's own tests, which ask for modules that the daemons do without.
    (folder,) = (module.folder for module in recipe.patched if module.module == "github.com/docker/libkv")
    (work / folder / "store/etcd/etcd_test.go").unlink()
    shutil.copy(FIXTURE, work / folder / "store/etcd")
    done = subprocess.run(
        ["go", "test", "-count=1", "github.com/docker/libkv/store/etcd"], cwd=work, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
