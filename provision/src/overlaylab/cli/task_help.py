"""What a task takes, as it is typed: from its Taskfile, the command behind it, and the examples in the docs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import click
from ruamel.yaml import YAML

from overlaylab.cli import variables
from overlaylab.core.documents import unknown
from overlaylab.core.model import JSON
from overlaylab.core.paths import ROOT

# What click has no help for: arguments of commands, and variables of tests; of one task where it means another thing.
ARGUMENTS = {
    "FILE": "What to open (default: the results database).",
    "results:import FILE": "A file of iperf3 or flent; several stand after --.",
    "bundle:show FILE": "The bundle.",
    "bundle:verify FILE": "The bundle.",
    "FORMAT": "What to write.",
    "OVERLAY": "Which overlay.",
    "RUN": "Which run: its id, or the id's unique beginning or end.",
    "TRIALS": "Which trials of it, by trial_id (default: all).",
    "TURNS": "all: every slow test, also where it is another one's turn.",
    "test:overlays MODES": "Which modes, as in weave/sleeve,flannel/udp.",
    "FAULTS": "Which faults: of an overlay, or one, as in weave,macvlan/overlap.",
    "KILLS": "How many times.",
    "test:viewer RUNTIME": "As with view.",
}
# What a Taskfile has in capitals and nobody types.
OWN = {"LAB", "TOOLS", "ROOT_DIR", "CLI_ARGS"}
USED = re.compile(r"\.([A-Z][A-Z_]+)\b")
DEFAULT = r"\.{name} \| default \"([^\"]+)\""
COMMAND = re.compile(r"\.LAB\}\}'?((?: [a-z][a-z-]*)+)")
# The variables in a description; here they are listed below it.
LISTED = re.compile(r"\s*\([A-Z_, ]+\)$")


@cache
def definitions() -> dict[str, JSON]:
    """Every task, also an internal one, as its file has it."""
    found: dict[str, JSON] = {}
    for path in (*sorted(ROOT.glob("*/Taskfile*.y*ml")), ROOT / "Taskfile.yml"):
        found |= YAML(typ="safe", pure=True).load(path.read_text())["tasks"]
    return found


@dataclass(frozen=True)
class Taken:
    """A variable that a task takes. typed: with what may stand behind the equals sign; meaning: "" where nobody says it."""

    name: str
    typed: str
    needed: bool
    meaning: str


def public() -> list[str]:
    """The tasks that ./task lists."""
    return sorted(one for one, task in definitions().items() if "desc" in task)


def takes(name: str, cli: click.Group) -> tuple[list[Taken], str]:
    """The variables of a task, those that have to be typed first; and what may stand after the dashes, "" for nothing."""
    task, given = _called(name)
    words = " ".join(_texts([task.get(key) for key in ("requires", "cmds", "env")]))
    runs = command(task, cli)
    parameters = {variables.name(one): one for one in runs.params} if runs else {}
    required = [
        one if isinstance(one, str) else one["name"] for one in task.get("requires", {}).get("vars", ())
    ]
    used = [one for one in dict.fromkeys((*required, *USED.findall(words))) if one not in given]
    needed = {*required, *(one for one in used if one in parameters and parameters[one].required)}
    places = list(parameters)
    used.sort(key=lambda one: places.index(one) if one in needed and one in places else len(places))
    taken = [
        Taken(
            one,
            f"{one}={_value(parameters.get(one))}",
            one in needed,
            _meaning(name, one, parameters.get(one), words),
        )
        for one in used
    ]
    behind = (one for key, one in parameters.items() if key not in (*used, *given))
    return taken, _after(behind) if "CLI_ARGS" in words else ""


def text(name: str, cli: click.Group, width: int | None = None) -> str:
    """The help of a task. Raises UserError where there is none of that name."""
    if name not in public():
        raise unknown("task", "must be one that ./task lists", name, public())
    taken, behind = takes(name, cli)
    runs = command(_called(name)[0], cli)
    said = LISTED.sub("", definitions()[name]["desc"])

    out = click.HelpFormatter(width=width, max_width=120)
    usage = [one.typed if one.needed else f"[{one.typed}]" for one in taken]
    out.write_usage(f"./task {name}", " ".join([*usage, behind]).rstrip())
    for paragraph in (said, *((runs.help or "").split("\n\n")[1:] if runs else ())):
        out.write_paragraph()
        out.write_text(" ".join(paragraph.split()))
    if rows := [(one.typed, one.meaning) for one in taken if one.meaning]:
        out.write_paragraph()
        with out.indentation():
            out.write_dl(rows)
    out.write_paragraph()
    shortest = " ".join((f"./task {name}", *(one.typed for one in taken if one.needed)))
    out.write_text(f"Example: {_example(name) or shortest}")
    return out.getvalue()


def _called(name: str) -> tuple[JSON, set[str]]:
    """The definition of a task, or of the one that it calls with variables of its own; what nobody types for it."""
    task, given = definitions()[name], set(OWN)
    for call in task.get("cmds", ()):
        if isinstance(call, dict) and "vars" in call:
            task, given = definitions()[call["task"]], given | set(call["vars"])
    return task, given | {one for one, value in task.get("vars", {}).items() if f".{one}" not in str(value)}


def _texts(part: object) -> Iterator[str]:
    """All texts in a part of a Taskfile, in their order."""
    if isinstance(part, Mapping):
        for one in part.values():
            yield from _texts(one)
    elif isinstance(part, list):
        for one in part:
            yield from _texts(one)
    elif isinstance(part, str):
        yield part


def command(task: JSON, cli: click.Group) -> click.Command | None:
    """The lab's own command that a task runs; None where it runs several, or another program."""
    calls = task.get("cmds", ())
    called = COMMAND.search(str(calls[0]).replace("shellQuote ", "")) if len(calls) == 1 else None
    found: click.Command | None = None
    for word in called[1].split() if called else ():
        group = cli if found is None else found
        if not isinstance(group, click.Group):
            break
        found = group.get_command(click.Context(group), word)
    return found


def _value(parameter: click.Parameter | None) -> str:
    """What may stand behind the equals sign."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return "1"
    if parameter and isinstance(parameter.type, click.Choice):
        return "|".join(map(str, parameter.type.choices))
    return "…"


def _after(arguments: Iterable[click.Parameter]) -> str:
    """What stands after the dashes: the arguments that no variable carries, else whatever the program takes."""
    names = [
        f"{variables.name(one)}…" if one.nargs == -1 else variables.name(one)
        for one in arguments
        if isinstance(one, click.Argument)
    ]
    return f"[-- {' '.join(names) or '…'}]"


def _meaning(task: str, name: str, parameter: click.Parameter | None, words: str) -> str:
    known = ARGUMENTS.get(f"{task} {name}") or ARGUMENTS.get(name, "")
    told = getattr(parameter, "help", None) or known
    default = _default(name, parameter, words)
    if default and "default" not in told:
        return f"{told.rstrip('.')} (default: {default}).".lstrip()
    return told


def _default(name: str, parameter: click.Parameter | None, words: str) -> str:
    """The command's own default; of another program, what its task hands on."""
    usual = parameter.default if isinstance(parameter, click.Option) else None
    if isinstance(usual, float):
        return f"{usual:g}"
    if isinstance(usual, int | str) and not isinstance(usual, bool):
        return str(usual)
    found = re.search(DEFAULT.format(name=name), words)
    return found[1] if found else ""


def _example(name: str) -> str | None:
    """The first call in the docs, with variables where there is one, else with what stands after the dashes."""
    call = re.compile(rf"(?:^|`)(\./task {name}(?: [^`#\n]+)?)(?: *#|`|$)", re.MULTILINE)
    pages = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    found = [
        one.strip() for page in pages for one in call.findall(page.read_text()) if not {"…", "<"} & set(one)
    ]
    return next((one for sign in ("=", " -- ", "") for one in found if sign in one), None)
