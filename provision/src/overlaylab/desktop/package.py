"""The viewer as a folder that runs from any place, without node, npm or a network."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.progress import step
from overlaylab.desktop import modules
from overlaylab.desktop.runtime import Runtime

PROGRAM = "overlaylab-viewer"
DEFAULT_OUT = paths.VIEWER / "release" / PROGRAM

# As electron-builder calls what os.uname does.
_ARCHITECTURES = {"x86_64": "x64", "aarch64": "arm64"}


def package(out: Path, runtime: Runtime) -> Path:
    """Make the folder `out` of the built viewer and its runtime; its program.

    A folder that is there is replaced where it is one of these, else refused with a UserError.
    """
    out = out.absolute()
    if out.exists() and not (out / PROGRAM).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(
            f"OUT={out}",
            "must be a new folder, or one that was made like this",
            seen="something else is there",
            fix="Choose another one, or remove it",
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    # Beside its place, so that moving it there is one step.
    with tempfile.TemporaryDirectory(prefix=".new-", dir=out.parent) as name:
        work = Path(name)
        with step("viewer-package", "packing the viewer", 10):
            try:
                build(work, runtime)
            except subprocess.CalledProcessError as error:
                raise UserError(
                    "electron-builder",
                    "must succeed",
                    seen=f"exit code {error.returncode}, its output is above",
                    fix="Correct what it names in viewer/electron-builder.yml or viewer/package.json",
                ) from None
        (made,) = work.glob("release/linux*-unpacked")
        # It would start any folder that is named; ours alone is in its place.
        (made / "resources" / "default_app.asar").unlink(missing_ok=True)
        if out.exists():
            out.rename(work / "old")
        made.rename(out)
    return out / PROGRAM


def build(work: Path, runtime: Runtime) -> None:
    """Have electron-builder put the app into work/release; it takes what is on disk. Raises CalledProcessError."""
    programs = work / "bin"
    programs.mkdir()
    # It asks `npm` for the modules that the app needs, and the toolchain's has lost its link to its program.
    npm = programs / "npm"
    npm.write_text(f'#!/bin/sh\nexec node {modules.npm()} "$@"\n')
    npm.chmod(0o755)
    architecture = _ARCHITECTURES.get(os.uname().machine, os.uname().machine)
    modules.run_node(
        [
            str(paths.VIEWER / "node_modules/electron-builder/cli.js"),
            "--linux",
            "dir",
            f"--{architecture}",
            "--config.directories.output=" + str(work / "release"),
            f"--config.electronDist={runtime.folder}",
            f"--config.electronVersion={runtime.version}",
        ],
        environment={
            "PATH": f"{programs}:{os.environ['PATH']}",
            "npm_config_cache": str(paths.cache() / "npm"),
            "ELECTRON_BUILDER_CACHE": str(work / "cache"),
            # jiti, which reads its settings, would leave a folder in /tmp.
            "JITI_FS_CACHE": "false",
        },
    )


def size(folder: Path) -> int:
    """Bytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
