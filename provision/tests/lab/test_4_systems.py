"""Systems that cannot be had on a test machine, by stand-ins that are named as such: images, first boot, kit, overlays."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from lab_archive import SUITE, Archive

from overlaylab.core import lock, paths
from overlaylab.image import base, package_lock, systems
from overlaylab.providers import registry

MAKER = Path(__file__).parent.parent / "support" / "foreign_disk.sh"
FOREIGN = """title: "Stand-in: Debian with {what}"
id: debian
release: "12"
run: this test
image:
  configured_by: {what}
"""


@pytest.fixture
def folder():
    """Where an ordinary user's builder may look: pytest's own folders are private."""
    with tempfile.TemporaryDirectory(prefix="stand-in-", dir=paths.cache()) as text:
        folder = Path(text)
        folder.chmod(0o755)
        yield folder
    # No other test has a definition of what they are.
    with lock.cluster_lock("pair", "a test"):
        asyncio.run(registry.remove("libvirt", "pair", print))
    for left in (paths.cache() / "images").glob("stand-in-*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()


def built(lab, name: str) -> dict:
    lab.run("image:build", seconds=1800)
    (manifest,) = (paths.cache() / "images").glob(f"{name}-*/manifest.json")
    return json.loads(manifest.read_text())


def are_proven(lab, name: str, overlays: dict[str, str]) -> None:
    """Each overlay, on VMs, with evidence that the packets went its way."""
    for overlay, mode in overlays.items():
        lab.environment |= {"MODES": mode, "BLOCKS": "1", "PROFILE": "none", "PROVIDER": "libvirt"}
        lab.run(f"lab:{overlay}", seconds=1800)
    assert {row[0] for row in lab.query("SELECT system FROM run")} == {name}
    trials = lab.query("SELECT DISTINCT overlay, mode, status, reason FROM trial ORDER BY overlay")
    assert set(trials) == {("host", None, "ok", None)} | {(o, m, "ok", None) for o, m in overlays.items()}


@pytest.mark.turn("systems", rare=True)
def test_ubuntus_definition_builds_and_boots_from_an_archive(lab_in, folder) -> None:
    """Debian's packages under the names that Ubuntu's definition asks for."""
    archive = Archive(folder / "archive")
    archive.download(f"{p.name}={p.version}" for p in package_lock.read(systems.load("debian").lock))
    archive.stand_in({"linux-image-generic": "linux-image-cloud-amd64"})
    archive.publish()
    name = "stand-in-ubuntu"
    text = (systems.DEFINITIONS / "ubuntu" / systems.FILE).read_text()
    for was, now in (
        ("title: Ubuntu 24.04", "title: Stand-in for Ubuntu, of Debian's packages"),
        ("id: ubuntu", "id: debian"),
        ('release: "24.04"', 'release: "12"'),
        ("suite: noble", f"suite: {SUITE}"),
        ("components: [main, universe]", "components: [main]"),
    ):
        assert was in text
        text = text.replace(was, now)
    (folder / "systems" / name).mkdir(parents=True)
    (folder / "systems" / name / systems.FILE).write_text(text)
    lab = lab_in(SYSTEM=name, OVERLAYLAB_SYSTEMS=str(folder / "systems"), ARCHIVE=str(archive.sources))
    manifest = built(lab, name)
    assert manifest["locked"]["linux-image-generic"] == "1"
    assert manifest["modules_missing"] == [] and manifest["tools"]["docker"]
    are_proven(lab, name, {"weave": "fastdp"})


@pytest.mark.parametrize(
    ("what", "overlays"),
    [("cloud-init", {"flannel": "vxlan"}), ("ignition", {"weave": "fastdp", "flannel": "vxlan"})],
    ids=["cloud-init", "ignition"],
)
@pytest.mark.turn("systems", rare=True)
def test_a_foreign_disk_becomes_a_node(lab_in, folder, what: str, overlays: dict[str, str]) -> None:
    name = f"stand-in-{what}"
    made = folder / "made"
    made.mkdir()
    subprocess.run(["sh", MAKER, made, what, base.SCRIPTS], check=True)
    (folder / "systems" / name).mkdir(parents=True)
    definition = folder / "systems" / name / systems.FILE
    definition.write_text(FOREIGN.format(what=what))
    if what == "ignition":
        with definition.open("a") as file:
            file.write("  firmware_name: opt/com.coreos/config\n")
        shutil.copy(systems.DEFINITIONS / "fedora-coreos" / "node.bu", definition.parent)
    lab = lab_in(SYSTEM=name, OVERLAYLAB_SYSTEMS=str(folder / "systems"), IMAGE=str(made / "disk.raw"))
    manifest = built(lab, name)
    assert manifest["disk"]["from"] == "IMAGE="
    assert "docker" not in manifest["tools"] and manifest["tools"]["python"] == "Python 3.11.2"
    are_proven(lab, name, overlays)
