"""Locks: read, written, compared with what came; and what apt is told with one."""

import io
import tarfile
from pathlib import Path

import pytest

from overlaylab.core.errors import UserError
from overlaylab.image import package_lock
from overlaylab.image.package_lock import Package, Policy

A, B, C = (letter * 64 for letter in "abc")
OLD = (Package("iperf3", "3.12-1", "amd64", A), Package("libc6", "2.36-8", "amd64", B))
NEW = (Package("iperf3", "3.12-1", "amd64", A), Package("libc6", "2.36-9", "amd64", C))


def test_a_lock_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "kit.lock"
    path.write_text(package_lock.text(reversed(OLD), "Packages of a test", "20261125T200000Z"))
    assert package_lock.read(path) == OLD
    assert package_lock.taken(path) == "20261125T200000Z"


def test_no_file_is_no_lock(tmp_path: Path) -> None:
    assert package_lock.read(tmp_path / "kit.lock") == ()


@pytest.mark.parametrize("line", ["iperf3 3.12-1 amd64", "iperf3 3.12-1 amd64 0123", f"a b c {A[:-1]}G"])
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "kit.lock"
    path.write_text(f"# taken now\n{line}\n")
    with pytest.raises(UserError, match=r"kit.lock:2: must be name, version, architecture and SHA-256"):
        package_lock.read(path)


def test_apt_is_left_no_choice() -> None:
    assert package_lock.preferences(OLD[:1]) == (
        "Package: iperf3\nPin: version 3.12-1\nPin-Priority: 1001\n\n"
        "Package: *\nPin: release *\nPin-Priority: -1\n"
    )


def test_what_is_not_as_locked_is_named_in_both_directions() -> None:
    assert package_lock.differences(OLD, NEW) == ["libc6 2.36-9 in place of 2.36-8"]
    assert package_lock.differences(OLD, OLD[:1]) == ["libc6 2.36-8 is gone"]
    assert package_lock.differences(OLD[:1], OLD) == ["libc6 2.36-8 is new"]
    assert package_lock.differences(OLD, OLD) == []


def test_todays_packages_are_said_and_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert package_lock.check("the kit", OLD, NEW, Policy()) == ["libc6 2.36-9 in place of 2.36-8"]
    assert "1 packages are not as locked" in capsys.readouterr().err


def test_strict_refuses_them() -> None:
    with pytest.raises(UserError, match=r"must be those of the lock.*libc6 2.36-9 in place of 2.36-8"):
        package_lock.check("the kit", OLD, NEW, Policy(strict=True))


def test_the_same_version_with_other_bytes_is_refused_whatever_lock_says() -> None:
    forged = (OLD[0], Package("libc6", "2.36-8", "amd64", C))
    with pytest.raises(UserError, match=r"must have the SHA-256 that the lock states.*libc6"):
        package_lock.check("the kit", OLD, forged, Policy())


def test_a_first_build_without_a_lock_has_nothing_to_compare() -> None:
    assert package_lock.check("the kit", (), NEW, Policy(strict=True)) == []


@pytest.mark.parametrize(
    ("log", "gone"),
    [
        ("E: Unable to correct problems, you have held broken packages.", True),
        ("E: Package 'iperf3' has no installation candidate", True),
        ("E: Failed to fetch http://mirror/x.deb  Could not connect\nE: Unable to correct problems", False),
        ("E: Temporary failure resolving 'mirror'", False),
    ],
)
def test_a_version_that_is_gone_is_told_from_a_mirror_that_does_not_answer(log: str, gone: bool) -> None:
    assert package_lock.is_gone(log) is gone


def test_a_snapshot_is_a_source_of_that_day() -> None:
    source = package_lock.snapshot_source(
        "http://127.0.0.1/@SNAPSHOTID@/", "20261125T200000Z", ["bookworm", "bookworm-updates"], ["main"]
    )
    assert "URIs: http://127.0.0.1/20261125T200000Z/\n" in source
    assert "Suites: bookworm bookworm-updates\n" in source
    assert "Check-Valid-Until: no\n" in source


def test_archives_of_snapshots_are_those_that_release_files_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As apt-get update leaves them: one of a suite, one of its security updates, one that has no snapshots, one of others."""
    monkeypatch.setattr(package_lock, "LISTS", tmp_path)
    for name, line in {
        "a_debian_dists_bookworm_InRelease": "Snapshots: http://127.0.0.1/debian/@SNAPSHOTID@/",
        "a_debian_dists_bookworm-updates_Release": "Snapshots: http://127.0.0.1/debian/@SNAPSHOTID@/",
        "a_security_dists_bookworm-security_InRelease": "Snapshots: http://127.0.0.1/security/@SNAPSHOTID@/",
        "b_debian_dists_bookworm_InRelease": "Snapshots: no",
        "a_debian_dists_trixie_InRelease": "Snapshots: http://127.0.0.1/trixie/@SNAPSHOTID@/",
    }.items():
        (tmp_path / name).write_text(f"Origin: Debian\n{line}\nChangelogs: no\n")
    assert package_lock.announced("bookworm") == {
        "http://127.0.0.1/debian/@SNAPSHOTID@/": ["bookworm", "bookworm-updates"],
        "http://127.0.0.1/security/@SNAPSHOTID@/": ["bookworm-security"],
    }
    assert package_lock.announced("noble") == {}


def test_an_archive_of_snapshots_that_does_not_answer_keeps_nobody_from_todays_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, log = tmp_path / "packages.lock", tmp_path / "log"
    lock.write_text(package_lock.text(OLD, "Packages", "20261125T200000Z"))
    monkeypatch.setattr(package_lock, "announced", lambda suite: {"http://127.0.0.1/@SNAPSHOTID@": [suite]})
    asked: list[tuple[bool, str]] = []

    def take(preferences: str | None, source: str) -> None:
        asked.append((preferences is not None, source))
        if preferences:
            log.write_text("E: Failed to fetch" if source else "E: Unable to correct problems")
            raise UserError("image:build", "must succeed", fix="")

    package_lock.fetch("the kit", lock, "bookworm", ["main"], Policy(), take, log)
    assert [pinned for pinned, _ in asked] == [True, True, False]
    assert "URIs: http://127.0.0.1/20261125T200000Z\n" in asked[1][1]


def test_downloaded_packages_are_found_with_the_digest_of_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "root.tar"
    with tarfile.open(path, "w") as tar:
        for name, content in (
            ("./var/cache/apt/archives/zlib1g_1%3a1.2.13_amd64.deb", b"abc"),
            ("./var/cache/apt/archives/partial/x_1_all.deb", b""),
            ("./usr/bin/ip", b"ip"),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert package_lock.downloaded(path) == (Package("zlib1g", "1:1.2.13", "amd64", digest),)
