"""What is there before the viewer starts, what stops it, and how Electron is called."""

import os
import socket
from pathlib import Path

import pytest
from lab_commands import lab

from overlaylab.core import paths, progress, task_log
from overlaylab.core.errors import UserError
from overlaylab.desktop import modules, start
from overlaylab.desktop import runtime as viewer_runtime
from overlaylab.desktop import user as viewer_user
from overlaylab.desktop.runtime import Runtime
from overlaylab.desktop.user import User
from overlaylab.machine import access, userns
from overlaylab.machine import packages as host_packages

OWN = User(os.getuid(), os.getgid(), "operator")


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({}, "neither DISPLAY nor WAYLAND_DISPLAY is set"),
        ({"DISPLAY": ""}, "neither DISPLAY nor WAYLAND_DISPLAY is set"),
        ({"WAYLAND_DISPLAY": "wayland-0"}, None),
        ({"DISPLAY": ":64999.0"}, "no X server answers at DISPLAY=:64999.0"),
        ({"DISPLAY": "/private/tmp/org.xquartz:0"}, None),
    ],
)
def test_without_a_screen_it_is_said_why(variables, problem):
    assert start.display_problem(variables) == problem


def test_a_server_that_answers_will_do():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        number = server.getsockname()[1] - 6000
        if number < 0:
            pytest.skip("a port below those of X")
        assert start.display_problem({"DISPLAY": f"127.0.0.1:{number}"}) is None


def test_no_screen_is_a_mistake_that_names_the_report():
    with pytest.raises(UserError) as error:
        start.check_display({})
    assert "./task results:report" in error.value.fix


def no_database(file):
    """Nothing is done to what is shown."""


@pytest.fixture
def namespaces(monkeypatch, tmp_path):
    """namespaces(words) makes that what unshare fails with; "" lets it pass. Sysctls are as namespaces.sysctls says."""
    sysctls: dict[str, str] = {}
    monkeypatch.setattr(userns, "settings", lambda: sysctls)
    monkeypatch.setattr(userns, "PROFILES", tmp_path / "apparmor.d")

    def use(words: str) -> Path:
        unshare = tmp_path / "unshare"
        unshare.write_text(f"#!/bin/sh\n[ -z '{words}' ] || {{ echo '{words}' >&2; exit 1; }}\n")
        unshare.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
        return tmp_path

    use.sysctls = sysctls
    return use


def test_user_namespaces_are_enough_for_the_sandbox(namespaces):
    assert start.sandbox_problem(OWN, namespaces("")) is None


def test_without_them_the_setting_is_named_and_what_to_do(namespaces):
    folder = namespaces("unshare: unshare failed: Operation not permitted")
    namespaces.sysctls["kernel.unprivileged_userns_clone"] = "0"
    with pytest.raises(UserError) as error:
        start.check_sandbox(OWN, Runtime("current", "1", folder))
    assert error.value.seen == (
        "operator may not make user namespaces: kernel.unprivileged_userns_clone is 0"
    )
    helper = f"{folder}/chrome-sandbox"
    assert error.value.fix == (
        f"Give the sandbox its helper: sudo chown root:root {helper} && sudo chmod 4755 {helper}. Or: Allow it on this "
        "machine: printf '%s\\n' kernel.unprivileged_userns_clone=1 | sudo tee /etc/sysctl.d/60-overlaylab.conf && "
        "sudo sysctl --load /etc/sysctl.d/60-overlaylab.conf"
    )


@pytest.mark.parametrize(
    ("label", "allowed"),
    [
        ("unconfined\\0", False),
        ("overlaylab-electron (unconfined)\\n", True),
        ("docker-default (enforce)\\n", True),
    ],
)
def test_where_apparmor_decides_the_program_itself_is_asked_for_its_profile(namespaces, label, allowed):
    folder = namespaces("")  # unshare has a profile of its own
    namespaces.sysctls["kernel.apparmor_restrict_unprivileged_userns"] = "1"
    (folder / "electron").write_text(f'#!/bin/sh\n[ "$ELECTRON_RUN_AS_NODE$1" = 1-p ] && printf "{label}"\n')
    (folder / "electron").chmod(0o755)
    problem = "operator may not make user namespaces: kernel.apparmor_restrict_unprivileged_userns is 1"
    assert start.sandbox_problem(OWN, folder) == (None if allowed else problem)


def test_before_electron_is_there_its_profile_is_looked_for(namespaces):
    folder = namespaces("")
    namespaces.sysctls["kernel.apparmor_restrict_unprivileged_userns"] = "1"
    assert "apparmor_restrict" in start.sandbox_problem(OWN, folder)
    (folder / "apparmor.d").mkdir()
    (folder / "apparmor.d/overlaylab-electron").touch()
    assert start.sandbox_problem(OWN, folder) is None


def test_apparmors_refusal_takes_a_profile_for_electron_alone(namespaces, monkeypatch):
    namespaces.sysctls["kernel.apparmor_restrict_unprivileged_userns"] = "1"
    advice = start.sandbox_advice(Path("/var/tmp/overlaylab-mona/electron/38.1.0"))
    assert (
        """'profile overlaylab-electron "/var/tmp/overlaylab-mona/electron/*/electron" flags=(unconfined) {'"""
        in advice
    )
    assert "sysctl" not in advice


def test_without_a_setting_the_systems_own_words_are_told(namespaces):
    folder = namespaces("unshare: unshare failed: No space left on device")
    assert start.sandbox_problem(OWN, folder) == (
        "operator may not make user namespaces: unshare: unshare failed: No space left on device"
    )


def test_the_helper_is_enough_too(namespaces, monkeypatch):
    folder = namespaces("refused")
    monkeypatch.setattr(start.Path, "stat", lambda path: os.stat_result((0o104755, *[0] * 9)))
    assert start.sandbox_problem(OWN, folder) is None


class Started(Exception):
    """Electron would run now."""


@pytest.fixture
def machine(own_cache, monkeypatch, tmp_path):
    """A machine on which everything is there but packages; its log says what was done. The start raises Started."""
    log: list[object] = []
    missing = ["libgtk-3-0"]

    def install(packages):
        log.append(("install", packages))
        missing.clear()

    def execute(program, argv, environment):
        raise Started(argv, environment)

    runtime = Runtime("current", "45", tmp_path / "electron" / "45")
    monkeypatch.setattr(host_packages, "missing", lambda groups, alone: [*missing])
    monkeypatch.setattr(host_packages, "install", install)
    monkeypatch.setattr(modules, "ensure_modules", lambda: log.append("modules"))
    monkeypatch.setattr(viewer_runtime, "ensure", lambda kind: log.append(("runtime", kind)) or runtime)
    monkeypatch.setattr(modules, "ensure_build", lambda: log.append("build"))
    monkeypatch.setattr(start, "sandbox_problem", lambda user, folder: None)
    monkeypatch.setattr(viewer_user, "viewing", lambda: OWN)
    monkeypatch.setattr(os, "execvpe", execute)
    monkeypatch.setattr(access, "prepare_cache", lambda: own_cache.mkdir(exist_ok=True))
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setenv("LAB_DB", str(tmp_path / "results" / "lab.sqlite"))
    return log


def test_what_is_missing_is_made_before_electron_starts(machine, tmp_path):
    file = tmp_path / "some.sqlite"
    file.touch()
    with pytest.raises(Started) as started:
        start.view(file, "current", lambda shown: machine.append(("database", shown)))
    assert machine == [
        ("install", ["libgtk-3-0"]),
        "modules",
        ("runtime", "current"),
        "build",
        ("database", file),
    ]
    argv, environment = started.value.args
    electron = str(tmp_path / "electron" / "45")
    assert argv == [
        f"{electron}/electron",
        str(paths.VIEWER),
        "--log-level=3",
        "--ozone-platform=wayland",
        f"--home={tmp_path}/results/lab.sqlite",
        str(file),
    ]
    assert environment["ELECTRON_OVERRIDE_DIST_PATH"] == electron


def test_the_log_ends_where_electron_takes_over(machine, own_cache, monkeypatch, capsys):
    monkeypatch.setattr(task_log, "LONG", 0.0)
    own_cache.mkdir()
    task_log.begin("./task view", lambda: "0.1.0")
    progress.say("building the viewer")
    with pytest.raises(Started):
        start.view(None, "current", lambda shown: None)
    (log,) = (own_cache / "logs" / "tasks").iterdir()
    assert [line[9:] for line in log.read_text().splitlines()][2:] == [
        "building the viewer",
        "the viewer is started",
    ]
    assert capsys.readouterr().err.splitlines()[1:] == [f"the log of this is {log}"]


@pytest.mark.parametrize(
    ("options", "groups"),
    [
        ([], (host_packages.VIEWER,)),
        (
            ["--screen", "--browser"],
            (host_packages.VIEWER, host_packages.SCREENLESS, host_packages.BROWSER),
        ),
    ],
)
def test_what_a_screen_and_a_browser_take_comes_in_the_same_installation(
    machine, monkeypatch, options, groups
):
    asked = []
    monkeypatch.setattr(host_packages, "missing", lambda groups, alone: asked.append((groups, alone)))
    done = lab("viewer", "prepare", *options)
    assert (done.exit_code, asked) == (0, [(groups, True)]), done.output


def test_before_there_are_results_the_window_opens_empty(machine):
    with pytest.raises(Started) as started:
        start.view(None, None, no_database)
    assert started.value.args[0][-2] == "--ozone-platform=wayland"
    assert machine[-1] == "build"


def test_by_default_the_results_are_shown(machine, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "lab.sqlite").touch()
    with pytest.raises(Started) as started:
        start.view(None, None, no_database)
    assert started.value.args[0][-1] == str(tmp_path / "results" / "lab.sqlite")


def test_this_labs_own_files_are_those_of_its_results_or_the_one_that_is_named(machine, monkeypatch):
    monkeypatch.delenv("LAB_DB")
    monkeypatch.setattr(paths, "database", lambda: paths.ROOT / "results" / "lab.sqlite")
    with pytest.raises(Started) as started:
        start.view(paths.ROOT / "README.md", None, no_database)
    assert started.value.args[0][-2] == f"--home={paths.ROOT / 'results'}"


def test_a_file_that_is_not_there_is_said_before_anything_is_made(machine, tmp_path):
    with pytest.raises(UserError) as error:
        start.view(tmp_path / "absent.sqlite", None, no_database)
    assert error.value.where == f"{tmp_path}/absent.sqlite"
    assert machine == []


@pytest.fixture
def as_root(machine, monkeypatch, own_cache):
    """Root on an X display, who becomes another user that this one can play."""
    monkeypatch.setattr(
        viewer_user, "viewing", lambda: User(os.getuid(), os.getgid(), "user 65529", ("env",))
    )
    monkeypatch.setattr(start, "display_problem", lambda environment: None)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("XAUTHORITY", "/nowhere")
    monkeypatch.setenv("ROOTS_SECRET", "1")
    return own_cache / f"viewer-{os.getuid()}"


def test_for_root_another_user_starts_it_in_a_home_of_its_own(as_root, capsys, tmp_path):
    file = tmp_path / "some.sqlite"
    file.write_text("x")
    with pytest.raises(Started) as started:
        start.view(file, None, no_database)
    argv, environment = started.value.args
    assert argv[0] == "env"
    assert argv[2:] == [
        str(paths.VIEWER),
        "--log-level=3",
        f"--home={tmp_path}/results/lab.sqlite",
        str(file),
    ]
    assert environment["HOME"] == str(as_root)
    assert "ROOTS_SECRET" not in environment
    assert f"it can save below {as_root}" in " ".join(capsys.readouterr().err.split())


def test_a_file_that_this_user_cannot_read_is_said(as_root, monkeypatch, tmp_path):
    (tmp_path / "some.sqlite").touch()
    monkeypatch.setattr(viewer_user, "may_read", lambda user, file: False)
    with pytest.raises(UserError) as error:
        start.view(tmp_path / "some.sqlite", None, no_database)
    assert error.value.rule == "must be readable by user 65529"
