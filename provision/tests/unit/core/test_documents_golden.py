"""Every wrong document in ``golden/<kind>/<case>.yml`` gives exactly the text in ``<case>.error``."""

import shutil
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from overlaylab.core import documents
from overlaylab.core.documents import parse_document
from overlaylab.core.errors import UserError
from overlaylab.specs import overlays
from overlaylab.specs.cluster import check_routes, load_cluster, read_cluster
from overlaylab.specs.drill import read_drill
from overlaylab.specs.inventory import load_inventory
from overlaylab.specs.overlay_ranges import check_ranges
from overlaylab.specs.overlays import read_overlay
from overlaylab.specs.profile import check_zones, load_profile, read_profile
from overlaylab.specs.suite import load_suite, read_suite
from overlaylab.tools import base

GOLDEN = Path(__file__).parents[2] / "golden"
CASES = sorted(p for p in GOLDEN.glob("*/*.yml") if p.parent.name != "right")

# As ``ip -j route show table all`` prints them, on a machine with a VPN and a lab that runs.
ROUTES = [
    {"dst": "default", "gateway": "172.16.9.1", "dev": "wlan0"},
    {"dst": "10.20.0.0/16", "dev": "tun0"},
    {"dst": "192.168.90.0/24", "dev": "virbr9"},
    {"dst": "fe80::/64", "dev": "wlan0"},
]


def zones(path: Path) -> None:
    check_zones(read_profile(path), read_cluster(GOLDEN / "right" / "cluster.yml"))


def ranges(path: Path) -> None:
    check_ranges(read_overlay(path), IPv4Network("192.168.90.0/24"), ROUTES, {"virbr9"})


def drill(path: Path) -> None:
    """With the scripts of the right one."""
    read_drill(GOLDEN / "right" / "drill", path)


def names(path: Path) -> None:
    ((kind, name),) = parse_document(path).data.items()
    {
        "profile": load_profile,
        "cluster": load_cluster,
        "suite": load_suite,
        "tool": base.load,
        "inventory": lambda path: load_inventory(Path(path)),
        "overlay": overlays.load,
        "modes": lambda modes: overlays.select("example", modes),
        "scale": lambda scale: load_suite("quick").scaled(scale),
    }[kind](name)


LOADERS = {
    "cluster": read_cluster,
    "cluster-routes": lambda path: check_routes(read_cluster(path), ROUTES, {"virbr9"}),
    "profile": read_profile,
    "profile-zones": zones,
    "suite": read_suite,
    "drill": drill,
    "overlay": read_overlay,
    "overlay-ranges": ranges,
    "inventory": load_inventory,
    "names": names,
}


@pytest.fixture(autouse=True)
def known_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new tier, cluster or suite must not change these texts."""
    known = {
        "profiles": ("azure-a0", "azure-a1", "none"),
        "clusters": ("pair",),
        "suites": ("quick", "schaaf-2015"),
    }
    monkeypatch.setattr(documents, "names_in", lambda folder: known[folder.name])
    monkeypatch.setattr(base, "names", lambda: ("iperf3", "ping", "qperf"))


@pytest.fixture(autouse=True)
def example_overlay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One overlay, ``example``: which real ones there are must not matter here."""
    meta = tmp_path / "overlay_example" / "meta"
    meta.mkdir(parents=True)
    shutil.copy(GOLDEN / "right" / "overlay.yml", meta / "overlay.yml")
    monkeypatch.setattr(overlays, "FOLDERS", [tmp_path])


@pytest.mark.parametrize("path", CASES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_error(path: Path, golden) -> None:
    with pytest.raises(UserError) as wrong:
        LOADERS[path.parent.name](path)
    golden(path.with_suffix(".error"), f"{wrong.value}\n")


@pytest.mark.parametrize("path", CASES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_error_is_one_paragraph_with_a_next_step(path: Path) -> None:
    with pytest.raises(UserError) as wrong:
        LOADERS[path.parent.name](path)
    assert "\n" not in str(wrong.value)
    assert wrong.value.fix.endswith((".", "?"))
    if path.parent.name != "names":
        assert wrong.value.where.startswith(f"provision/tests/golden/{path.parent.name}/{path.name}")


@pytest.mark.parametrize("kind", ["cluster", "drill", "profile", "suite", "overlay", "inventory"])
def test_the_document_that_the_cases_spoil_is_right(kind: str) -> None:
    LOADERS[kind](GOLDEN / "right" / f"{kind}.yml")


def test_every_error_text_has_its_document() -> None:
    assert {p.with_suffix(".yml") for p in GOLDEN.glob("*/*.error")} == set(CASES)
