"""What is typed reaches the command: the variables that a task hands on are written from the options of its command."""

import re
from functools import cache
from pathlib import Path

import click
import pytest

from overlaylab.cli import main, task_help, variables
from overlaylab.core.paths import ROOT

FILES = [*sorted(ROOT.glob("*/Taskfile*.y*ml")), ROOT / "Taskfile.yml"]
TASK = re.compile(r"^  ([a-z][a-z:-]*):\n((?:    .*\n|\n(?=    ))*)", re.MULTILINE)
ENV = re.compile(r"^    env:(?: \{.*\}\n|\n(?:      .*\n)*)", re.MULTILINE)
# Options that no variable carries: typed behind the dashes, or by other tasks alone.
WITHOUT = {
    "doctor": {"JSON"},
    "setup": {"TESTS", "CONTAINERS"},
    "viewer:as-user": {"BROWSER", "SCREEN", "SCREENS"},
    "bench:front-door": {"CALLS"},
}


@cache
def commands() -> dict[str, click.Command]:
    """Of every task that runs one command of the lab, an internal one too."""
    found = {name: task_help.command(task, main.cli) for name, task in task_help.definitions().items()}
    return {name: one for name, one in found.items() if one is not None}


def handed_on(name: str) -> list[str]:
    """The variables that a task puts into its command's environment; others stand in its words."""
    words = str(task_help.definitions()[name]["cmds"])
    return [
        one.envvar
        for one in commands()[name].params
        if isinstance(one.envvar, str) and not re.search(rf"\.{one.envvar}\b", words)
    ]


def line(variable: str) -> str:
    """Of a Taskfile; YAML 1.1 takes some words for no text unless they are quoted."""
    key = f"'{variable}'" if variable in {"YES", "NO", "ON", "OFF"} else variable
    return f"      {key}: '{{{{.{variable}}}}}'\n"


def with_variables(text: str) -> str:
    """A Taskfile whose tasks hand on what their commands read. Defaults are the commands'."""

    def task(found: re.Match[str]) -> str:
        name, body = found.groups()
        if name not in commands():
            return found[0]
        lines = "".join(line(one) for one in handed_on(name))
        return f"  {name}:\n{ENV.sub('', body)}" + (f"    env:\n{lines}" if lines else "")

    return TASK.sub(task, text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_task_hands_on_is_written_from_options(path: Path, golden) -> None:
    golden(path, with_variables(path.read_text(encoding="utf-8")))


def test_a_variable_that_is_not_handed_on_is_found() -> None:
    (path,) = (one for one in FILES if "\n  measure:\n" in one.read_text(encoding="utf-8"))
    text = path.read_text(encoding="utf-8")
    for name in handed_on("measure"):
        first, found, rest = text.partition(line(name))
        assert found and with_variables(first + rest) == text


@pytest.mark.parametrize("name", commands())
def test_every_option_has_a_variable(name) -> None:
    task = task_help.definitions()[name]
    words = str([task["cmds"], task.get("env"), task.get("vars")])
    options = {variables.name(one) for one in commands()[name].params if isinstance(one, click.Option)}
    lost = {one for one in options if not re.search(rf"\.{one}\b", words)}
    assert lost == WITHOUT.get(name, set())


@pytest.mark.parametrize("name", commands())
def test_a_default_stands_with_the_command_alone(name) -> None:
    words = str(task_help.definitions()[name])
    assert re.findall(r'default \\?"[^"\\]', words) == []


@pytest.mark.parametrize("name", [name for name in commands() if name != "measure"])
def test_a_description_names_variables_that_there_are(name) -> None:
    told = re.findall(r"\(([^()]*)\)", task_help.definitions()[name]["desc"])
    named = {word for text in told for word in re.findall(r"(?<![=$\w])[A-Z][A-Z_]+(?=[=,;]|$)", text)}
    usage = task_help.text(name, main.cli).partition("\n\n")[0]
    assert named - set(re.findall(r"[A-Z_]{2,}", usage)) - {"COMMAND"} == set()
