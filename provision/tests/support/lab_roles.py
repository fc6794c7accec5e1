"""Overlay roles without nodes: Ansible runs them, and each node only says what it is told to do."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from overlaylab.core.paths import PROVISION

NODES = ("node1", "node2", "node3")


def inventory(nodes: Sequence[str]) -> dict[str, Any]:
    hosts = {
        name: {"underlay_address": f"192.168.77.{11 + number}/24", "underlay_interface": "eth1"}
        for number, name in enumerate(nodes)
    }
    return {"all": {"hosts": hosts, "vars": {"ansible_connection": "local"}}}


@dataclass(frozen=True)
class Play:
    """One verb of one overlay. state: what its nodes are in (ansible_recorder/recorder.py)."""

    overlay: str
    verb: str = "converge"
    state: str = "fresh"
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.overlay} {self.verb} {self.state} {json.dumps(self.arguments)}"


@dataclass(frozen=True)
class Step:
    """One task on one node."""

    task: str
    module: str
    arguments: Mapping[str, Any]

    @property
    def words(self) -> str:
        """A command's, single blanks between them."""
        said = (
            self.arguments.get("cmd")
            or self.arguments.get("_raw_params")
            or self.arguments.get("command", [])
        )
        return " ".join((said if isinstance(said, str) else " ".join(said)).replace("\\\n", "").split())

    @property
    def files(self) -> dict[str, tuple[str, str]]:
        """{path: content and mode} of what the task writes."""
        return {
            file["path"]: (file["content"], file.get("mode", "0644"))
            for file in self.arguments.get("files", [])
        }


def copy_provision(folder: Path) -> Path:
    """The playbooks and roles of this checkout, for a role to be added."""
    for name in ("playbooks", "roles"):
        shutil.copytree(PROVISION / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROVISION / "ansible.cfg", folder)
    return folder


def ansible(
    provision: Path, folder: Path, *words: str, nodes: Sequence[str] = NODES
) -> subprocess.CompletedProcess[str]:
    """ansible-playbook on nodes that are not there. folder: for what it writes."""
    (folder / "hosts.json").write_text(json.dumps(inventory(nodes)))
    environment = os.environ | {
        "ANSIBLE_CONFIG": str(provision / "ansible.cfg"),
        "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
        "ANSIBLE_STRATEGY": "recorder",
        "ANSIBLE_STRATEGY_PLUGINS": str(Path(__file__).parent / "ansible_recorder"),
        "RECORDER_FILE": str(folder / "steps"),
    }
    command = ["ansible-playbook", "-i", str(folder / "hosts.json"), *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def record(
    provision: Path,
    folder: Path,
    plays: Sequence[Play],
    daemons: Mapping[str, Any],
    nodes: Sequence[str] = NODES[:2],
) -> dict[tuple[str, str], list[Step]]:
    """What each node is told in each play: {(play's name, node): steps}. daemons: {play's name: overlay_daemons}."""
    playbook = [
        {
            "ansible.builtin.import_playbook": str(provision / "playbooks" / "overlay.yml"),
            "vars": {
                "overlay": play.overlay,
                "verb": play.verb,
                "recorder_play": play.name,
                "recorder_state": play.state,
                "overlay_daemons": daemons.get(play.name, {}),
                "overlay_secret_file": str(folder / "secret"),
                **play.arguments,
            },
        }
        for play in plays
    ]
    (folder / "all.json").write_text(json.dumps(playbook))
    done = ansible(provision, folder, str(folder / "all.json"), nodes=nodes)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (folder / "steps").rename(folder / "read")
    steps: dict[tuple[str, str], list[Step]] = {}
    for line in (folder / "read").read_text().splitlines():
        told = json.loads(line)
        step = Step(told["task"], told["module"], told["arguments"])
        steps.setdefault((told["play"], told["node"]), []).append(step)
    return steps
