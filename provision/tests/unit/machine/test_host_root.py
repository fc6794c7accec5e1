"""How root is reached: directly, by sudo in a terminal, by sudo -n elsewhere."""

import sys

import pytest

from overlaylab.core.errors import UserError
from overlaylab.machine import root


@pytest.fixture
def as_user(monkeypatch, tmp_path):
    """An ordinary user whose PATH holds nothing but what the test puts there."""
    monkeypatch.setattr(root, "is_root", lambda: False)
    monkeypatch.setattr(root, "user_name", lambda: "mona")
    monkeypatch.setenv("PATH", str(tmp_path))

    def sudo(text):
        (tmp_path / "sudo").write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "sudo").chmod(0o755)

    return sudo


@pytest.fixture
def terminal(monkeypatch):
    """Set whether standard input is a terminal."""
    return lambda answer: monkeypatch.setattr(
        sys, "stdin", type("Input", (), {"isatty": lambda self: answer})()
    )


def test_root_needs_nothing(monkeypatch):
    monkeypatch.setattr(root, "is_root", lambda: True)
    assert root.prefix() == []


def test_a_terminal_may_ask(as_user, terminal):
    as_user("exit 1")
    terminal(True)
    assert root.prefix() == ["sudo"]


def test_without_a_terminal_sudo_must_not_ask(as_user, terminal):
    as_user('[ "$*" = "-n true" ]')
    terminal(False)
    assert root.prefix() == ["sudo", "-n"]


def test_a_refusal_says_what_to_do(as_user, terminal):
    as_user('echo "sudo: a password is required" >&2; exit 1')
    terminal(False)
    with pytest.raises(UserError) as error:
        root.prefix()
    assert str(error.value) == (
        "sudo: must not need a password where no terminal can ask for it (found: sudo: a password is "
        "required). Type the command in a terminal, where sudo can ask; then type it again"
    )


def test_a_refusal_says_what_root_is_to_type_instead(as_user, terminal):
    as_user("exit 1")
    terminal(False)
    with pytest.raises(UserError) as error:
        root.prefix(["apt-get", "install", "lxc"])
    assert (error.value.seen, error.value.fix) == (
        "exit code 1",
        "Type the command in a terminal, where sudo can ask, or have root type: apt-get install lxc; then type it again",
    )


def test_no_sudo_at_all(as_user, terminal):
    terminal(True)
    with pytest.raises(UserError) as error:
        root.prefix()
    assert str(error.value) == (
        "sudo: must be installed where you are not root (found: user mona, no sudo). Install sudo and let mona use "
        "it; then type the command again"
    )


def test_without_sudo_root_is_told_what_to_type(as_user, terminal):
    terminal(False)
    with pytest.raises(UserError) as error:
        root.run_as_root(["usermod", "--append", "--groups", "libvirt", "mona"], "joining")
    assert error.value.fix == (
        "Install sudo and let mona use it, or have root type: usermod --append --groups libvirt mona; then type the "
        "command again"
    )


def test_the_reason_is_said_before_the_command_runs(as_user, terminal, capfd):
    as_user('[ "$*" = "-n true" ] || { echo "ran $*"; exit 3; }')
    terminal(False)
    done = root.run_as_root(["echo", "x"], "starting it", capture=True)
    assert (done.returncode, done.stdout) == (3, "ran -n echo x\n")
    assert capfd.readouterr().err == "starting it (with sudo)\n"


def test_output_goes_to_stderr_because_stdout_is_for_results(as_user, terminal, capfd):
    as_user('[ "$*" = "-n true" ] || echo done')
    terminal(False)
    root.run_as_root(["x"], "starting it")
    assert capfd.readouterr() == ("", "starting it (with sudo)\ndone\n")
