"""Which packages are missing, and how they are installed."""

import subprocess
from types import SimpleNamespace

import pytest

from overlaylab import host_apt, host_packages
from overlaylab.errors import UserError

PROGRAMS = [name for group in host_packages.PACKAGES for name in host_packages.PROGRAMS.get(group, ())]


def test_only_installed_counts_and_unknown_lines_are_left_out():
    listing = "tini installed\npacker config-files\nvagrant not-installed\nrsync installed\n\n"
    assert host_packages.parse_installed(listing) == {"tini", "rsync"}


def test_no_package_is_listed_twice():
    assert len(set(host_packages.names())) == len(host_packages.names())


@pytest.fixture
def programs(monkeypatch, tmp_path):
    """An otherwise empty PATH of scripts: programs(name, text) adds one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(host_packages, "_SYSTEM_FOLDERS", ())

    def add(name, text="exit 0"):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    return add


def test_missing_keeps_the_order_of_the_list_and_asks_dpkg_once(programs, tmp_path):
    there = [name for name in host_packages.names() if name not in {"tini", "packer", "gcc"}]
    lines = "\n".join(f"{name} installed" for name in there)
    programs("apt-get", "exit 99")
    programs(
        "dpkg-query", f"echo x >>{tmp_path}/calls\ncat <<'END'\n{lines}\npacker config-files\nEND\nexit 1"
    )
    # cat is not in that PATH
    (tmp_path / "cat").symlink_to("/bin/cat")
    assert host_packages.missing() == ["tini", "packer", "gcc"]
    assert (tmp_path / "calls").read_text() == "x\n"


def test_a_system_without_apt_gets_told_which_programs_it_lacks(programs, monkeypatch):
    for name in PROGRAMS:
        if name not in {"tini", "vagrant"}:
            programs(name)
    monkeypatch.setattr(host_packages, "system_name", lambda: "Fedora Linux 42")
    with pytest.raises(UserError) as error:
        host_packages.missing()
    assert error.value.where == "system Fedora Linux 42"
    assert error.value.seen == "missing tini, vagrant"
    assert error.value.fix == (
        "Install them (and the Vagrant plugin vagrant-libvirt) with your package manager"
    )


def test_a_system_without_apt_that_has_all_programs_will_do(programs):
    for name in PROGRAMS:
        programs(name)
    assert host_packages.missing() == []


def test_description_says_what_packages_are_for():
    assert (
        host_packages.describe(["tini", "qemu-utils", "packer"])
        == "virtual machines: qemu-utils, tini; images: packer"
    )


def test_a_group_can_be_asked_for_alone_and_a_renamed_library_counts(programs, tmp_path):
    lines = "\n".join(
        f"{name}{'t64' if name == 'libgtk-3-0' else ''} installed"
        for name in host_packages.OPTIONAL[host_packages.VIEWER]
        if name != "libnss3"
    )
    programs("apt-get", "exit 99")
    programs("dpkg-query", f"cat <<'END'\n{lines}\nEND")
    (tmp_path / "cat").symlink_to("/bin/cat")
    assert host_packages.missing([host_packages.VIEWER], alone=True) == ["libnss3"]


def test_a_library_is_installed_by_the_name_that_it_has_here(programs, apt, tmp_path):
    programs(
        "apt-cache", f"printf '%s\n' \"$@\" >{tmp_path}/asked; echo 'libgtk-3-0t64 | 3.24.41 | a mirror'"
    )
    host_packages.install(["libgtk-3-0", "libnss3", "squashfs-tools"])
    assert apt.calls[1][-4:] == ["install", "libgtk-3-0t64", "libnss3", "squashfs-tools"]
    assert sorted((tmp_path / "asked").read_text().split()) == ["libgtk-3-0t64", "libnss3t64", "madison"]


@pytest.fixture
def apt(monkeypatch):
    """Records what would run as root; apt.codes maps update and install to exit codes."""

    apt = SimpleNamespace(codes={"update": 0, "install": 0}, said={"update": "", "install": ""}, calls=[])

    def run(argv, why, **options):
        apt.calls.append(argv)
        verb = next(verb for verb in apt.codes if verb in argv)
        return subprocess.CompletedProcess(argv, apt.codes[verb], stderr=apt.said[verb])

    monkeypatch.setattr(host_packages, "run_as_root", run)
    monkeypatch.setattr(host_packages, "prefix", lambda argv: [])
    monkeypatch.setattr(host_apt, "LOCKS", ())
    return apt


def test_install_names_the_packages_first_and_takes_no_recommends(apt, capsys):
    host_packages.install(["tini", "packer"])
    assert " ".join(capsys.readouterr().err.split()) == (
        "these packages are missing (virtual machines: tini; images: packer)"
    )
    assert [call[-1] for call in apt.calls] == ["update", "packer"]
    assert apt.calls[1][-5:] == ["--yes", "--no-install-recommends", "install", "tini", "packer"]
    assert "DEBIAN_FRONTEND=noninteractive" in apt.calls[1]


def test_a_broken_foreign_source_does_not_stop_the_install(apt, monkeypatch):
    monkeypatch.setattr(apt, "codes", {"update": 100, "install": 0})
    host_packages.install(["tini"])
    assert len(apt.calls) == 2


def test_a_failed_install_says_what_to_do(apt, monkeypatch):
    monkeypatch.setattr(apt, "codes", {"update": 100, "install": 100})
    with pytest.raises(UserError) as error:
        host_packages.install(["tini", "packer"])
    assert str(error.value) == (
        "apt-get install: must succeed once for tini, packer (found: exit code 100, its output is above). "
        "Check the network and the package sources (Debian: main; Ubuntu: main and universe), then type "
        "the command again; what is installed by then is kept"
    )


def test_a_broken_source_is_named_where_the_install_fails_too(apt):
    apt.codes = {"update": 100, "install": 100}
    apt.said = {
        "update": "E: The repository 'http://ppa.example.org/x noble Release' does not have a Release file.\n",
        "install": "E: Unable to locate package tini\n",
    }
    with pytest.raises(UserError) as error:
        host_packages.install(["tini"])
    assert str(error.value) == (
        "apt-get install: must succeed once for tini (found: E: The repository 'http://ppa.example.org/x noble Release' "
        "does not have a Release file. | E: Unable to locate package tini). Correct or remove the package source that "
        "is named (http://ppa.example.org/x), or check the network, then type the command again; what is installed "
        "by then is kept"
    )


def test_without_sudo_root_is_told_which_packages(apt, monkeypatch):
    told = []
    monkeypatch.setattr(host_packages, "prefix", told.append)
    host_packages.install(["tini"])
    assert told == [["apt-get", "install", "--no-install-recommends", "tini"]]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n', "Debian GNU/Linux 12 (bookworm)"),
        ("ID=arch\n", "unknown"),
    ],
)
def test_system_name(tmp_path, text, name):
    (tmp_path / "os-release").write_text(text)
    assert host_packages.system_name(tmp_path / "os-release") == name


def test_system_name_without_the_file(tmp_path):
    assert host_packages.system_name(tmp_path / "absent") == "unknown"
