"""The log of a task: what is in it, when it is kept, and that it is never worth a failure."""

import os
import stat
import sys
import time
from itertools import count

import pytest

from overlaylab.cli import main
from overlaylab.core import progress, task_log
from overlaylab.core.errors import UserError
from overlaylab.machine import access

TYPED = "./task lab:weave BLOCKS=1 -- --seed 7"


@pytest.fixture
def cache(own_cache, monkeypatch):
    """A cache folder that is there, on a machine whose clock stands still at 13:05:09 until a test lets it go on."""
    own_cache.mkdir()
    monkeypatch.setenv("OVERLAYLAB_TYPED", TYPED)
    monkeypatch.setattr(main, "_version", lambda: "0.1.0+a9ab47058231")
    now = time.struct_time((2026, 11, 25, 13, 5, 9, 2, 329, 0))
    real = time.strftime
    monkeypatch.setattr(task_log.time, "strftime", lambda form, at=now: real(form, now))
    monkeypatch.setattr(task_log.time, "gmtime", lambda: now)
    return own_cache


def run(monkeypatch, work, seconds=3.0):
    """The exit code of a command that does this, and what takes that long."""
    ticks = count(100.0, seconds)
    monkeypatch.setattr(task_log.time, "monotonic", lambda: next(ticks))
    monkeypatch.setattr(main, "cli", lambda **_: work())
    try:
        main.main()
    except SystemExit as ended:
        return ended.code
    return 0


def logs(cache):
    return sorted((cache / "logs" / "tasks").glob("*"))


def test_what_is_said_is_kept_with_its_time_and_the_path_told_at_the_end(cache, monkeypatch, capsys) -> None:
    def work():
        progress.say("provider: lxc\nas typed \x1b[2J[bold]")
        print("a result")

    assert run(monkeypatch, work) == 0
    (log,) = logs(cache)
    zone = time.strftime("%z", time.struct_time((2026, 11, 25, 13, 5, 9, 2, 329, 0)))
    assert log.name == f"20261125T130509Z-lab-weave-{os.getpid()}.log"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert log.read_text().splitlines() == [
        f"13:05:09 {TYPED}",
        f"13:05:09 overlaylab 0.1.0+a9ab47058231, 2026-11-25, UTC{zone}",
        "13:05:09 provider: lxc",
        "13:05:09 as typed \\u001b[2J[bold]",
        "13:05:09 done",
    ]
    said = capsys.readouterr()
    assert said.out == "a result\n"
    assert said.err.splitlines()[-1] == f"the log of this is {log}"
    assert "OVERLAYLAB_TYPED" not in os.environ  # what it starts was typed by nobody


@pytest.mark.parametrize("terminal", [True, False])
def test_a_step_is_in_it_when_it_begins_also_where_a_terminal_shows_it_otherwise(
    cache, monkeypatch, terminal
) -> None:
    monkeypatch.setattr(progress.console, "_force_terminal", terminal)
    during = []

    def work():
        with progress.step("boot", "bringing nodes up", 150):
            during.extend(logs(cache)[0].read_text().splitlines())

    run(monkeypatch, work)
    assert during[-1] == "13:05:09 bringing nodes up (about 2 min 30 s) …"
    assert logs(cache)[0].read_text().splitlines()[-2:] == [
        "13:05:09 bringing nodes up: 3 s",
        "13:05:09 done",
    ]


@pytest.mark.parametrize(
    ("error", "code", "last"),
    [
        (UserError("X", "must be y", fix="Do w"), 2, "X: must be y. Do w"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (SystemExit(1), 1, "ended with exit code 1"),
    ],
)
def test_where_a_task_fails_its_log_is_told_before_the_last_words(
    cache, monkeypatch, capsys, error, code, last
) -> None:
    def work():
        progress.say("begun")
        raise error

    assert run(monkeypatch, work) == code
    (log,) = logs(cache)
    assert log.read_text().splitlines()[-1] == f"13:05:09 {last}"
    refusal = [] if code == 1 else [f"overlaylab: {last}"]
    assert capsys.readouterr().err.splitlines() == ["begun", f"the log of this is {log}", *refusal]


def test_a_bug_is_in_it_with_its_traceback(cache, monkeypatch, capsys) -> None:
    def work():
        progress.say("begun")
        raise ZeroDivisionError("of nothing")

    with pytest.raises(ZeroDivisionError):
        run(monkeypatch, work)
    (log,) = logs(cache)
    assert log.read_text().splitlines()[-1] == "13:05:09 ZeroDivisionError: of nothing"
    assert capsys.readouterr().err == f"begun\nthe log of this is {log}\n"


@pytest.mark.parametrize(("said", "seconds"), [(["begun"], 2.9), ([], 100)])
def test_a_task_that_is_short_or_says_nothing_leaves_none(cache, monkeypatch, capsys, said, seconds) -> None:
    run(monkeypatch, lambda: [progress.say(line) for line in said], seconds)
    assert logs(cache) == []
    assert capsys.readouterr().err.splitlines() == said


def test_the_newest_twenty_stay_and_other_files_with_them(cache, monkeypatch) -> None:
    folder = cache / "logs" / "tasks"
    folder.mkdir(parents=True)
    (folder / "notes").write_text("mine")
    (cache / "logs" / "ansible-weave-converge.log").write_text("Ansible's")
    for age in range(25):
        (folder / f"{age:02}.log").write_text("old")
        os.utime(folder / f"{age:02}.log", (1e9 - age, 1e9 - age))
    run(monkeypatch, lambda: progress.say("begun"))
    names = [log.name for log in logs(cache)]
    assert names == [
        *(f"{age:02}.log" for age in range(19)),
        f"20261125T130509Z-lab-weave-{os.getpid()}.log",
        "notes",
    ]
    assert (cache / "logs" / "ansible-weave-converge.log").exists()


@pytest.mark.parametrize("stands", ["nothing", "a file", "a file for its folder", "another user's"])
def test_a_cache_folder_that_takes_none_is_no_failure(cache, monkeypatch, capsys, stands) -> None:
    if stands in ("nothing", "a file"):
        cache.rmdir()
    if stands == "a file":
        cache.write_text("")
    if stands == "a file for its folder":
        (cache / "logs").write_text("")
    if stands == "another user's":
        monkeypatch.setattr(task_log.os, "geteuid", lambda: os.getuid() + 1)
    assert run(monkeypatch, lambda: progress.say("begun")) == 0
    assert capsys.readouterr().err == "begun\n"
    assert logs(cache) == []
    assert cache.exists() == (stands != "nothing")


def test_a_task_that_removes_the_cache_folder_tells_of_no_log(cache, monkeypatch, capsys) -> None:
    def work():
        progress.say("removing")
        logs(cache)[0].unlink()
        progress.say("removed")

    assert run(monkeypatch, work) == 0
    assert (logs(cache), capsys.readouterr().err) == ([], "removing\nremoved\n")


def test_a_command_that_runs_again_in_new_groups_carries_its_log_on(cache, monkeypatch, capsys) -> None:
    monkeypatch.setattr(access, "outside_groups", lambda: ["kvm"])
    monkeypatch.setattr(access.shutil, "which", lambda _: "/usr/bin/sg")
    monkeypatch.setattr(access.os, "execv", lambda *_: sys.exit(0))
    monkeypatch.setitem(os.environ, "OVERLAYLAB_IN_GROUPS", "")

    def first():
        progress.say("installing packages")
        access.enter_groups()

    with monkeypatch.context() as patched:
        patched.setattr(task_log, "end", lambda _: None)  # this program is gone by then
        run(patched, first)
    (log,) = logs(cache)
    assert os.environ["OVERLAYLAB_LOG"] == str(log)
    run(monkeypatch, lambda: progress.say("again"), 0.1)
    assert logs(cache) == [log]
    assert [line.removeprefix("13:05:09 ") for line in log.read_text().splitlines()[2:]] == [
        "installing packages",
        "carried on with the groups that were joined",
        "again",
        "done",
    ]
    assert capsys.readouterr().err.splitlines()[-1] == f"the log of this is {log}"
    assert "OVERLAYLAB_LOG" not in os.environ


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("./task lab:up lab:weave BLOCKS=1", "lab-up-lab-weave"),
        ("./task drill:check CAUSE=the server is slow", "drill-check"),
        ("./task --yes bench:profiles", "bench-profiles"),
        ("overlaylab measure weave", "measure-weave"),
        ("./task ../../x", "x"),
        ("./task", "task"),
        (f"./task {'x' * 300}", "x" * 60),
    ],
)
def test_a_log_is_named_after_what_is_typed(cache, monkeypatch, typed, name) -> None:
    monkeypatch.setenv("OVERLAYLAB_TYPED", typed)
    run(monkeypatch, lambda: progress.say("begun"))
    assert [log.name for log in logs(cache)] == [f"20261125T130509Z-{name}-{os.getpid()}.log"]
