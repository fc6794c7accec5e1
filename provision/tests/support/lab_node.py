"""A node's scripts, run with scripts of a test in place of the node's tools and files."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path


class Scripts:
    """The scripts of one role. tool: name and POSIX sh; `place` maps a path of the node to one of the test."""

    def __init__(self, role: Path, folder: Path) -> None:
        self.role, self.folder = role, folder
        (folder / "bin").mkdir()
        (folder / "state").mkdir()
        self.places = {"/run/overlaylab/overlay": folder / "state"}

    def tool(self, name: str, script: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>"$FOLDER/calls"\n{script}\n')
        path.chmod(0o755)

    def prints(self, name: str, text: str) -> None:
        """The tool prints this whatever it is asked."""
        (self.folder / f"{name}.out").write_text(text)
        self.tool(name, f'cat "$FOLDER/{name}.out"')

    def place(self, path: str) -> Path:
        """A folder of the test's in place of one of the node's."""
        self.places[path] = self.folder / path.strip("/").replace("/", "-")
        self.places[path].mkdir(exist_ok=True)
        return self.places[path]

    def settings(self, text: str) -> None:
        (self.folder / "state" / "settings").write_text(text)

    def run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        text = (self.role / "files" / name).read_text()
        for path, ours in self.places.items():
            text = text.replace(path, str(ours))
        copy = self.folder / name
        copy.write_text(text)
        environment = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "FOLDER": str(self.folder)}
        return subprocess.run(["sh", str(copy), *arguments], env=environment, capture_output=True, text=True)

    def status(self) -> dict:
        done = self.run("overlay-status")
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


def interface(net: Path, name: str, index: int = 3, mtu: int = 1500) -> Path:
    """A network device in a folder that stands for /sys/class/net."""
    (net / name).mkdir()
    for what, value in {"ifindex": index, "mtu": mtu, "type": 1}.items():
        (net / name / what).write_text(f"{value}\n")
    return net / name
