"""Around apt-get: who holds its locks, and what its output means for the user."""

import fcntl
import multiprocessing
import os
from pathlib import Path

import pytest

from overlaylab.core.errors import UserError
from overlaylab.machine import apt

SOURCE = "W: Failed to fetch http://apt.example.org/dists/x/InRelease  Temporary failure resolving 'apt.example.org'"

DPKG = "E: Sub-process /usr/bin/dpkg returned an error code (1)"
REPAIR = (
    "Put right what is named; `sudo dpkg --configure -a` and `sudo apt-get --fix-broken install` try again"
)


@pytest.fixture
def lock(monkeypatch, tmp_path):
    path = tmp_path / "lock"
    path.touch()
    monkeypatch.setattr(apt, "LOCKS", (tmp_path / "absent", path))
    monkeypatch.setattr(apt, "WAIT", 0)
    return path


def test_nobody_holds_a_lock_that_is_a_mere_file(lock):
    assert apt.holder() is None
    apt.wait_until_free()


def test_the_holder_is_named_and_after_a_while_given_up(lock, capsys):
    me = f"{Path('/proc/self/comm').read_text().strip()}, process {os.getpid()}"
    with lock.open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        assert apt.holder() == me
        with pytest.raises(UserError) as error:
            apt.wait_until_free()
    assert capsys.readouterr().err == f"packages are being installed by {me}: waiting for it, 0 s at most\n"
    assert str(error.value) == (
        f"apt: must not be in use by another program (found: {me}, for 0 s). Wait until that ends, then type the "
        "command again; nothing was changed"
    )


def _hold(path, begun, seconds):
    with path.open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        begun.set()
        begun.wait()
        import time

        time.sleep(seconds)


def test_waiting_ends_with_the_holder(lock, monkeypatch, capsys):
    monkeypatch.setattr(apt, "WAIT", 30)
    begun = multiprocessing.Event()
    other = multiprocessing.Process(target=_hold, args=(lock, begun, 0.3))
    other.start()
    assert begun.wait(20)
    apt.wait_until_free()
    other.join()
    assert f"process {other.pid}: waiting for it, 30 s at most" in capsys.readouterr().err


def test_waiting_for_a_lock_is_not_holding_it(lock, tmp_path):
    inode = lock.stat().st_ino
    table = tmp_path / "locks"
    table.write_text(
        f"1: POSIX  ADVISORY  WRITE 1 00:2b:7 0 EOF\n1: -> POSIX  ADVISORY  WRITE 1 00:2b:{inode} 0 EOF\n"
    )
    assert apt.holder(table) is None
    table.write_text(f"1: POSIX  ADVISORY  WRITE 999999999 00:2b:{inode} 0 EOF\n")
    assert apt.holder(table) == "a program, process 999999999"


def test_noise_is_not_passed_on(capsys):
    said = "debconf: delaying package configuration, since apt-utils is not installed\nW: something\n"
    assert apt.pass_on(said) == "W: something"
    assert capsys.readouterr().err == "W: something\n"
    assert apt.pass_on(None) == ""


@pytest.mark.parametrize(
    ("said", "seen", "fix"),
    [
        (
            f"{SOURCE}\n{SOURCE}\nE: Unable to locate package tini",
            f"{SOURCE} | E: Unable to locate package tini",
            "Correct or remove the package source that is named (http://apt.example.org/dists/x/InRelease), or check "
            "the network",
        ),
        (
            f"{SOURCE}\n{SOURCE.replace('apt.', 'deb.')}",
            f"{SOURCE} | {SOURCE.replace('apt.', 'deb.')}",
            "Check the network and the package sources (Debian: main; Ubuntu: main and universe)",
        ),
        (
            "E: Malformed entry 1 in list file /etc/apt/sources.list.d/mine.list (Component)",
            "E: Malformed entry 1 in list file /etc/apt/sources.list.d/mine.list (Component)",
            "Correct or remove the package source that is named (/etc/apt/sources.list.d/mine.list), or check the "
            "network",
        ),
        (
            "dpkg: error processing archive /x.deb: cannot write (No space left on device)",
            "dpkg: error processing archive /x.deb: cannot write (No space left on device)",
            "Free some disk (`sudo apt-get clean` removes downloaded packages)",
        ),
        (
            "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt-get)",
            "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt-get)",
            "Wait until the program that is named ends",
        ),
        (
            "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.",
            "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.",
            REPAIR,
        ),
        (
            f"dpkg: error processing package grub-common (--configure):\n{DPKG}",
            f"dpkg: error processing package grub-common (--configure): | {DPKG}",
            REPAIR,
        ),
        (
            # Of packages to come, which no repair helps.
            "E: Unable to correct problems, you have held broken packages.",
            "E: Unable to correct problems, you have held broken packages.",
            "Check the network and the package sources (Debian: main; Ubuntu: main and universe)",
        ),
        (
            "",
            "exit code 100, its output is above",
            "Check the network and the package sources (Debian: main; Ubuntu: main and universe)",
        ),
    ],
)
def test_what_is_told_of_a_failure(said, seen, fix):
    error = apt.failed(["tini"], 100, said)
    assert error.seen == seen
    assert error.fix == f"{fix}, then type the command again; what is installed by then is kept"
