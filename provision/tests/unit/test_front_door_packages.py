"""What ./task does where a package is missing: how apt-get is called, and what is said where it cannot."""

import fcntl
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from overlaylab.core.paths import ROOT
from overlaylab.machine import apt, packages

LIBRARY = ROOT / "provision/toolchain/packages.sh"
INSTALL = "install_package python3-venv"
TOOLS = ("sh", "seq", "stat", "cat", "sleep", "env", "grep", "tail", "paste", "sed", "printf")


@pytest.fixture
def machine(tmp_path):
    """An ordinary user's machine of scripts: machine(NAME="text") adds a program; machine.type(shell text) runs it."""

    class Machine:
        path = tmp_path / "bin"

        def __call__(self, **programs):
            for name, text in programs.items():
                program = self.path / name.replace("_", "-")
                program.write_text(f"#!/bin/sh\n{text}\n")
                program.chmod(0o755)

        def type(self, text=INSTALL):
            script = f"""
                set -eu
                user=mona
                fail() {{ printf 'overlaylab: %s\\n' "$*" >&2; exit 2; }}
                apt_get() {{ $sudo apt-get "$@"; }}
                . {LIBRARY}
                apt_locks={tmp_path}/lock apt_wait=1
                {text}"""
            return subprocess.run(
                [self.path / "sh", "-c", script], env={"PATH": str(self.path)}, text=True, capture_output=True,
                stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip

        def calls(self):
            return (tmp_path / "calls").read_text().splitlines()

    there = Machine()
    there.path.mkdir()
    for name in TOOLS:
        (there.path / name).symlink_to(shutil.which(name))
    calls = tmp_path / "calls"
    there(
        id="echo 1000",
        sudo=f'echo "sudo $*" >>{calls}; shift; exec "$@"',
        true="exit 0",
        apt_get=f'echo "$DEBIAN_FRONTEND apt-get $*" >>{calls}',
    )
    return there


def test_apt_is_called_as_host_packages_calls_it(machine, monkeypatch):
    done = machine.type()
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "overlaylab: installing the package python3-venv with apt-get (with sudo)\n"
    called = []

    def run(argv, why, **options):
        called.append(argv)
        return subprocess.CompletedProcess(argv, 0, stdout="", stderr="")

    monkeypatch.setattr(packages, "run_as_root", run)
    monkeypatch.setattr(packages, "prefix", lambda argv: [])
    monkeypatch.setattr(apt, "LOCKS", ())
    packages.install(["python3-venv"])
    expected = [" ".join(argv).replace("Timeout=300", "Timeout=1") for argv in called]
    sudo = [call.removeprefix("sudo -n ") for call in machine.calls() if call.startswith("sudo -n env")]
    assert sudo == expected


def test_no_sudo_says_what_root_is_to_type(machine):
    (machine.path / "sudo").unlink()
    done = machine.type()
    assert (done.returncode, done.stderr) == (
        2,
        "overlaylab: package python3-venv: must be installed by root, and there is no sudo (found: user mona). "
        "Install sudo and let mona use it, or have root type: apt-get update && apt-get install "
        "--no-install-recommends python3-venv; then type the command again\n",
    )


def test_sudo_that_would_ask_is_one_paragraph_before_anything_is_done(machine, tmp_path):
    machine(sudo="echo 'sudo: a password is required' >&2; exit 1")
    done = machine.type()
    assert (done.returncode, done.stderr) == (
        2,
        "overlaylab: sudo: must not need a password where no terminal can ask for it (found: sudo: a password is "
        "required). Type the command in a terminal once, or have root type: apt-get update && apt-get install "
        "--no-install-recommends python3-venv; then type it again\n",
    )
    assert not (tmp_path / "calls").exists()


def test_a_system_without_apt_is_told_what_is_missing(machine):
    (machine.path / "apt-get").unlink()
    done = machine.type()
    assert done.returncode == 2
    assert done.stderr.startswith(
        "overlaylab: system: must be Debian or Ubuntu, or have Python's modules venv"
    )


def test_a_held_lock_is_waited_for_and_its_holder_is_named(machine, tmp_path):
    with (tmp_path / "lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        done = machine.type()
    name = Path("/proc/self/comm").read_text().strip()
    holder = f"{name}, process {os.getpid()}"
    assert (done.returncode, done.stderr.splitlines()[1:]) == (
        2,
        [
            f"overlaylab: packages are being installed by {holder}: waiting for it, 1 s at most",
            f"overlaylab: apt: must not be in use by another program (found: {holder}, for 1 s). Wait until that "
            "ends, then type the command again; nothing was changed",
        ],
    )
    assert not [call for call in machine.calls() if "apt-get" in call]
    assert machine.type().returncode == 0  # the file is still there, and nobody holds it


def test_a_held_lock_is_found_while_others_come_and_go(machine, tmp_path):
    ended = threading.Event()

    def come_and_go() -> None:
        while not ended.is_set():
            with (tmp_path / "other").open("w") as other:
                fcntl.flock(other, fcntl.LOCK_EX)

    others = [threading.Thread(target=come_and_go) for _ in range(4)]
    with (tmp_path / "lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        for thread in others:
            thread.start()
        try:
            found = machine.type("for try in $(seq 100); do apt_holder; done").stdout.splitlines()
        finally:
            ended.set()
    assert [line.rpartition(" ")[2] for line in found] == [str(os.getpid())] * 100


def test_a_broken_source_does_not_stop_the_installation(machine):
    machine(
        apt_get='case "$*" in *update) echo "E: The repository x has no Release file." >&2; exit 100;; esac'
    )
    done = machine.type()
    assert (done.returncode, "Release" in done.stderr) == (0, False)


def test_where_the_installation_fails_too_the_broken_source_is_named(machine):
    machine(
        apt_get='case "$*" in *update) echo "E: The repository x has no Release file." >&2; exit 100;; esac\n'
        'echo "Reading…"; echo "E: Unable to locate package python3-venv" >&2; exit 100'
    )
    done = machine.type()
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "overlaylab: package python3-venv: must be installed once (found: E: The repository x has no Release file. | "
        "E: Unable to locate package python3-venv). Check the network, and the package sources that are named, "
        "then type the command again",
    )


def test_a_full_disk_is_told_from_a_broken_source(machine):
    machine(apt_get='echo "E: Write error - write (28: No space left on device)" >&2; exit 100')
    assert "Free some disk (apt-get clean, as root, removes downloaded packages)" in machine.type().stderr


# An apt-get that fails by what the files held, interrupted and unmet say, while they are there.
_STATE = """echo "apt-get $*" | sed 's/--[oqy][^ ]* //g' >>{0}/done
case "$*" in
    *update) ;;
    *--fix-broken*) rm -f {0}/unmet;;
    *) for state in held interrupted unmet; do if [ -e {0}/$state ]; then cat {0}/$state >&2; exit 100; fi; done;;
esac"""


@pytest.fixture
def cut_off(machine, tmp_path):
    """cut_off(held=…, interrupted=…, unmet=…): a machine whose apt-get complains so; dpkg and waiting put it right."""

    def make(dpkg=f"rm -f {tmp_path}/interrupted", **complaints):
        (machine.path / "rm").symlink_to(shutil.which("rm"))
        machine(apt_get=_STATE.format(tmp_path), dpkg=f'echo "dpkg $*" >>{tmp_path}/done; {dpkg}')
        for name, text in complaints.items():
            (tmp_path / name).write_text(f"E: {text}\n")
        return machine

    return make


def test_an_installation_that_was_cut_off_is_ended_and_announced(cut_off, tmp_path):
    machine = cut_off(
        interrupted="dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.",
        unmet="Unmet dependencies. Try 'apt --fix-broken install' with no packages (or specify a solution).",
    )
    done = machine.type()
    assert (done.returncode, done.stderr.splitlines()[1:]) == (
        0,
        [
            "overlaylab: an earlier installation was cut off: ending it with dpkg --configure -a (with sudo)",
            "overlaylab: an earlier installation was cut off: ending it with apt-get --fix-broken install (with sudo)",
        ],
    )
    install = "apt-get --no-install-recommends install python3-venv"
    assert (tmp_path / "done").read_text().splitlines() == [
        "apt-get update", install, "dpkg --configure -a", install,
        "apt-get --no-install-recommends --no-remove --fix-broken install", install,
    ]  # fmt: skip


def test_what_cannot_be_ended_is_tried_once_and_told(cut_off, tmp_path):
    said = "dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem."
    done = cut_off("echo 'dpkg: error processing package x' >&2; exit 1", interrupted=said).type()
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        f"overlaylab: package python3-venv: must be installed once (found: dpkg: error processing package x | E: {said}). "
        "Put right what is named; dpkg --configure -a and apt-get --fix-broken install, as root, try again, then type "
        "the command again",
    )
    assert (tmp_path / "done").read_text().count("dpkg --configure") == 1


def test_a_program_that_was_faster_is_waited_for_once_more(cut_off, tmp_path):
    machine = cut_off(held="Could not get lock /var/lib/dpkg/lock. It is held by process 7 (apt-get)")
    done = machine.type(f"wait_for_apt() {{ [ ! -e {tmp_path}/done ] || rm -f {tmp_path}/held; }}; {INSTALL}")
    assert (done.returncode, len((tmp_path / "done").read_text().splitlines())) == (0, 3)
    (tmp_path / "held").write_text(
        "E: Could not get lock /var/lib/dpkg/lock. It is held by process 7 (apt-get)\n"
    )
    assert "Wait until the program that is named ends, then type" in machine.type().stderr


@pytest.mark.parametrize(("index", "lacks"), [("Package: tini\n", True), ("Package: python3-venv\n", False)])
def test_a_package_that_an_older_bundle_lacks_is_told_as_such(machine, tmp_path, index, lacks):
    machine(apt_get='echo "E: Unable to locate package python3-venv" >&2; exit 100')
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages/Packages").write_text(index)
    said = machine.type(f"bundle={tmp_path}; {INSTALL}").stderr
    assert ("The bundle does not hold it: make one of this checkout, or move" in said) is lacks
