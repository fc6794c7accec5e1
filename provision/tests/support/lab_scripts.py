"""Scripts that roles install on nodes, as modules, and run with other programs in place of the node's."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

from overlaylab.core.paths import ROLES


def script(path: Path) -> ModuleType:
    """A node's Python script as a module."""
    loader = importlib.machinery.SourceFileLoader(path.stem.replace("-", "_"), str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Status:
    """A role's overlay-status, with answers in place of the tools that it asks."""

    def __init__(self, folder: Path, overlay: str) -> None:
        self.folder, self.path = folder, ROLES / f"overlay_{overlay}" / "files" / "overlay-status"
        (folder / "bin").mkdir()

    def tool(self, name: str, body: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def run(self, settings: str, **replaced: str) -> dict[str, Any]:
        """What it prints. replaced: {name: path}: paths of the node that `name` stands for in the script."""
        (self.folder / "settings").write_text(settings)
        text = self.path.read_text()
        for old, new in {"/run/overlaylab/overlay": str(self.folder), **replaced}.items():
            assert old in text
            text = text.replace(old, new)
        done = subprocess.run(
            ["sh", "-c", text],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"},
        )
        assert done.stderr == ""
        return json.loads(done.stdout)
