"""A bundle's file: the same parts give the same bytes, and what is damaged, cut, added or foreign is found."""

import errno
import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from lab_bundle import bundle, flip, manifest, sources

from overlaylab.cli.commands import setup
from overlaylab.cli.commands.bundle import describe
from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.image import bundle_make, bundle_parts, bundle_systems, bundle_verify
from overlaylab.machine import bundle_manifest, packages, releases


def test_the_same_parts_give_the_same_bytes_whatever_their_times(tmp_path):
    made = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        made.append(bundle(tmp_path / name).read_bytes())
    assert made[0] == made[1]


def test_members_are_sorted_behind_the_manifest_and_belong_to_root(tmp_path):
    with tarfile.open(bundle(tmp_path)) as tar:
        members = tar.getmembers()
    files = [member.name for member in members if member.isfile()]
    assert files[:2] == ["overlaylab/bundle/manifest.json", "overlaylab/bundle/SHA256SUMS"]
    checkout = [name for name in files if not name.startswith("overlaylab/bundle/")]
    assert files[2:] == sorted(checkout) + sorted(set(files[2:]) - set(checkout))
    assert checkout[-1] == "overlaylab/vagrant/pair.yml"
    assert {(member.uid, member.gid, member.mtime) for member in members} == {(0, 0, 1700000000)}
    assert {member.name: oct(member.mode) for member in members}["overlaylab/task"] == "0o755"


def test_a_whole_bundle_is_verified_with_the_digest_that_sha256sum_prints(tmp_path):
    out = bundle(tmp_path)
    printed = subprocess.run(["sha256sum", out], capture_output=True, text=True, check=True).stdout
    found = bundle_verify.verify(out)
    assert found.digest == printed.split()[0]
    assert [(part.name, part.bytes) for part in found.manifest.parts] == [
        ("checkout", 20), ("toolchain", 10), ("packages", 17), ("image", 3147), ("daemons", 2), ("viewer", 4),
    ]  # fmt: skip


def contents(out: Path) -> list[tuple[str, int, int]]:
    with tarfile.open(out) as tar:
        return [(member.name, member.offset_data, member.size) for member in tar if member.isfile()]


def test_one_byte_in_any_part_is_found_and_its_file_is_named(tmp_path):
    out = bundle(tmp_path)
    for name, offset, size in contents(out):
        for place in {offset, offset + size - 1}:
            flip(out, place)
            with pytest.raises(UserError) as error:
                bundle_verify.verify(out)
            assert error.value.fix
            if not name.endswith("manifest.json"):
                assert f"{name.removeprefix('overlaylab/')} (" in str(error.value)
                assert "differs from the manifest" in str(error.value)
            flip(out, place)
    bundle_verify.verify(out)


def test_a_bundle_that_was_cut_anywhere_is_found(tmp_path):
    out = bundle(tmp_path)
    content = out.read_bytes()
    (*_, (_, last, size)) = contents(out)
    for length in (0, 100, 700, len(content) // 3, len(content) // 2, last, last + size - 1):
        out.write_bytes(content[:length])
        with pytest.raises(UserError):
            bundle_verify.verify(out)


def add(out: Path, member: tarfile.TarInfo, content: bytes = b"") -> None:
    with tarfile.open(out, "a") as tar:
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize("name", ["overlaylab/new", "overlaylab/task", "elsewhere/task", "/etc/passwd"])
def test_a_file_beyond_the_manifest_or_twice_is_found(tmp_path, name):
    out = bundle(tmp_path)
    add(out, tarfile.TarInfo(name), b"#!/bin/sh\n")
    with pytest.raises(UserError, match="is not in the manifest"):
        bundle_verify.verify(out)


def test_a_link_is_no_file_of_a_bundle(tmp_path):
    out = bundle(tmp_path)
    link = tarfile.TarInfo("overlaylab/README.md")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    add(out, link)
    with pytest.raises(UserError, match="is not in the manifest"):
        bundle_verify.verify(out)


def test_a_file_that_is_no_bundle_says_so(tmp_path):
    plain = tmp_path / "plain.tar"
    with tarfile.open(plain, "w") as tar:
        tar.addfile(tarfile.TarInfo("hello"))
    with pytest.raises(UserError) as error:
        bundle_verify.read(plain)
    assert error.value.rule == "must begin with overlaylab/bundle/manifest.json"
    with pytest.raises(UserError, match="No such file"):
        bundle_verify.read(tmp_path / "none.tar")


@pytest.mark.parametrize(
    "change",
    [
        {"parts": [{"name": "x"}]},
        {"format": 2},
        {"made": "yesterday"},
        {"parts": [{"name": "x", "about": "", "licences": [], "files": [{"path": "../../etc/passwd", "bytes": 1, "sha256": "0" * 64, "executable": False}]}]},
        {"parts": [{"name": "x", "about": "", "licences": [], "files": [{"path": "a", "bytes": 1, "sha256": "0", "executable": False}]}]},
        {"parts": None},
    ],
)  # fmt: skip
def test_a_manifest_that_is_not_ours_is_a_users_error(tmp_path, change):
    text = json.dumps(json.loads(bundle_manifest.to_json(manifest(sources(tmp_path)))) | change)
    with pytest.raises(UserError):
        bundle_manifest.from_json(text, "m")
    with pytest.raises(UserError):
        bundle_manifest.from_json("[]", "m")


def test_the_manifest_survives_its_own_text(tmp_path):
    made = manifest(sources(tmp_path))
    assert bundle_manifest.from_json(bundle_manifest.to_json(made), "m") == made


def test_show_lists_parts_with_sizes_and_licences(tmp_path):
    shown = describe(manifest(sources(tmp_path), system="debian-12", architecture="amd64"))
    assert shown.splitlines()[:2] == [
        f"overlaylab cccccccc, commit {'c' * 40}",
        "for debian-12, amd64; with lab",
    ]
    assert "image           2      0.0" in shown and "  viewer: Apache-2.0\n" in shown


def test_too_little_room_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle_make.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(UserError) as error:
        bundle(tmp_path)
    assert (error.value.rule, error.value.seen) == ("must have 0.5 GB free", "0.0 GB")
    assert not list(tmp_path.glob("*.tar")) and not list(tmp_path.glob(".*.new"))


def test_a_disk_that_fills_while_it_is_written_leaves_nothing(tmp_path, monkeypatch):
    add_file = tarfile.TarFile.addfile

    def addfile(self, member, fileobj=None):
        if member.name.endswith("InRelease"):
            raise OSError(errno.ENOSPC, "No space left on device")
        add_file(self, member, fileobj)

    old = bundle(tmp_path)
    before = old.read_bytes()
    monkeypatch.setattr(tarfile.TarFile, "addfile", addfile)
    with pytest.raises(OSError) as error:
        bundle(tmp_path)
    told = str(bundle_make.full(old, error.value))
    assert "No space left on device" in told and "type the command again" in told
    assert old.read_bytes() == before and not list(tmp_path.glob(".*.new"))


@pytest.mark.parametrize(
    ("asked", "seen"), [("debian-11", "debian-11"), ("", "nothing"), ("debian-12-arm64", "arm64"), ("plan9-amd64", "plan9-amd64")]
)  # fmt: skip
def test_a_system_that_cannot_be_had_here_fails_by_name(monkeypatch, asked, seen):
    monkeypatch.setattr(bundle_systems, "architecture", lambda: "amd64")
    with pytest.raises(UserError) as error:
        bundle_systems.chosen(asked)
    assert (error.value.where, error.value.seen) == ("FOR", seen)


def test_every_release_that_is_known_is_one_to_bundle_for(monkeypatch):
    monkeypatch.setattr(bundle_systems, "architecture", lambda: "amd64")
    assert set(bundle_systems.SYSTEMS) == set(releases.RELEASES)
    system, architecture = bundle_systems.chosen("debian-12")
    assert (system.name, architecture) == ("debian-12", "amd64")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A checkout under git with one commit."""
    if shutil.which("git") is None:
        pytest.skip("takes git")
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "file").write_text("1")
    git = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message=m"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(paths, "ROOT", folder)
    return folder


def test_a_bundle_is_of_a_commit(repository):
    commit, version, made = bundle_make.described()
    assert len(commit) == 40 and commit.startswith(version) and made > 1_600_000_000
    (repository / "new").write_text("untracked files are nobody's")
    bundle_make.described()
    (repository / "file").write_text("2")
    with pytest.raises(UserError, match=r"must be as it was committed.*found: file"):
        bundle_make.described()


def test_a_checkout_without_its_repository_makes_no_bundle(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    with pytest.raises(UserError, match="must have the checkout's git repository"):
        bundle_make.described()


def test_wrong_words_are_said_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle_make, "described", lambda: pytest.fail("too late"))
    right = bundle_make.Request("debian-12")
    monkeypatch.setattr(bundle_systems, "architecture", lambda: "amd64")
    for out, request, where in (
        (tmp_path / "x.tar", bundle_make.Request("debian-12", ("labs",)), "WITH"),
        (tmp_path / "x.tar", bundle_make.Request("debian-12", ("lab",), ("weaver",)), "OVERLAYS"),
        (tmp_path / "none" / "x.tar", right, f"OUT={tmp_path}/none/x.tar"),
        (tmp_path, right, f"OUT={tmp_path}"),
        (tmp_path / "x.tar", bundle_make.Request("debian-12", key=tmp_path / "key"), f"SIGN={tmp_path}/key"),
    ):
        with pytest.raises(UserError) as error:
            bundle_make.make(out, request)
        assert error.value.where == where


def test_a_signature_is_one_that_ssh_verifies(tmp_path):
    if shutil.which("ssh-keygen") is None:
        pytest.skip("takes ssh-keygen")
    out, key = bundle(tmp_path), tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    signature = bundle_make.sign(out, key)
    (tmp_path / "signers").write_text(f"maker {key.with_suffix('.pub').read_text()}")
    argv = [
        "ssh-keygen",
        "-Y",
        "verify",
        "-f",
        tmp_path / "signers",
        "-I",
        "maker",
        "-n",
        bundle_make.NAMESPACE,
    ]
    argv += ["-s", signature]
    assert subprocess.run(argv, stdin=out.open("rb"), capture_output=True).returncode == 0
    flip(out, 5000)
    assert subprocess.run(argv, stdin=out.open("rb"), capture_output=True).returncode != 0


def test_what_the_tests_ask_for_is_in_a_bundle_for_tests():
    asked = packages.names(setup._TESTED)
    groups = [group for name in bundle_parts.CONTENTS for group in bundle_parts.GROUPS[name]]
    assert set(asked) == set(packages.names(groups))
    alone = [group for name in ("lab", "test") for group in bundle_parts.GROUPS[name]]
    assert set(asked) == set(packages.names(alone))
