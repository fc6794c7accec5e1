"""What is patched in the daemons' sources, tried with the compiler that builds them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from overlaylab.image import daemon_sources, daemons

FIXTURES = Path(__file__).parents[1] / "fixtures"


def run_tests(name: str, package: str, test: str, work: Path) -> subprocess.CompletedProcess[str]:
    """`go test` of a package of a recipe's patched module, with the fixture in place of the package's own tests."""
    recipe = daemons.load_recipe(name)
    environment = daemons.environment(recipe)
    for pin in ("go.mod", "go.sum"):
        shutil.copy(recipe.folder / pin, work)
    daemon_sources.copy_patched(name, recipe.patched, work, environment)
    (patched,) = (module for module in recipe.patched if package.startswith(f"{module.module}/"))
    folder = work / patched.folder / package.removeprefix(f"{patched.module}/")
    # Those ask for modules that the daemons do without.
    for own in folder.glob("*_test.go"):
        own.unlink()
    shutil.copy(FIXTURES / name / test, folder)
    # Without vet, which finds fault with what was published.
    return subprocess.run(
        ["go", "test", "-count=1", "-vet=off", package], cwd=work, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


@pytest.mark.turn("nodes")
@pytest.mark.parametrize(
    ("name", "package", "test"),
    [
        # The peer's block, allotted while the agent started, had been missed for good: no route, and no overlay.
        pytest.param("romana", "github.com/docker/libkv/store/etcd", "watch_test.go", id="a change between read and watch"),
        # A kernel without dummy devices had been none for weaver.
        pytest.param("weave", "github.com/weaveworks/weave/net", "bridge_test.go", id="a kernel without dummies"),
    ],
)  # fmt: skip
def test_what_was_amiss_is_mended(name: str, package: str, test: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    done = run_tests(name, package, test, work)
    assert done.returncode == 0, done.stdout
