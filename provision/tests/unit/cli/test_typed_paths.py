"""Relative paths count from the folder in which a task was typed, though it runs in the checkout."""

import os
import subprocess
from pathlib import Path

import pytest

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.store.store import Store

IPERF3 = Path(__file__).parents[2] / "fixtures" / "iperf3" / "3.12-tcp.out"


def test_a_relative_path_counts_from_where_it_was_typed(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(paths.ROOT)
    assert paths.typed("x.json") == Path("x.json")
    monkeypatch.setenv("OVERLAYLAB_CALLER", str(paths.ROOT))
    assert paths.typed("x.json") == Path("x.json")
    monkeypatch.setenv("OVERLAYLAB_CALLER", str(tmp_path))
    assert paths.typed("x.json") == tmp_path / "x.json"
    assert paths.typed("/there/x.json") == Path("/there/x.json")
    monkeypatch.setenv("LAB_DB", "lab.sqlite")
    assert paths.database() == tmp_path / "lab.sqlite"
    monkeypatch.delenv("LAB_DB")
    assert paths.database() == paths.ROOT / "results" / "lab.sqlite"
    monkeypatch.chdir(tmp_path.parent)  # the command itself, called from elsewhere
    assert paths.typed("x.json") == Path("x.json")


@pytest.mark.parametrize("name", ["x" * 300, "é" * 200, "x/" * 3000])
def test_a_name_that_no_file_can_have(monkeypatch, name: str) -> None:
    monkeypatch.setenv("LAB_DB", f"/tmp/{name}")
    with pytest.raises(UserError, match="must have a name that the system takes"):
        paths.database()


@pytest.mark.skipif("OVERLAYLAB_TOOLS" not in os.environ, reason="needs the pinned toolchain")
def test_tasks_take_and_make_files_where_they_are_typed(tmp_path) -> None:
    Store.open(tmp_path / "lab.sqlite").close()
    (tmp_path / "a.json").write_text(IPERF3.read_text())

    def task(*words: str) -> None:
        done = subprocess.run(
            [str(paths.ROOT / "task"), *words], cwd=tmp_path, env=os.environ | {"LAB_DB": "lab.sqlite"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    task("results:import", "ACCELERATOR=bare", "--", "a.json")
    task("results:export", "FORMAT=csv", "OUT=a.csv")
    task("results:report", "OUT=a.html")
    assert {path.name for path in tmp_path.iterdir()} == {"lab.sqlite", "a.json", "a.csv", "a.html"}
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")


@pytest.mark.skipif("OVERLAYLAB_TOOLS" not in os.environ, reason="needs the pinned toolchain")
def test_go_task_itself_says_where_it_was_typed(tmp_path) -> None:
    Store.open(tmp_path / "lab.sqlite").close()
    words = ["task", "--exit-code", "results:export", "FORMAT=json", f"OUT={tmp_path}/a.json"]
    relative = {"LAB_DB": os.path.relpath(tmp_path / "lab.sqlite", paths.ROOT / "docs")}
    done = subprocess.run(
        words, cwd=paths.ROOT / "docs", env=os.environ | relative, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.json").read_text() == "[]\n"


@pytest.mark.skipif("OVERLAYLAB_TOOLS" not in os.environ, reason="needs the pinned toolchain")
def test_what_is_typed_wins_over_the_environment() -> None:
    """go-task let an exported PROFILE win, and showed another tier than the one that was typed."""

    def first_word(*words: str) -> str:
        argv = [str(paths.ROOT / "task"), "profile:show", *words]
        exported = os.environ | {"PROFILE": "azure-a0"}
        done = subprocess.run(
            argv, env=exported, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        )
        return done.stdout.partition(":")[0]

    assert first_word("PROFILE=azure-a1") == "azure-a1"
    assert first_word("--", "PROFILE=azure-a1") == "azure-a0"
    assert first_word() == "azure-a0"


@pytest.mark.skipif("OVERLAYLAB_TOOLS" not in os.environ, reason="needs the pinned toolchain")
def test_the_paragraph_stands_below_what_go_task_says() -> None:
    argv = [str(paths.ROOT / "task"), "lab:up", "CLUSTER=nope"]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[1:]) == (
        2,
        "",
        [
            'task: Failed to run task "lab:up": exit status 2',
            'overlaylab: CLUSTER: must be a cluster in vagrant/clusters/ (found: "nope"). '
            "Known: pair, pair-zones, three-zones.",
        ],
    )
