"""What pyproject.toml says of the package: its version and what it imports."""

import ast
import re
import sys
import tomllib

from ruamel.yaml import YAML

from overlaylab.core.paths import PROVISION, ROOT, VIEWER

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Where a package's name is not that of what it is imported as.
DISTRIBUTION = {"markdown_it": "markdown-it-py", "ruamel": "ruamel.yaml"}


def imported() -> set[str]:
    """The other packages that ours imports, by their distribution's name; scripts for nodes have none."""
    found = set()
    for path in (PROVISION / "src" / "overlaylab").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add(str(node.module).partition(".")[0])
    return {DISTRIBUTION.get(name, name) for name in found - sys.stdlib_module_names - {"overlaylab"}}


def test_what_the_package_imports_is_declared_and_nothing_else() -> None:
    assert sorted(imported()) == PROJECT["dependencies"]
    assert "numpy" in PROJECT["dependencies"]


def test_what_is_declared_is_in_the_toolchain_and_locked() -> None:
    folder = PROVISION / "toolchain"
    wanted = re.findall(r"^([\w.-]+)", (folder / "requirements.in").read_text(), flags=re.MULTILINE)
    locked = re.findall(r"^([\w.-]+)==", (folder / "requirements.txt").read_text(), flags=re.MULTILINE)
    assert set(PROJECT["dependencies"]) <= set(wanted)
    assert {name.replace(".", "-") for name in PROJECT["dependencies"]} <= {
        name.replace(".", "-") for name in locked
    }


def test_lab_and_viewer_have_one_version_and_the_changes_begin_with_it() -> None:
    package = YAML(typ="safe", pure=True).load((VIEWER / "package.json").read_text(encoding="utf-8"))
    assert (PROJECT["name"], PROJECT["version"]) == ("overlaylab", package["version"])
    changes = re.findall(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert changes[0] == PROJECT["version"]


def test_the_oldest_python_is_the_one_that_task_takes() -> None:
    assert PROJECT["requires-python"] == ">=3.11"
    assert "sys.exit(sys.version_info < (3, 11))" in (ROOT / "task").read_text()
