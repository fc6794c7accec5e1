"""The tables of variables in docs/tasks.md: written from the options of a run, and from the help of every task."""

import re

from overlaylab.cli import main, task_help
from overlaylab.core import paths
from overlaylab.core.paths import CACHE, ROOT
from overlaylab.run.options import declared

PAGE = ROOT / "docs" / "tasks.md"


def options() -> str:
    rows = [(one.variable, one.about.default, one.about.meaning) for one in declared().values()]
    rows += [
        (one.variable, one.default, one.meaning)
        for one in vars(paths).values()
        if isinstance(one, paths.Place)
    ]
    return "| variable | default | meaning |\n|---|---|---|\n" + "".join(
        f"| `{variable}` | {default} | {meaning} |\n" for variable, default, meaning in rows
    )


def others() -> str:
    """Of variables that the first table lacks: a row for each thing that one means, with the tasks where it does."""
    known = {one.variable for one in declared().values()}
    found: dict[tuple[str, str], list[str]] = {}
    for name in task_help.public():
        for one in task_help.takes(name, main.cli)[0]:
            if one.name not in known:
                found.setdefault((one.name, one.meaning), []).append(f"`{name}`")
    return "| variable | with | meaning |\n|---|---|---|\n" + "".join(
        f"| `{variable}` | {', '.join(tasks)} | {meaning} |\n"
        for (variable, meaning), tasks in sorted(found.items(), key=lambda row: (row[0][0], row[1]))
    )


def with_block(page: str, name: str, table: str) -> str:
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, _, rest = page.partition(begin)
    return f"{before}{begin}{table}{end}{rest.partition(end)[2]}"


def test_the_page_is_written_from_options(golden) -> None:
    page = PAGE.read_text(encoding="utf-8")
    golden(PAGE, with_block(with_block(page, "options", options()), "variables", others()))


def test_every_variable_of_a_task_is_explained() -> None:
    lacking = [
        f"{name} {one.name}"
        for name in task_help.public()
        for one in task_help.takes(name, main.cli)[0]
        if not one.meaning
    ]
    assert lacking == []


def test_the_front_door_has_the_same_default_for_the_cache_folder() -> None:
    script = (ROOT / "task").read_text(encoding="utf-8")
    (default,) = re.findall(r"^    OVERLAYLAB_CACHE=(\S+)$", script, re.MULTILINE)
    assert f"`{default.replace('$user', '$USER')}`" == CACHE.default
