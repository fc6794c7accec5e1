"""What a task takes, as it is typed: from its Taskfile, the command behind it, and the examples in the docs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

import click
from ruamel.yaml import YAML

from overlaylab.cli import variables
from overlaylab.core.documents import unknown
from overlaylab.core.model import JSON
from overlaylab.core.paths import ROOT

ARGUMENTS = {
    "FILE": "What to open (default: the results database).",
    "results:import FILE": "A file of iperf3 or flent; several stand after --.",
    "bundle:show FILE": "The bundle.",
    "bundle:verify FILE": "The bundle.",
    "FORMAT": "What to write.",
    "OVERLAY": "Which overlay.",
    "RUN": "Which run: its id, or the id's unique beginning or end.",
    "TRIALS": "Which trials of it, by trial_id (default: all).",
}
"""What click has no help for: a variable that its command takes as an argument; of a task where it means another thing."""
OWN = {"LAB", "TOOLS", "ROOT_DIR", "CLI_ARGS"}
"""What a Taskfile has in capitals and nobody types."""
USED = re.compile(r"\.([A-Z][A-Z_]+)\b")
DEFAULT = r"\.{name} \| default \"([^\"]+)\""
COMMAND = re.compile(r"\.LAB\}\}'?((?: [a-z][a-z-]*)+)")
LISTED = re.compile(r"\s*\([A-Z_, ]+\)$")
"""The variables in a description; here they are listed below it."""


@cache
def definitions() -> dict[str, JSON]:
    """Every task, also an internal one, as its file has it."""
    found: dict[str, JSON] = {}
    for path in (*sorted(ROOT.glob("*/Taskfile*.y*ml")), ROOT / "Taskfile.yml"):
        found |= YAML(typ="safe", pure=True).load(path.read_text())["tasks"]
    return found


def text(name: str, cli: click.Group, width: int | None = None) -> str:
    """The help of a task. Raises UserError where there is none of that name."""
    known = definitions()
    public = sorted(one for one, task in known.items() if "desc" in task)
    if name not in public:
        raise unknown("task", "must be one that ./task lists", name, public)
    task, said = known[name], LISTED.sub("", known[name]["desc"])
    given = set(OWN)
    for call in task.get("cmds", ()):
        if isinstance(call, dict) and "vars" in call:
            task, given = known[call["task"]], given | set(call["vars"])
    given |= {one for one, value in task.get("vars", {}).items() if f".{one}" not in str(value)}
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
    typed = {one: f"{one}={_value(parameters.get(one))}" for one in used}

    out = click.HelpFormatter(width=width, max_width=120)
    usage = [typed[one] if one in needed else f"[{typed[one]}]" for one in used]
    if "CLI_ARGS" in words:
        usage.append(_after(one for key, one in parameters.items() if key not in (*used, *given)))
    out.write_usage(f"./task {name}", " ".join(usage))
    for paragraph in (said, *((runs.help or "").split("\n\n")[1:] if runs else ())):
        out.write_paragraph()
        out.write_text(" ".join(paragraph.split()))
    rows = [(typed[one], _meaning(name, one, parameters.get(one), words)) for one in used]
    if any(meaning for _, meaning in rows):
        out.write_paragraph()
        with out.indentation():
            out.write_dl([row for row in rows if row[1]])
    out.write_paragraph()
    shortest = " ".join((f"./task {name}", *(typed[one] for one in used if one in needed)))
    out.write_text(f"Example: {_example(name) or shortest}")
    return out.getvalue()


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
    if isinstance(usual, int | float) and not isinstance(usual, bool):
        return f"{usual:g}"
    if isinstance(usual, str):
        return usual
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
