"""``./task NAME --help``: every variable of a task, as it is typed, with what it means."""

import os
import re
import subprocess

import pytest
from lab_commands import lab, refused

from overlaylab.cli import main, task_help
from overlaylab.core.paths import ROOT

PUBLIC = sorted(name for name, task in task_help.definitions().items() if "desc" in task)
OWN_COMMAND = [
    name
    for name in PUBLIC
    if len(task_help.definitions()[name]["cmds"]) == 1 and not name.startswith(("test:", "test"))
]


def told(name: str) -> str:
    return task_help.text(name, main.cli, 120)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_task_has_a_usage_and_an_example(name) -> None:
    text = told(name)
    assert text.startswith(f"Usage: ./task {name}")
    assert re.search(rf"^Example: \./task {name}( |$)", text, re.MULTILINE)
    assert "{{" not in text


@pytest.mark.parametrize("name", OWN_COMMAND)
def test_no_variable_of_the_labs_own_commands_goes_unexplained(name) -> None:
    usage, *rest = told(name).split("\n\n")
    explained = re.findall(r"^  ([A-Z_]+)=\S+  +\S", "\n".join(rest), re.MULTILINE)
    assert explained == re.findall(r"([A-Z_]+)=", usage)


def test_what_is_required_comes_first_and_values_say_what_they_may_be() -> None:
    assert told("results:export").startswith("Usage: ./task results:export FORMAT=csv|json [OUT=…] [RUN=…]\n")
    assert told("results:void").startswith("Usage: ./task results:void RUN=… WHY=… [TRIALS=…] [YES=1]\n")
    assert told("lab:ssh").startswith(
        "Usage: ./task lab:ssh [CLUSTER=…] [PROVIDER=…] [-- NODE REMOTE_COMMAND…]\n"
    )
    weave = told("lab:weave")
    assert "[OVERLAY=" not in weave and "[BLOCKS=…]" in weave
    assert re.search(r"^  SCALE=… +Stretch durations \(default: 1\)\.$", weave, re.MULTILINE)
    assert "\nMeasure Weave Net against the host\n" in weave
    assert re.search(r"^Example: \./task lab:weave \S*=", weave, re.MULTILINE)


def test_a_file_is_what_its_task_takes() -> None:
    assert "FILE=…         A file of iperf3 or flent; several stand after --." in told("results:import")
    assert "The bundle." in told("bundle:verify")
    assert "What to open (default: the results database)." in told("view")


@pytest.mark.skipif("OVERLAYLAB_TOOLS" not in os.environ, reason="needs the pinned toolchain")
@pytest.mark.parametrize(
    ("typed", "paragraph"),
    [
        ("lab:ssh", "node: must be named. ./task lab:ssh -- node1 opens a shell on the first one."),
        ("profile:show", "PROFILE: must be given. Which of profiles/."),
        (
            "results:export FORMAT=xml",
            "FORMAT: must be one of csv, json (found: xml). Choose one of these.",
        ),
        ("results:export", "FORMAT: must be given. Type FORMAT=csv|json."),
        ("results:report", "OUT: must be given. File to make; - for standard output."),
        ("results:void TRIALS=3", "RUN: must be given. Type RUN=…: ./task results:list has the ids."),
    ],
)
def test_what_is_missing_is_told_in_the_labs_own_words_and_last(typed: str, paragraph: str, tmp_path) -> None:
    done = subprocess.run(
        [str(ROOT / "task"), *typed.split(), "WHY=x"], env=os.environ | {"LAB_DB": str(tmp_path / "lab.sqlite")},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr.splitlines()[-1] == f"overlaylab: {paragraph}"


def test_an_unknown_task_is_refused_with_the_nearest() -> None:
    assert 'Did you mean "results:show"?' in refused("task-help", "results:shw").fix
    assert refused("task-help", "measure").where == "task"  # internal
    assert lab("task-help", "results:show").stdout.startswith("Usage: ./task results:show ")


@pytest.mark.skipif("OVERLAYLAB_TOOLS" not in os.environ, reason="needs the pinned toolchain")
def test_the_front_door_tells_its_help_from_go_tasks() -> None:
    def door(*words: str) -> str:
        done = subprocess.run([str(ROOT / "task"), *words], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    for words in (("results:void", "--help"), ("-h", "results:void"), ("results:void", "RUN=x", "--help")):
        assert door(*words).startswith("Usage: ./task results:void RUN=… WHY=…")
    assert "--taskfile string" in door("--help")
    assert door("results:compare", "--", "--help").startswith("Usage: python -m overlaylab results compare")
