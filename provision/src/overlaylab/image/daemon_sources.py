"""Sources of a recipe that are not built as they were published: patched modules, and files out of a module.

A patched module is one that go.mod replaces with a folder beside it, ``replace example.org/api => ./api``: that
folder is the module's copy with the recipe's patch applied. Go does not check what a folder holds, so the copy's
sum is the recipe's to name.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from overlaylab.core import disk_full
from overlaylab.core.documents import Document
from overlaylab.core.documents_limits import shown
from overlaylab.core.errors import UserError


@dataclass(frozen=True)
class Patched:
    """A module to patch. folder: where go.mod wants it, relative; sum: what go.sum would say of it, ``h1:…``."""

    module: str
    version: str
    folder: str
    sum: str
    patch: Path


def pinned(go_mod: str, module: str) -> str | None:
    """The version at which a go.mod requires a module, ``v1.2.3``."""
    found = re.search(rf"^\s*(?:require\s+)?{re.escape(module)} (v\S+)", go_mod, re.M)
    return found and found[1]


def patched(source: Document, go_mod: str) -> tuple[Patched, ...]:
    """The modules that a recipe patches. Raises UserError where go.mod does not fit."""
    found = []
    for index, entry in enumerate(source.data.get("patched", ())):
        module, patch = entry["module"], source.path.parent / entry["patch"]
        version = pinned(go_mod, module)
        replaced = re.search(rf"^\s*(?:replace\s+)?{re.escape(module)} => \./([\w-]+)\s*$", go_mod, re.M)
        if version is None or replaced is None:
            raise source.error(
                "patched",
                index,
                "module",
                rule="must be required, and replaced with a folder, in the go.mod beside it",
                seen=f'"{module}"',
                fix=f"Write `replace {module} => ./<folder>` there.",
            )
        if not patch.is_file():
            raise source.error(
                "patched",
                index,
                "patch",
                rule="must be a file beside it",
                seen=f'"{entry["patch"]}"',
                fix=f"Put the patch into {shown(patch.parent)}/.",
            )
        found.append(Patched(module, version, replaced[1], entry["sum"], patch))
    return tuple(found)


def copy_patched(name: str, modules: tuple[Patched, ...], work: Path, environment: Mapping[str, str]) -> None:
    """Put the patched copies into the folder of a build. Raises UserError."""
    for module in modules:
        told = _go(
            name,
            ["mod", "download", "-json", f"{module.module}@{module.version}"],
            work.parent,
            # Outside of a module nothing pins it: the sum is checked here, against the recipe's.
            {**environment, "GOFLAGS": "-modcacherw", "GONOSUMDB": module.module},
        )
        about = json.loads(told)
        if about["Sum"] != module.sum:
            raise UserError(
                f"daemons of {name}",
                f"{module.module} {module.version} is not the module that the recipe patches",
                seen=about["Sum"],
                fix=f"Expected {module.sum}: look at what GOPROXY serves.",
            )
        copy = work / module.folder
        shutil.copytree(about["Dir"], copy)
        done = subprocess.run(
            ["patch", "--strip=1", "--batch", "--forward", "--fuzz=0", f"--input={module.patch}"],
            cwd=copy, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
        )  # fmt: skip
        if done.returncode:
            raise UserError(
                f"daemons of {name}",
                f"{shown(module.patch)} does not fit {module.module} {module.version}: "
                + " / ".join((done.stdout + done.stderr).strip().splitlines()[-2:]),
                fix="Make the patch again for the version that go.mod requires.",
            )


def copy_files(
    name: str, module: str, files: Mapping[str, str], work: Path, environment: Mapping[str, str]
) -> None:
    """Copy files out of a module, {their new name: path in the module}, into the folder of a build."""
    if not files:
        return
    folder = Path(_go(name, ["list", "-m", "-f", "{{.Dir}}", module], work, environment).strip())
    for new, path in files.items():
        try:
            shutil.copyfile(folder / path, work / new)
        except OSError as wrong:
            raise UserError(
                f"daemons of {name}",
                f"{path} cannot be read in {module} ({wrong.strerror})",
                fix="Correct `files` in its build.yml.",
            ) from None


def _go(name: str, arguments: list[str], folder: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        ["go", *arguments], cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, errors="replace",
    )  # fmt: skip
    if done.returncode:
        if disk_full.is_reported(done.stderr):
            raise disk_full.error(f"daemons of {name}", "No space left on device")
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise UserError(
            f"daemons of {name}",
            f"`go {' '.join(arguments[:2])}` failed: {' / '.join(lines[-2:]) or 'no output'}",
            fix="The first build fetches Go modules: check the network, or set GOPROXY to a mirror that you can "
            "reach.",
        )
    return done.stdout
