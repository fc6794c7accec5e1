"""The bundle's repository of packages: an index that says what lies there, a signature that apt's gpgv believes."""

import hashlib
import shutil
import subprocess

import pytest

from overlaylab.core.errors import UserError
from overlaylab.image import bundle_packages
from overlaylab.image.bundle_packages import Apt
from overlaylab.image.bundle_systems import SYSTEMS

SHOWN = """Package: tini
Version: 1:0.19.0-1+b3
Architecture: amd64
Description: tiny init
 for containers
 .
 and more
Filename: pool/main/t/tini/tini_0.19.0-1+b3_amd64.deb
MD5sum: 00
SHA256: {digest}

Package: redir
Version: 3.3-1
Architecture: all
Filename: pool/main/r/redir/redir_3.3-1_all.deb
SHA256: {digest}
"""


@pytest.fixture
def stanzas(tmp_path):
    """Two stanzas whose files are there."""
    found = bundle_packages.parse_stanzas(SHOWN.format(digest=hashlib.sha256(b"deb").hexdigest()))
    for stanza in found:
        stanza["File"] = str(tmp_path / f"{stanza['Package']}.deb")
        (tmp_path / f"{stanza['Package']}.deb").write_bytes(b"deb")
    return found


def test_stanzas_keep_lines_that_go_on(stanzas):
    assert [stanza["Package"] for stanza in stanzas] == ["tini", "redir"]
    assert stanzas[0]["Description"] == "tiny init\n for containers\n .\n and more"


def test_the_index_names_each_file_as_mirrors_do(stanzas):
    index = bundle_packages.packages_index(stanzas)
    assert "Filename: pool/tini_0.19.0-1+b3_amd64.deb\n" in index
    assert "MD5sum" not in index and "File:" not in index
    assert [stanza["Package"] for stanza in bundle_packages.parse_stanzas(index)] == ["tini", "redir"]


def test_a_damaged_download_is_removed_and_named(stanzas, tmp_path):
    (tmp_path / "redir.deb").write_bytes(b"dub")
    with pytest.raises(UserError, match=r"package redir\.deb: must have the SHA-256"):
        bundle_packages.packages_index(stanzas)
    assert not (tmp_path / "redir.deb").exists()


def test_what_a_release_lacks_fails_by_name_before_anything_is_downloaded(own_cache):
    with pytest.raises(UserError) as wrong:
        bundle_packages.closure(SYSTEMS["ubuntu-24.04"], "amd64", ["tini", "vagrant", "chromium"])
    assert wrong.value.seen == "vagrant: dropped by Ubuntu for its licence, chromium: a snap on Ubuntu"
    assert not own_cache.exists()


def test_a_package_is_known_by_its_file_and_by_its_stanza():
    assert bundle_packages.key("tini", "1%3a0.19.0-1+b3", "amd64.deb") == ("tini", "1:0.19.0-1+b3", "amd64")
    assert bundle_packages.key("tini", "1:0.19.0-1+b3", "amd64") == ("tini", "1:0.19.0-1+b3", "amd64")


def test_a_release_file_never_expires():
    text = bundle_packages.release_file("Package: x\n", "debian-12", "amd64")
    assert "Valid-Until" not in text
    assert "Date: Wed, 01 Jan 2020 00:00:00 GMT\n" in text
    assert text.endswith(f" {hashlib.sha256(b'Package: x' + bytes([10])).hexdigest()} 11 Packages\n")


def test_the_signature_is_good_and_its_key_does_not_expire(tmp_path):
    if not (shutil.which("gpg-agent") and shutil.which("gpgv")):
        pytest.skip("takes gpg, gpg-agent and gpgv")
    (tmp_path / "Release").write_text("Origin: overlaylab\n")
    bundle_packages.sign(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["InRelease", "key.asc"]
    ring = tmp_path / "ring.gpg"
    subprocess.run(
        ["gpg", "--batch", "--quiet", "--dearmor", "--output", ring, tmp_path / "key.asc"], check=True
    )
    checked = subprocess.run(
        ["gpgv", "--keyring", ring, tmp_path / "InRelease"],
        capture_output=True,
        text=True,
        env={"LC_ALL": "C"},
    )
    assert checked.returncode == 0 and "Good signature" in checked.stderr and "2020" in checked.stderr
    told = subprocess.run(
        ["gpg", "--homedir", tmp_path, "--with-colons", "--show-keys", tmp_path / "key.asc"],
        capture_output=True,
        text=True,
    ).stdout
    (public,) = [line.split(":") for line in told.splitlines() if line.startswith("pub")]
    assert (public[5], public[6]) == ("1577836800", "")


def test_a_system_that_the_sources_here_lack_is_named(tmp_path, monkeypatch):
    apt = Apt(tmp_path, SYSTEMS["ubuntu-24.04"], "amd64")
    monkeypatch.setattr(Apt, "run", lambda *words, **other: "Debian bookworm\nDebian bookworm-security\n")
    with pytest.raises(UserError) as error:
        bundle_packages.check_sources(apt)
    assert error.value.where == "packages of ubuntu-24.04"
    assert error.value.rule == "must be in this machine's package sources: Ubuntu noble"
    assert error.value.seen == "Debian bookworm, Debian bookworm-security"
    bundle_packages.check_sources(Apt(tmp_path, SYSTEMS["debian-12"], "amd64"))


def test_only_the_systems_own_releases_are_taken(tmp_path):
    apt = Apt(tmp_path, SYSTEMS["debian-12"], "amd64")
    apt.prepare()
    pins = bundle_packages.parse_stanzas((tmp_path / "preferences").read_text())
    assert [(pin["Pin"], pin["Pin-Priority"]) for pin in pins] == [
        ("release o=Debian,n=bookworm", "990"),
        ("release o=Debian,n=bookworm-updates", "990"),
        ("release o=Debian,n=bookworm-security", "990"),
        ("release *", "-1"),
    ]
