"""Releases as data: each name in it is one of packages', and says one thing."""

import pytest

from overlaylab.machine import packages, releases
from overlaylab.machine.releases import RELEASES

ALL = set(packages.names(packages.OPTIONAL))


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_speaks_of_our_packages_alone_and_once(name):
    release = RELEASES[name]
    assert set(release.renamed) <= ALL
    assert set(release.absent) <= ALL
    assert not set(release.renamed) & set(release.absent)


@pytest.mark.parametrize("name", RELEASES)
def test_a_package_by_its_new_name_counts_as_installed(name):
    for old, new in RELEASES[name].renamed.items():
        assert new == packages.renamed(old)


def test_what_is_known():
    assert RELEASES["debian-12"].renamed == RELEASES["debian-12"].absent == {}
    assert sorted(RELEASES["debian-13"].absent) == ["packer", "vagrant-lxc"]
    assert RELEASES["ubuntu-24.04"].renamed["libasound2"] == "libasound2t64"
    assert sorted(RELEASES["ubuntu-24.04"].absent) == [
        "chromium",
        "vagrant",
        "vagrant-libvirt",
        "vagrant-lxc",
    ]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n', "debian-12"),
        ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n', "ubuntu-24.04"),
        ("ID=debian\n", "debian"),
        ("", ""),
    ],
)
def test_the_release_is_read_from_os_release(tmp_path, text, key):
    (tmp_path / "os-release").write_text(text)
    assert releases.key(tmp_path / "os-release") == key
    assert releases.key(tmp_path / "absent") == ""


def test_an_unknown_release_is_a_line_and_no_refusal(monkeypatch):
    monkeypatch.setattr(releases, "key", lambda: "debian-14")
    assert releases.here() is None
    assert releases.warning("debian-14") == (
        "packages may have other names here: debian-14 is none of Debian 12, Debian 13, Ubuntu 24.04"
    )
