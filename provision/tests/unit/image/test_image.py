"""Key, manifest and errors of the node image; no build."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lab_builders import runs

from overlaylab.cli.commands.image import describe
from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.image import base, boxes, node_image, process, systems
from overlaylab.machine import ssh_keys

MANIFEST = {
    "format": 2,
    "system": "debian",
    "key": "5d67d1a1bfcd",
    "box": {"file": "overlaylab.box", "sha256": "b941c8", "bytes": 293_000_000},
    "built_at": "2026-11-20T13:39:14+00:00",
    "build_seconds": 100.2,
    "accelerator": "tcg",
    "git_commit": None,
    "os": "Debian GNU/Linux 12 (bookworm)",
    "kernel": "6.1.0-56-cloud-amd64",
    "modules": ["sch_netem", "vxlan"],
    "tools": {"tc": "tc utility, iproute2-6.1.0", "iperf3": "iperf 3.12"},
    "packages": {"iperf3": "3.12-1"},
}


@pytest.fixture
def definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of packer/, and a cache folder that is this test's own."""
    copy = tmp_path / "packer"
    shutil.copytree(node_image.PACKER, copy)
    monkeypatch.setattr(node_image, "PACKER", copy)
    monkeypatch.setattr(systems, "DEFINITIONS", copy / "systems")
    made = tmp_path / "kit.tar.gz"
    made.write_bytes(b"the kit")
    monkeypatch.setattr(
        node_image.kit,
        "ensure",
        lambda rules: node_image.kit.Kit(made, "", "d1", "amd64", {}, ("iperf3 3.13 in place of 3.12",), {}),
    )
    monkeypatch.setenv("OVERLAYLAB_CACHE", str(tmp_path / "cache"))
    return copy


def test_key_is_a_digest_and_stays(definition: Path) -> None:
    first = node_image.image_key("debian")
    assert len(bytes.fromhex(first)) == 32
    assert node_image.image_key("debian") == first


@pytest.mark.parametrize(
    "name",
    [
        "lab.pkr.hcl",
        "box.rb",
        "scripts/keys.sh",
        "scripts/services.sh",
        "scripts/test.sh",
        "systems/debian/system.yml",
        "systems/debian/packages.lock",
        "base/base.sh",
        "base/configure.sh",
    ],
)
def test_key_changes_with_every_input(definition: Path, name: str) -> None:
    before = node_image.image_key("debian")
    with (definition / name).open("a") as file:
        file.write("\n")
    assert node_image.image_key("debian") != before


def test_key_changes_with_a_new_script(definition: Path) -> None:
    before = node_image.image_key("debian")
    (definition / "scripts" / "more.sh").write_text("")
    assert node_image.image_key("debian") != before


def test_key_changes_when_content_moves_between_files(definition: Path) -> None:
    (definition / "scripts" / "a.sh").write_text("xy")
    (definition / "scripts" / "b.sh").write_text("")
    before = node_image.image_key("debian")
    (definition / "scripts" / "a.sh").write_text("x")
    (definition / "scripts" / "b.sh").write_text("y")
    assert node_image.image_key("debian") != before


def test_two_users_with_keys_of_their_own_ask_for_the_same_image(
    definition: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for user in ("one", "two"):
        monkeypatch.setenv("OVERLAYLAB_CACHE", str(tmp_path / user))
        found[ssh_keys.public(ssh_keys.ensure())] = node_image.image_key("debian")
    assert len(found) == 2
    assert len(set(found.values())) == 1


def test_whose_image_it_is_needs_no_key_to_tell(definition: Path) -> None:
    node_image.image_key("debian")
    assert not (paths.cache() / "ssh").exists()


def fake_build(monkeypatch: pytest.MonkeyPatch, disk) -> list[tuple[list[str], dict[str, str]]]:
    """Builds without their programs; disk(private key file, public key) is what the box's disk holds. The calls."""
    calls: list[tuple[list[str], dict[str, str]]] = []
    contents: list[bytes] = []

    def run(argv, log, environment, **_) -> None:
        calls.append((list(argv), dict(environment)))
        if argv[0] != "packer":
            made = Path(argv[2])
            (made / base.DISK).touch()
            (made / base.ROOT_DIGEST).write_text("ab12\n")
            (made / base.PACKAGES).write_text(f"zstd 1.5 amd64 {'0' * 64}\n")
            return
        given = dict(word.split("=", 1) for word in argv if "=" in word and not word.startswith("-"))
        out = Path(given["output_directory"])
        out.mkdir()
        contents.append(disk(Path(given["private_key_file"]), given["public_key"]))
        (out / "report.json").write_text("{}")

    def make(disk: Path, vagrantfile: Path, target: Path, work: Path) -> None:
        boxes.write_box({"metadata.json": b"{}", "box.img": contents[-1]}, target)

    monkeypatch.setattr(node_image.boxes, "make", make)
    monkeypatch.setattr(node_image, "_preflight", lambda system: None)
    monkeypatch.setattr(node_image.ready, "accelerator", lambda: "tcg")
    monkeypatch.setattr(node_image.process, "run", run)
    return calls


@pytest.mark.parametrize(
    ("left", "seen"),
    [("private", "a private key"), ("public", "Packer's key"), ("both", "a private key and Packer's key")],
)
def test_an_image_with_a_key_anywhere_on_its_disk_is_refused(
    definition: Path, monkeypatch: pytest.MonkeyPatch, left: str, seen: str
) -> None:
    def disk(key: Path, public: str) -> bytes:
        found = {"private": key.read_bytes(), "public": public.encode()}
        return b"before" + (found.get(left) or b"".join(found.values())) + b"after"

    fake_build(monkeypatch, disk)
    with pytest.raises(UserError) as wrong:
        node_image.build("debian")
    assert (wrong.value.where, wrong.value.seen) == ("image:build, keys", seen)
    assert node_image.manifest("debian") is None


def test_a_build_is_given_a_key_of_its_own_that_goes_with_it(
    definition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What makes the base is told of no key, Packer of one that nobody has after the build."""
    pairs: list[tuple[str, str]] = []

    def disk(key: Path, public: str) -> bytes:
        asked = subprocess.run(["ssh-keygen", "-y", "-f", key], check=True, text=True, capture_output=True)
        pairs.append((public, " ".join(asked.stdout.split()[:2])))
        return b"a disk without keys"

    calls = fake_build(monkeypatch, disk)
    own = ssh_keys.ensure()
    node_image.build("debian")
    made_by, _ = calls
    assert [argument.rpartition("/")[2] for argument in made_by[0][2:]] == ["base0", "kit"]
    manifest = json.loads((node_image.folder("debian") / "manifest.json").read_text())
    assert (manifest["kit"], manifest["root_sha256"]) == ("d1", "ab12")
    assert "zstd 1.5 in place of 1.5.4+dfsg2-5" in manifest["drifted"]
    assert manifest["drifted"][0] == "node kit: iperf3 3.13 in place of 3.12"
    assert pairs[0][0] == pairs[0][1] != ssh_keys.public(own)
    told = json.dumps(calls)
    assert str(own) not in told and ssh_keys.public(own) not in told
    assert "PRIVATE" not in told
    assert sorted(path.name for path in node_image.folder("debian").iterdir()) == [
        "manifest.json",
        "overlaylab.box",
    ]
    assert not list(node_image.folder("debian").parent.glob(".building-*"))


def test_key_ignores_what_does_not_go_in(definition: Path) -> None:
    before = node_image.image_key("debian")
    (definition / "Taskfile.yml").write_text("version: '3'\n")
    (definition / "systems" / "ubuntu" / "system.yml").write_text("")
    assert node_image.image_key("debian") == before


def test_unknown_system_names_the_known_ones(definition: Path) -> None:
    with pytest.raises(UserError) as wrong:
        node_image.build("solaris")
    assert str(wrong.value) == (
        "SYSTEM: must be one of debian, fedora-coreos, flatcar, ubuntu (found: solaris). "
        "Choose one of them, or add packer/systems/<name>/system.yml"
    )


def test_folder_and_box_carry_system_and_key(definition: Path, tmp_path: Path) -> None:
    name = "debian-" + node_image.image_key("debian")[:12]
    assert node_image.box_path("debian") == tmp_path / "cache" / "images" / name / "overlaylab.box"


def test_manifest_is_none_until_built(definition: Path) -> None:
    assert node_image.manifest("debian") is None
    node_image.folder("debian").mkdir(parents=True)
    (node_image.folder("debian") / "manifest.json").write_text(json.dumps(MANIFEST))
    assert node_image.manifest("debian") == MANIFEST


def test_built_image_is_not_built_again(definition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node_image.folder("debian").mkdir(parents=True)
    (node_image.folder("debian") / "manifest.json").write_text(json.dumps(MANIFEST))
    monkeypatch.setattr(node_image, "_build_in", lambda *_: pytest.fail("built again"))
    assert node_image.build("debian") == node_image.folder("debian")


def test_broken_manifest_says_what_to_remove(definition: Path) -> None:
    node_image.folder("debian").mkdir(parents=True)
    (node_image.folder("debian") / "manifest.json").write_text("{")
    with pytest.raises(UserError) as wrong:
        node_image.manifest("debian")
    assert wrong.value.fix == f"Remove the folder {node_image.folder('debian')} and type `./task image:build`"


def test_missing_program_points_to_setup(definition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        node_image, "find_program", lambda name: None if name in ("packer", "mmdebstrap") else name
    )
    with pytest.raises(UserError) as wrong:
        node_image.build("debian")
    assert str(wrong.value) == (
        "image:build: needs the programs packer, qemu-system-x86_64, qemu-img, ssh-keygen, mmdebstrap, "
        "mkfs.ext4, sfdisk, grub-mkimage (found: missing packer, mmdebstrap). "
        "Type `./task setup`, which installs them"
    )
    assert not (node_image.folder("debian").parent).exists()


def test_failed_build_leaves_only_its_log(definition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(work: Path, *_: object) -> None:
        (work / "base").mkdir()
        raise UserError("image:build, packer build", "must succeed", fix="Look")

    monkeypatch.setattr(node_image, "_preflight", lambda system: None)
    monkeypatch.setattr(node_image, "_build_in", fail)
    with pytest.raises(UserError):
        node_image.build("debian")
    assert [path.name for path in node_image.folder("debian").parent.iterdir()] == [".lock"]


def test_build_moves_into_place_and_keeps_two(definition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = node_image.folder("debian").parent
    for age, name in enumerate(["debian-new", "debian-old", "debian-older"]):
        (images / name).mkdir(parents=True)
        (images / name / "manifest.json").write_text("{}")
        os.utime(images / name, (1e9 - age, 1e9 - age))
    (images / ".building-stale").mkdir()

    def make(work: Path, *_: object) -> None:
        (work / "result").mkdir()
        (work / "result" / "manifest.json").write_text(json.dumps(MANIFEST))

    monkeypatch.setattr(node_image, "_preflight", lambda system: None)
    monkeypatch.setattr(node_image, "_build_in", make)
    assert node_image.build("debian") == node_image.folder("debian")
    assert sorted(path.name for path in images.iterdir()) == [
        ".lock",
        node_image.folder("debian").name,
        "debian-new",
    ]
    assert node_image.manifest("debian") == MANIFEST


def test_description_of_a_manifest() -> None:
    assert describe(MANIFEST, "/cache/overlaylab.box").splitlines() == [
        "box       /cache/overlaylab.box (293 MB)",
        "sha256    b941c8",
        "system    Debian GNU/Linux 12 (bookworm), kernel 6.1.0-56-cloud-amd64, 1 packages",
        "built     2026-11-20T13:39:14+00:00 in 100 s with tcg, commit unknown",
        "tested    2 kernel modules, 2 tools: iperf3, tc",
    ]


PACKER_LOG = """\
2026-11-20T13:16:16Z: ==> qemu.node: Provisioning with shell script: scripts/test.sh
2026-11-20T13:16:25Z: ==> qemu.node: image test failed: kernel module vxlan: not found
2026-11-20T13:16:25Z: Build 'qemu.node' errored after 1 minute: Script exited with non-zero exit status: 1.

==> Builds finished but no artifacts were created.
"""

APT_LOG = """\
I: running apt-get update...
Err:1 http://mirror.example/debian bookworm InRelease
  Temporary failure resolving 'mirror.example'
E: Failed to fetch http://mirror.example/debian/InRelease  Temporary failure resolving 'mirror.example'
E: Some index files failed to download. They have been ignored, or old ones used instead.
E: apt-get update --error-on=any failed
I: main() received signal PIPE: waiting for setup...
E: mmdebstrap failed to run
"""


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            PACKER_LOG,
            "2026-11-20T13:16:25Z: ==> qemu.node: image test failed: kernel module vxlan: not found | "
            "2026-11-20T13:16:25Z: Build 'qemu.node' errored after 1 minute: "
            "Script exited with non-zero exit status: 1.",
        ),
        (
            APT_LOG,
            "E: Failed to fetch http://mirror.example/debian/InRelease  "
            "Temporary failure resolving 'mirror.example' | "
            "E: Some index files failed to download. They have been ignored, or old ones used instead. | "
            "E: apt-get update --error-on=any failed",
        ),
        ("one\n\ntwo\nthree\nfour\n", "two | three | four"),
        ("", "none"),
    ],
)
def test_last_words_tell_what_went_wrong_first(log: str, words: str) -> None:
    assert process.last_words(log) == words


@pytest.mark.parametrize(
    ("log", "advice"),
    [
        (APT_LOG, "check the network"),
        ("mkfs.ext4: No space left on device", "Free some disk"),
        ("E: invalid idmap: /etc/subuid has no entry", "usermod --add-subuids"),
        ("something else", "the log says more"),
    ],
)
def test_advice_fits_the_log(log: str, advice: str) -> None:
    assert advice in process.advice(log)


def test_failing_program_is_a_user_error_with_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(UserError) as wrong:
        process.run(["sh", "-c", "echo no luck; exit 3"], log, {}, what="base disk")
    assert wrong.value.where == "image:build, base disk"
    assert wrong.value.seen == "exit code 3, its log: no luck"
    assert str(log) in wrong.value.fix
    assert log.read_text() == "no luck\n"


INTERRUPTED = """
import asyncio
import sys
from pathlib import Path
from overlaylab.image import process as image_process
def build():
    with image_process.interruptible():
        image_process.run(["sh", "-c", "sleep 600 & echo $! > $0; wait", sys.argv[1]], Path(sys.argv[2]), {}, what="x")
async def build_for_hosts():
    build()
asyncio.run(build_for_hosts()) if sys.argv[3] == "in a loop" else build()
"""


def test_an_interrupt_while_a_program_is_being_started_ends_it_too(tmp_path: Path, monkeypatch) -> None:
    begun = []

    def popen(*arguments, **options) -> subprocess.Popen:
        begun.append(start(*arguments, **options))
        signal.raise_signal(signal.SIGINT)
        return begun[0]

    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", popen)
    with pytest.raises(KeyboardInterrupt):
        process.run(["sleep", "600"], tmp_path / "log", {}, what="x")
    try:
        assert begun[0].poll() is not None
    finally:
        begun[0].kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("where", ["by itself", "in a loop"])
def test_interrupt_ends_the_programs_children_too(tmp_path: Path, number: signal.Signals, where: str) -> None:
    started, log = tmp_path / "pid", tmp_path / "log"
    builder = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, started, log, where], stderr=subprocess.DEVNULL
    )
    _wait_for(lambda: started.exists() and started.read_text().strip() != "")
    child = int(started.read_text())
    builder.send_signal(number)
    assert builder.wait(10) != 0
    _wait_for(lambda: not runs(child))
    assert not log.exists()


def test_leftovers_of_a_killed_builder_are_ended(tmp_path: Path) -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    left = subprocess.Popen([*sleeper, str(tmp_path / ".building-x" / "out")])
    other = subprocess.Popen([*sleeper, str(tmp_path / ".building-y")])
    try:
        # A process that has just begun has no arguments for a moment (execve(2) sets them last).
        _wait_for(lambda: b".building-x" in Path(f"/proc/{left.pid}/cmdline").read_bytes())
        process.end_leftovers(tmp_path / ".building-x")
        assert left.wait(10) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def _wait_for(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.02)
