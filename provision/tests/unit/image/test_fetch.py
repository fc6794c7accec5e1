"""Publishers' disks: downloaded from a server on loopback, verified by a key that is made here."""

from __future__ import annotations

import hashlib
import http.server
import lzma
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from overlaylab.core.errors import UserError
from overlaylab.image import fetch, foreign_disk, systems

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("gpg", "gpgv", "qemu-img"))),
    reason="takes gpg, which signs, gpgv and qemu-img",
)


class Publisher:
    """A server of files, and whoever signs them. definition: a system whose disk it publishes."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.site = folder / "site", f"http://127.0.0.1:{port}"
        self.home = folder / "gnupg"
        self.home.mkdir(mode=0o700)
        self.definitions = folder / "systems" / "theirs"
        self.definitions.mkdir(parents=True)
        self.gpg("--quick-generate-key", "Publisher <p@example.org>", "ed25519", "sign", "0")
        told = self.gpg("--with-colons", "--list-keys").decode()
        self.fingerprint = next(line.split(":")[9] for line in told.splitlines() if line.startswith("fpr"))
        (self.folder / "key.asc").write_bytes(self.gpg("--armor", "--export"))

    def gpg(self, *words: str) -> bytes:
        argv = ["gpg", "--batch", "--quiet", "--homedir", str(self.home), "--passphrase", "", *words]
        return subprocess.run(argv, check=True, capture_output=True).stdout

    def sign(self, name: str, *how: str) -> None:
        target = self.folder / f"{name}.sig"
        target.unlink(missing_ok=True)
        self.gpg("--output", str(target), *how, str(self.folder / name))

    def publish(self, *, clear: bool = False, listed: bool = True) -> bytes:
        """A disk, packed, and what proves it: a list with a signature beside or in it, or its own signature."""
        plain = (b"\xeb" * 510 + b"\x55\xaa") * 400
        packed = lzma.compress(plain)
        (self.folder / "disk.img.xz").write_bytes(packed)
        lines = f"SHA256 (other.img) = {'0' * 64}\n{hashlib.sha256(packed).hexdigest()} *disk.img.xz\n"
        (self.folder / "SUMS").write_text(lines)
        if not listed:
            self.sign("disk.img.xz", "--detach-sign")
        else:
            self.sign("SUMS", "--clearsign" if clear else "--detach-sign")
        self.define("SUMS.sig" if clear else "SUMS" if listed else None, "SUMS" if listed else "disk.img.xz")
        return plain

    def define(self, checksums: str | None, signed: str, fingerprint: str | None = None) -> None:
        sums = f"checksums: {self.site}/{checksums}\n    " if checksums else ""
        # The schema wants https, which a server on loopback has no certificate for.
        text = f"""title: Theirs
id: theirs
release: null
run: nothing
image:
  configured_by: ignition
  firmware_name: opt/theirs/config
  source:
    url: {self.site}/disk.img.xz
    {sums}signature: {self.site}/{signed}.sig
    key: {self.site}/key.asc
    fingerprint: {fingerprint or self.fingerprint}
    cited: this test
"""
        (self.definitions / "system.yml").write_text(text.replace("http://", "https://"))


@pytest.fixture
def publisher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Publisher]:
    (tmp_path / "site").mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "site"))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    download = fetch._download
    monkeypatch.setattr(
        fetch, "_download", lambda url, *rest: download(url.replace("https://", "http://"), *rest)
    )
    monkeypatch.setenv("OVERLAYLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OVERLAYLAB_SYSTEMS", str(tmp_path / "systems"))
    made = Publisher(tmp_path, server.server_port)
    yield made
    subprocess.run(["gpgconf", "--homedir", str(made.home), "--kill", "all"], check=False)
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "how", [{}, {"clear": True}, {"listed": False}], ids=["list", "clear-signed", "disk"]
)
def test_a_disk_is_verified_unpacked_and_chosen(publisher: Publisher, how: dict[str, bool]) -> None:
    plain = publisher.publish(**how)
    path = fetch.fetch("theirs")
    assert path.name == "disk.img" and path.read_bytes() == plain
    found = foreign_disk.of(systems.load("theirs"))
    assert found is not None
    assert (found.path, found.sha256) == (str(path), hashlib.sha256(plain).hexdigest())
    assert found.origin.endswith("/disk.img.xz")
    (publisher.folder / "disk.img.xz").unlink()
    assert fetch.fetch("theirs") == path  # there already


def _another_content(publisher: Publisher) -> str:
    (publisher.folder / "disk.img.xz").write_bytes(lzma.compress(b"another"))
    return "disk.img.xz: must have the SHA256 that its publisher signed"


def _truncated(publisher: Publisher) -> str:
    path = publisher.folder / "disk.img.xz"
    path.write_bytes(path.read_bytes()[:-20])
    return "disk.img.xz: must have the SHA256 that its publisher signed"


def _changed_list(publisher: Publisher) -> str:
    path = publisher.folder / "SUMS"
    path.write_text(path.read_text().replace("0", "1"))
    return f"SUMS.sig: must be signed with the key {publisher.fingerprint} (this test)"


def _another_key(publisher: Publisher) -> str:
    publisher.define("SUMS", "SUMS", "A" * 40)
    return f"SUMS.sig: must be signed with the key {'A' * 40} (this test)"


def _not_listed(publisher: Publisher) -> str:
    (publisher.folder / "SUMS").write_text(f"{'0' * 64}  other.img\n")
    publisher.sign("SUMS", "--detach-sign")
    return "disk.img.xz: must stand in the publisher's list of checksums"


@pytest.mark.parametrize("spoil", [_another_content, _truncated, _changed_list, _another_key, _not_listed])
def test_what_is_not_what_was_signed_is_refused_and_nothing_kept(publisher: Publisher, spoil) -> None:
    publisher.publish()
    words = spoil(publisher)
    with pytest.raises(UserError) as wrong:
        fetch.fetch("theirs")
    assert str(wrong.value).startswith(f"image:fetch, {words}")
    assert foreign_disk.chosen(systems.load("theirs")) is None
    assert not list((publisher.home.parent / "cache/images").iterdir())


def test_a_server_that_has_it_not_is_named(publisher: Publisher) -> None:
    publisher.publish()
    (publisher.folder / "key.asc").unlink()
    with pytest.raises(UserError) as wrong:
        fetch.fetch("theirs")
    assert str(wrong.value).startswith(
        f"image:fetch: must reach {publisher.site}/key.asc (found: HTTP Error 404"
    )


def test_a_system_of_packages_has_nothing_to_fetch() -> None:
    with pytest.raises(UserError) as wrong:
        fetch.fetch("debian")
    assert wrong.value.seen == "Debian 12, made from packages"


@pytest.mark.parametrize(
    "line",
    [f"{'a' * 64}  x.img", f"{'a' * 64} *x.img", f"SHA256 (x.img) = {'a' * 64}"],
)
def test_lists_of_checksums_are_read_as_publishers_write_them(line: str) -> None:
    assert fetch.checksum(f"{'b' * 64}  y.img\n{line}\n{'c' * 64}  x.img.old\n", "x.img") == "a" * 64


def test_the_longest_digest_counts() -> None:
    text = f"# SHA1 HASH\n{'d' * 40}  x.img\n# SHA512 HASH\n{'e' * 128}  x.img\n"
    assert fetch.checksum(text, "x.img") == "e" * 128
