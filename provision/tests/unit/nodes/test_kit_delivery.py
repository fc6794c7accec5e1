"""The kit on its way to a host: what the host is asked, when it is refused, and that what arrived is whole or not there.

A host is a folder of this machine: scripts run here, with the homes of a node replaced by folders in it.
"""

import asyncio
import gzip
import hashlib
import io
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest

from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.paths import NODE_HOME, OTHER_NODE_HOME
from overlaylab.image.kit import Kit
from overlaylab.nodes import kit_delivery
from overlaylab.nodes.kit_delivery import Found
from overlaylab.nodes.ssh import Completed

GOOD = Found("x86_64", None, None, NODE_HOME, 10**9, {}, ())


class Host:
    """Runs what a node would, below a folder. breaks_after: chunks until the connection is gone."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.breaks_after: int | None = None
        self.sent: list[int] = []

    async def sh(
        self, script: str, *, stdin: bytes | None = None, check: bool = True, timeout: float = 60
    ) -> Completed:
        if stdin is not None:
            if self.breaks_after is not None and len(self.sent) >= self.breaks_after:
                raise NodeError(f"{self.name}: the SSH connection broke")
            self.sent.append(len(stdin))
        here = script.replace(OTHER_NODE_HOME, str(self.folder / "var")).replace(
            NODE_HOME, str(self.folder / "opt")
        )
        here = here.replace("/run/", f"{self.folder}/run/")
        done = await asyncio.to_thread(
            subprocess.run, ["sh", "-c", here], input=stdin, capture_output=True, check=False
        )
        if check and done.returncode:
            raise NodeError(done.stderr.decode())
        return Completed(done.returncode, done.stdout.decode(), done.stderr.decode(), 0.1)

    def ask(self) -> Found:
        return kit_delivery.read(
            asyncio.run(self.sh(kit_delivery.ASK)).stdout.replace(str(self.folder / "opt"), NODE_HOME)
        )


class Hosts(dict[str, Host]):
    """`overlaylab.nodes.ssh.Nodes` of such hosts."""

    async def sh(self, script: str, **options: object) -> dict[str, Completed]:
        told = {name: await host.sh(script, **options) for name, host in self.items()}  # type: ignore[arg-type]
        return {
            name: Completed(
                one.exit_code,
                one.stdout.replace(str(self[name].folder / "opt"), NODE_HOME),
                one.stderr,
                one.duration,
            )
            for name, one in told.items()
        }

    def drop(self) -> None: ...

    async def connect(self) -> None: ...


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    """A kit of one program, which ends well."""
    monkeypatch.setattr(kit_delivery, "CHUNK", 100)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in ("bin/true", "lib/a", "libexec/b", "share/c"):
            content = b"#!/bin/sh\nexit 0\n" + bytes(1000)
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755
            tar.addfile(member, io.BytesIO(content))
    archive = tmp_path / "kit.tar.gz"
    archive.write_bytes(gzip.compress(packed.getvalue(), 0))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    manifest = {"archive": {"bytes": archive.stat().st_size}, "bytes": {"all": 4 * 1017}}
    return Kit(archive, digest, "d" * 64, "amd64", {}, (), manifest)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    (tmp_path / "host").mkdir()
    return Host("node1", tmp_path / "host")


def deliver(host: Host, kit: Kit) -> None:
    def build() -> Kit:
        assert threading.current_thread() is threading.main_thread()  # Python hands signals to no other
        return kit

    asyncio.run(kit_delivery.ensure(Hosts({host.name: host}), build))  # type: ignore[arg-type]


def test_a_host_without_a_kit_is_asked_and_left_as_it_was(host: Host) -> None:
    found = host.ask()
    assert (found.home, found.digest, found.place, found.part, found.lacks) == (None, None, NODE_HOME, {}, ())
    assert found.machine and found.free > 0
    assert not (host.folder / "opt").exists()


def test_a_kit_arrives_whole_and_is_not_sent_again(
    host: Host, kit: Kit, capsys: pytest.CaptureFixture[str]
) -> None:
    (host.folder / "opt/overlay").mkdir(parents=True)
    (host.folder / "opt/overlay/daemon").touch()
    (host.folder / "opt/bin").mkdir()
    (host.folder / "opt/bin/of-an-older-kit").touch()
    deliver(host, kit)
    home = host.folder / "opt"
    assert sorted(path.name for path in home.iterdir()) == [
        "bin",
        "kit.digest",
        "lib",
        "libexec",
        "overlay",
        "share",
    ]
    assert [path.name for path in (home / "bin").iterdir()] == ["true"]
    assert (home / "overlay/daemon").exists()
    assert (home / "kit.digest").read_text() == f"{'d' * 64}\n"
    assert sum(host.sent) == kit.archive.stat().st_size
    assert "node1: the node kit goes to /opt/overlaylab" in capsys.readouterr().err
    host.sent.clear()
    deliver(host, kit)
    assert host.sent == []


def test_what_arrived_before_the_connection_broke_is_not_sent_again(host: Host, kit: Kit) -> None:
    host.breaks_after = 3
    with pytest.raises(NodeError, match="what arrived of the node kit is kept, type the command again"):
        deliver(host, kit)
    assert list(host.ask().part.values()) == [300]
    assert not (host.folder / "opt/kit.digest").exists()
    host.breaks_after, host.sent = None, []
    deliver(host, kit)
    assert sum(host.sent) == kit.archive.stat().st_size - 300
    assert (host.folder / "opt/kit.digest").exists()


def test_what_arrived_damaged_is_refused_and_removed(host: Host, kit: Kit) -> None:
    (host.folder / "opt").mkdir()
    (host.folder / f"opt/.kit-{kit.archive_sha256[:16]}.part").write_bytes(b"damaged")
    with pytest.raises(UserError, match=r"must take the node kit whole.*what arrived has the SHA-256"):
        deliver(host, kit)
    assert list((host.folder / "opt").iterdir()) == []


def test_parts_of_other_kits_go(host: Host, kit: Kit) -> None:
    (host.folder / "opt").mkdir()
    (host.folder / "opt/.kit-0123456789abcdef.part").write_bytes(b"of another")
    deliver(host, kit)
    assert not list((host.folder / "opt").glob(".kit-*"))


def test_a_program_that_cannot_run_there_leaves_nothing(host: Host, kit: Kit) -> None:
    # As on a file system that is mounted noexec.
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("bin/true"))
    kit.archive.write_bytes(gzip.compress(packed.getvalue(), 0))
    digest = hashlib.sha256(kit.archive.read_bytes()).hexdigest()
    size = {"archive": {"bytes": kit.archive.stat().st_size}, "bytes": {}}
    with pytest.raises(UserError, match="whether it is mounted noexec"):
        deliver(host, Kit(kit.archive, digest, "d" * 64, "amd64", {}, (), size))
    assert list((host.folder / "opt").iterdir()) == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Found("aarch64", None, None, NODE_HOME, 10**9, {}, ()), "must have a CPU that the node kit runs on: x86_64 (found: aarch64)"),
        (Found("x86_64", None, None, None, 0, {}, ()), "that root can write: /opt/overlaylab or /var/opt/overlaylab"),
        (Found("x86_64", None, None, NODE_HOME, 10**9, {}, ("gzip",)), "tar, gzip and sha256sum, which unpack the node kit (found: without gzip)"),
        (Found("x86_64", None, None, NODE_HOME, 1000, {}, ()), "MB free for the node kit (found: 0 MB)"),
    ],
)  # fmt: skip
def test_a_host_that_cannot_have_it_is_refused_in_words(kit: Kit, found: Found, words: str) -> None:
    assert words in str(kit_delivery.refusal("node1", found, kit))


def test_a_host_that_can_is_not(kit: Kit) -> None:
    assert kit_delivery.refusal("node1", GOOD, kit) is None


def test_all_of_it_is_taken_away(host: Host, kit: Kit) -> None:
    deliver(host, kit)
    hosts = Hosts({host.name: host})
    assert asyncio.run(kit_delivery.remove(hosts)) == {"node1": [NODE_HOME]}  # type: ignore[arg-type]
    assert not (host.folder / "opt").exists()
    assert asyncio.run(kit_delivery.remove(hosts)) == {"node1": []}  # type: ignore[arg-type]
