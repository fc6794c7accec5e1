"""Which packages are missing, and how they are installed."""

import subprocess
from types import SimpleNamespace

import pytest

from overlaylab.core.errors import UserError
from overlaylab.machine import apt as host_apt
from overlaylab.machine import packages, releases

PROGRAMS = [name for group in packages.PACKAGES for name in packages.PROGRAMS.get(group, ())]


def test_only_installed_counts_and_unknown_lines_are_left_out():
    listing = "tini installed\npacker config-files\nvagrant not-installed\nrsync installed\n\n"
    assert packages.parse_installed(listing) == {"tini", "rsync"}


def test_no_package_is_listed_twice():
    assert len(set(packages.names())) == len(packages.names())


@pytest.fixture
def programs(monkeypatch, tmp_path):
    """An otherwise empty PATH of scripts: programs(name, text) adds one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(packages, "_SYSTEM_FOLDERS", ())

    def add(name, text="exit 0"):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    return add


def test_missing_keeps_the_order_of_the_list_and_asks_dpkg_once(programs, tmp_path):
    there = [name for name in packages.names() if name not in {"tini", "packer", "gcc"}]
    lines = "\n".join(f"{name} installed" for name in there)
    programs("apt-get", "exit 99")
    programs(
        "dpkg-query", f"echo x >>{tmp_path}/calls\ncat <<'END'\n{lines}\npacker config-files\nEND\nexit 1"
    )
    # cat is not in that PATH
    (tmp_path / "cat").symlink_to("/bin/cat")
    assert packages.missing() == ["tini", "packer", "gcc"]
    assert (tmp_path / "calls").read_text() == "x\n"


def test_what_a_bundle_has_made_takes_no_packages_to_make(programs, monkeypatch):
    programs("apt-get")
    programs("dpkg-query")
    makers = {name for use in packages.MAKING for name in packages.PACKAGES[use]}
    assert makers >= {"packer", "mmdebstrap", "gcc"}
    assert packages.missing() == list(packages.names())
    monkeypatch.setattr(packages.bundle_source, "present", lambda: True)
    assert packages.missing() == [name for name in packages.names() if name not in makers]
    assert set(packages.missing(packages.MAKING)) == set(packages.names()), "but where they are asked for"


def test_a_system_without_apt_gets_told_which_programs_it_lacks(programs, monkeypatch):
    for name in PROGRAMS:
        if name not in {"tini", "vagrant"}:
            programs(name)
    monkeypatch.setattr(packages, "system_name", lambda: "Fedora Linux 42")
    with pytest.raises(UserError) as error:
        packages.missing()
    assert error.value.where == "system Fedora Linux 42"
    assert error.value.seen == "missing tini, vagrant"
    assert error.value.fix == (
        "Install them (and the Vagrant plugin vagrant-libvirt) with your package manager"
    )


def test_a_system_without_apt_that_has_all_programs_will_do(programs):
    for name in PROGRAMS:
        programs(name)
    assert packages.missing() == []


def test_description_says_what_packages_are_for():
    assert (
        packages.describe(["tini", "qemu-utils", "packer"])
        == "virtual machines: qemu-utils, tini; images: packer"
    )


def test_a_group_can_be_asked_for_alone_and_a_renamed_library_counts(programs, tmp_path):
    lines = "\n".join(
        f"{name}{'t64' if name == 'libgtk-3-0' else ''} installed"
        for name in packages.OPTIONAL[packages.VIEWER]
        if name != "libnss3"
    )
    programs("apt-get", "exit 99")
    programs("dpkg-query", f"cat <<'END'\n{lines}\nEND")
    (tmp_path / "cat").symlink_to("/bin/cat")
    assert packages.missing([packages.VIEWER], alone=True) == ["libnss3"]


def test_on_an_unknown_release_a_library_has_the_name_that_apt_knows(
    programs, apt, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(releases, "key", lambda: "ubuntu-28.04")
    programs(
        "apt-cache", f"printf '%s\n' \"$@\" >{tmp_path}/asked; echo 'libgtk-3-0t64 | 3.24.41 | a mirror'"
    )
    packages.install(["libgtk-3-0", "libnss3", "squashfs-tools"])
    assert apt.calls[1][-4:] == ["install", "libgtk-3-0t64", "libnss3", "squashfs-tools"]
    assert sorted((tmp_path / "asked").read_text().split()) == ["libgtk-3-0t64", "libnss3t64", "madison"]
    assert (
        capsys.readouterr().err.splitlines()[0].startswith("packages may have other names here: ubuntu-28.04")
    )


def test_on_a_known_release_a_library_has_the_name_of_the_table(programs, apt, monkeypatch):
    programs("apt-cache", "exit 99")
    monkeypatch.setattr(releases, "key", lambda: "ubuntu-24.04")
    packages.install(["libgtk-3-0", "libnss3"])
    assert apt.calls[1][-3:] == ["install", "libgtk-3-0t64", "libnss3"]


def test_what_a_release_lacks_is_told_before_root_is_asked_for(programs, apt, monkeypatch):
    programs("apt-cache")
    monkeypatch.setattr(releases, "key", lambda: "ubuntu-24.04")
    with pytest.raises(UserError) as error:
        packages.install(["tini", "vagrant", "vagrant-libvirt"])
    assert str(error.value) == (
        "system Ubuntu 24.04: must have the packages tini, vagrant, vagrant-libvirt (found: not in its package sources: "
        "vagrant (dropped by Ubuntu for its licence), vagrant-libvirt (needs Ubuntu's vagrant)). Run the lab on Debian "
        "12, in a VM for instance; or add a package source that has them, type `sudo apt-get update`, and the command "
        "again. INVENTORY=hosts.yml and ./task view need none of them"
    )
    assert apt.calls == []


def test_another_source_may_have_what_a_release_lacks(programs, apt, monkeypatch):
    programs("apt-cache", "echo ' vagrant | 2.4.9-1 | a source of the maker'")
    monkeypatch.setattr(releases, "key", lambda: "ubuntu-24.04")
    packages.install(["vagrant"])
    assert apt.calls[1][-2:] == ["install", "vagrant"]


def test_a_program_from_elsewhere_counts_where_the_release_lacks_it(programs, tmp_path, monkeypatch):
    there = [name for name in packages.names() if name not in {"tini", "packer"}]
    programs("apt-get")
    programs("packer")
    programs("tini")
    programs("dpkg-query", "printf '%s installed\\n' " + " ".join(there))
    monkeypatch.setattr(releases, "key", lambda: "debian-13")
    assert packages.missing() == ["tini"]


@pytest.fixture
def apt(monkeypatch):
    """Records what would run as root; apt.codes maps update and install to exit codes."""

    apt = SimpleNamespace(codes={"update": 0, "install": 0}, said={"update": "", "install": ""}, calls=[])

    def run(argv, why, **options):
        apt.calls.append(argv)
        verb = next(verb for verb in apt.codes if verb in argv)
        return subprocess.CompletedProcess(argv, apt.codes[verb], stderr=apt.said[verb])

    monkeypatch.setattr(packages, "run_as_root", run)
    monkeypatch.setattr(packages, "prefix", lambda argv: [])
    monkeypatch.setattr(host_apt, "LOCKS", ())
    return apt


def test_install_names_the_packages_first_and_takes_no_recommends(apt, capsys):
    packages.install(["tini", "packer"])
    assert " ".join(capsys.readouterr().err.split()) == (
        "these packages are missing (virtual machines: tini; images: packer)"
    )
    assert [call[-1] for call in apt.calls] == ["update", "packer"]
    assert apt.calls[1][-5:] == ["--yes", "--no-install-recommends", "install", "tini", "packer"]
    # What goes wrong is known by words, which must not be the operator's language.
    assert {"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"} < set(apt.calls[1])


def test_a_broken_foreign_source_does_not_stop_the_install(apt, monkeypatch):
    monkeypatch.setattr(apt, "codes", {"update": 100, "install": 0})
    packages.install(["tini"])
    assert len(apt.calls) == 2


def test_a_failed_install_says_what_to_do(apt, monkeypatch):
    monkeypatch.setattr(apt, "codes", {"update": 100, "install": 100})
    with pytest.raises(UserError) as error:
        packages.install(["tini", "packer"])
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
        packages.install(["tini"])
    assert str(error.value) == (
        "apt-get install: must succeed once for tini (found: E: The repository 'http://ppa.example.org/x noble Release' "
        "does not have a Release file. | E: Unable to locate package tini). Correct or remove the package source that "
        "is named (http://ppa.example.org/x), or check the network, then type the command again; what is installed "
        "by then is kept"
    )


CUT_OFF = "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.\n"
UNMET = "E: Unmet dependencies. Try 'apt --fix-broken install' with no packages (or specify a solution).\n"
HELD = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt-get)\n"
FULL = "dpkg: error processing archive /x.deb (--unpack):\nE: No space left on device\n"


@pytest.fixture
def answers(monkeypatch):
    """answers(what one call after the other complains of, "" for success): the list that calls and waits go to."""

    def give(*complaints):
        left, log = list(complaints), []

        def run(argv, why, **options):
            log.append((argv, why))
            said = left.pop(0)
            return subprocess.CompletedProcess(argv, 100 if said else 0, stderr=said)

        monkeypatch.setattr(packages, "run_as_root", run)
        monkeypatch.setattr(packages, "prefix", lambda argv: [])
        monkeypatch.setattr(host_apt, "wait_until_free", lambda: log.append("wait"))
        return log

    return give


def in_short(log):
    """What the calls were without options: "update", "install tini", "dpkg --configure -a"."""
    return [
        one if one == "wait" else " ".join(one[0][one[0].index("dpkg") :])
        if "dpkg" in one[0]
        else " ".join(word for word in one[0][one[0].index("apt-get") + 1 :] if word[:2] != "--" or "broken" in word)
        for one in log
    ]  # fmt: skip


def test_an_installation_that_was_cut_off_is_ended_and_announced(answers):
    log = answers("", CUT_OFF, "dpkg: error processing package x (--configure):\n", UNMET, "", "")
    packages.install(["tini"])
    assert in_short(log) == [
        "wait", "update", "install tini", "dpkg --configure -a", "install tini", "--fix-broken install", "install tini",
    ]  # fmt: skip
    assert [log[3][1], log[5][1]] == [
        "an earlier installation was cut off: ending it with dpkg --configure -a",
        "an earlier installation was cut off: ending it with apt-get --fix-broken install",
    ]
    assert log[3][0][0] == "env" and "DEBIAN_FRONTEND=noninteractive" in log[3][0]
    assert "--no-remove" in log[5][0] and "--yes" in log[5][0]


def test_what_cannot_be_ended_is_tried_once_and_told(answers):
    log = answers("", UNMET, "E: Packages need to be removed but remove is disabled.\n", UNMET)
    with pytest.raises(UserError) as error:
        packages.install(["tini"])
    assert in_short(log)[2:] == ["install tini", "--fix-broken install", "install tini"]
    assert error.value.seen == f"E: Packages need to be removed but remove is disabled. | {UNMET.strip()}"
    assert error.value.fix.startswith("Put right what is named; `sudo dpkg --configure -a`")


def test_a_disk_that_fills_while_it_is_ended_is_told(answers):
    answers("", UNMET, FULL, UNMET)
    with pytest.raises(UserError, match="Free some disk"):
        packages.install(["tini"])


def test_after_it_was_ended_another_failure_is_told_by_its_own_cause(answers):
    answers("", CUT_OFF, "", "E: Unable to locate package tini\n")
    with pytest.raises(UserError) as error:
        packages.install(["tini"])
    assert error.value.seen == "E: Unable to locate package tini"
    assert error.value.fix.startswith("Check the network")


def test_a_program_that_was_faster_is_waited_for_once_more(answers):
    log = answers(HELD, "", HELD, "")
    packages.install(["tini"])
    assert in_short(log) == ["wait", "update", "wait", "update", "install tini", "wait", "install tini"]
    answers("", HELD, HELD)
    with pytest.raises(UserError, match="Wait until the program that is named ends"):
        packages.install(["tini"])


def test_without_sudo_root_is_told_which_packages(apt, monkeypatch):
    told = []
    monkeypatch.setattr(packages, "prefix", told.append)
    packages.install(["tini"])
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
    assert packages.system_name(tmp_path / "os-release") == name


def test_system_name_without_the_file(tmp_path):
    assert packages.system_name(tmp_path / "absent") == "unknown"
