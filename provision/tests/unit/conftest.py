"""What all unit tests have: fixtures, and each other's parts, whichever package's folder they lie in."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from lab_scripts import script

from overlaylab.core import paths
from overlaylab.core.paths import ROLES, ROOT
from overlaylab.machine import bundle_source, ready
from overlaylab.providers import choice
from overlaylab.specs import routes
from overlaylab.store.store import Store

sys.path += [str(folder) for folder in sorted(Path(__file__).parent.iterdir()) if folder.is_dir()]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Whatever has a namespace for a node (lab_builders.namespace) takes root."""
    if "node" in getattr(item, "fixturenames", ()) and hasattr(getattr(item, "module", None), "namespace"):
        item.add_marker("root")


@pytest.fixture(autouse=True)
def no_bundle_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a bundle lies beside is for a test to say, also where the tests themselves came out of one."""
    lies = bundle_source.present
    monkeypatch.setattr(bundle_source, "present", lambda: paths.ROOT != ROOT and lies())


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that is this test's own."""
    folder = tmp_path / "overlaylab-test"
    monkeypatch.setenv("OVERLAYLAB_CACHE", str(folder))
    return folder


@pytest.fixture
def lab_store(tmp_path: Path, own_cache: Path):
    """An empty results database; estimates go to a cache of this test's own."""
    with Store.open(tmp_path / "lab.sqlite") as opened:
        yield opened


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The node's docker_engine.py, with its files in a folder of this test's own."""
    module = script(ROLES / "overlay_bridge" / "files" / "docker_engine.py")
    monkeypatch.setitem(sys.modules, "docker_engine", module)
    for name in ("SETTINGS", "CONTAINER"):
        monkeypatch.setattr(module, name, str(tmp_path / name.lower()))
    return module


VARIABLES = [
    "OVERLAY",
    "MODES",
    "ARGUMENTS",
    "PROFILE",
    "PROFILES",
    "GROUP",
    "CLUSTER",
    "INVENTORY",
    "SUITE",
    "BLOCKS",
    "SCALE",
    "SEED",
    "DRY_RUN",
    "RUN",
    "KEEP_CACHE",
]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, own_cache, tmp_path) -> None:
    """A machine without KVM and without routes of its own, whose caller has typed nothing."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LAB_DB", str(tmp_path / "results" / "lab.sqlite"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(ready, "accelerator", lambda: "tcg")
    monkeypatch.setattr(choice, "choose", lambda asked, *_: (asked or "libvirt", "provider: as typed"))
    monkeypatch.setattr(routes, "known", list)
