"""The table of packages in docs/architecture.md: written from the contract that lint holds, and from docstrings."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

from overlaylab.core.paths import ROOT

SOURCE = ROOT / "provision" / "src" / "overlaylab"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- packages -->\n", "<!-- /packages -->"


def packages() -> list[str]:
    """From the top to the bottom."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    return contract["layers"]


def told(package: str) -> tuple[str, str]:
    """What is in it, and what is not: the two paragraphs of its docstring."""
    text = ast.get_docstring(ast.parse((SOURCE / package / "__init__.py").read_text(encoding="utf-8")))
    holds, _, lacks = str(text).partition("\n\nNot here: ")
    return " ".join(holds.split()), " ".join(lacks.partition("\n\n")[0].split())


def table() -> str:
    rows = [f"| `{package}/` | {' | '.join(told(package))} |\n" for package in packages()]
    return "".join(["| package | holds | does not hold |\n|---|---|---|\n", *rows])


def test_code_map_says_what_the_contract_and_the_packages_say(golden) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    golden(PAGE, f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}")


def test_every_package_says_what_it_holds_and_what_it_does_not() -> None:
    assert [package for package in packages() if not all(told(package))] == []
    assert len(packages()) <= 18


def test_no_module_lies_beside_the_packages() -> None:
    assert {path.name for path in SOURCE.glob("*.py")} == {"__init__.py", "__main__.py"}
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and list(path.glob("*.py"))}
    assert folders == set(packages())


def test_readme_holds_no_list_of_modules() -> None:
    readme = Path(ROOT / "README.md").read_text(encoding="utf-8")
    assert [word for word in readme.split("`") if word.endswith(".py")] == []
