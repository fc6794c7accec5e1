"""Calls Ansible: one playbook, one verb of one overlay, and what became of it."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.image import daemons
from overlaylab.specs import overlays
from overlaylab.specs.inventory import Inventory, load_inventory

CONFIG = paths.PROVISION / "ansible.cfg"
PLAYBOOK = paths.PROVISION / "playbooks" / "overlay.yml"
VERBS = ("converge", "check", "install", "configure", "verify", "reset")


@dataclass(frozen=True)
class Failure:
    """One task that failed on one node."""

    node: str
    task: str
    message: str


@dataclass(frozen=True)
class PlaybookResult:
    """How a playbook ended.

    ok, changed: {node: number of tasks}; tasks: (name, seconds that it took on the slowest node).
    duration: seconds on this machine's monotonic clock.
    """

    ok: Mapping[str, int]
    changed: Mapping[str, int]
    failures: tuple[Failure, ...]
    tasks: tuple[tuple[str, float], ...]
    duration: float
    output: str


def run_playbook(
    inventory: Path,
    overlay: str,
    verb: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    secrets_file: Path | None = None,
    on_line: Callable[[str], None] | None = None,
) -> PlaybookResult:
    """Run one verb of the role overlay_<overlay> on all nodes of an inventory.

    arguments: the role's arguments. secrets_file: a file (0600) whose first line is the overlay's password;
    None: one that is made once per cache folder. on_line: called with the name of each task as it begins.
    Raises UserError that names node, task and message where a task fails.
    """
    if verb not in VERBS:
        raise UserError(
            "verb", f"must be one of {', '.join(VERBS)}", seen=json.dumps(verb), fix="Choose one of them."
        )
    nodes = load_inventory(inventory)
    variables = {
        **(arguments or {}),
        "overlay": overlay,
        "verb": verb,
        "overlay_secret_file": str(secrets_file or password_file(overlay)),
    }
    if built := overlays.recipes(overlay):
        variables["overlay_daemons"] = {
            binary: about for recipe in built for binary, about in daemons.ensure(recipe)["binaries"].items()
        }
    log = paths.cache() / "logs" / f"ansible-{overlay}-{verb}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with _workspace(nodes, variables) as (environment, variables_file), log.open("w") as file:
        command = [
            "ansible-playbook", "-i", str(inventory), "--extra-vars", f"@{variables_file}", str(PLAYBOOK),
        ]  # fmt: skip
        try:
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            )  # fmt: skip
        except FileNotFoundError:
            raise UserError(
                "ansible-playbook", "must be in the path", fix="Call this through ./task, which installs it."
            ) from None
        reader = _Reader(on_line)
        try:
            for line in process.stdout or ():
                file.write(line)
                reader.read(line)
            code = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    result = reader.result(time.monotonic() - started)
    if code or result.failures or not result.ok:
        raise _error(overlay, verb, result, log)
    return result


def password_file(overlay: str) -> Path:
    """A file with a random password, made once per cache folder, readable by its owner only."""
    path = paths.cache() / "secrets" / f"{overlay}-password"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(24) + "\n")
    return path


class _Reader:
    """Follows the JSON lines of playbooks/callback_plugins/overlaylab.py."""

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        self._on_line = on_line
        self._lines: list[str] = []
        self._failures: list[Failure] = []
        self._tasks: dict[str, float] = {}
        self._stats: dict[str, dict[str, int]] = {}

    def read(self, line: str) -> None:
        self._lines.append(line)
        try:
            event = json.loads(line)
            kind = event["event"]
        except (ValueError, KeyError, TypeError):
            return  # a warning of Ansible's own; it is in the log
        if kind == "task" and self._on_line:
            self._on_line(event["task"])
        elif kind == "result":
            name = event["task"]
            self._tasks[name] = max(event["seconds"], self._tasks.get(name, 0.0))
            if event["status"] in ("failed", "unreachable"):
                self._failures.append(Failure(event["node"], name, event["message"]))
        elif kind == "stats":
            self._stats = event["hosts"]

    def result(self, duration: float) -> PlaybookResult:
        return PlaybookResult(
            ok={node: counts["ok"] for node, counts in self._stats.items()},
            changed={node: counts["changed"] for node, counts in self._stats.items()},
            failures=tuple(self._failures),
            tasks=tuple(self._tasks.items()),
            duration=duration,
            output="".join(self._lines),
        )


@contextmanager
def _workspace(nodes: Inventory, variables: Mapping[str, Any]) -> Iterator[tuple[dict[str, str], Path]]:
    """The environment of one call, with a private folder for its variables and host keys."""
    with tempfile.TemporaryDirectory(prefix="overlaylab-ansible-") as name:
        folder = Path(name)
        variables_file = folder / "variables.json"
        variables_file.write_text(json.dumps(dict(variables)))
        environment = os.environ | {
            "ANSIBLE_CONFIG": str(CONFIG),
            "ANSIBLE_ROLES_PATH": ":".join(map(str, overlays.FOLDERS)),
            "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_FORKS": str(max(5, len(nodes.nodes))),
        }
        keys = [node for node in nodes.nodes if node.host_key]
        if keys:
            known = folder / "known_hosts"
            known.write_text(
                "".join(
                    f"{node.ssh_host if node.ssh_port == 22 else f'[{node.ssh_host}]:{node.ssh_port}'} {node.host_key}\n"
                    for node in keys
                )
            )
            # Nodes without a key of their own are looked up where ssh does.
            files = (
                str(known)
                if len(keys) == len(nodes.nodes)
                else f"{known} ~/.ssh/known_hosts /etc/ssh/ssh_known_hosts"
            )
            environment["ANSIBLE_SSH_COMMON_ARGS"] = shlex.join(["-o", f"UserKnownHostsFile={files}"])
        yield environment, variables_file


def _error(overlay: str, verb: str, result: PlaybookResult, log: Path) -> UserError:
    where = f"{overlay} {verb}"
    if not result.failures:
        told = " / ".join(line.strip() for line in result.output.strip().splitlines()[-3:]) or "no output"
        return UserError(
            where, f"Ansible did not get to the end: {told}", fix=f"The whole output is in {log}."
        )
    # The same message from several nodes is told once.
    grouped: dict[tuple[str, str], list[str]] = {}
    for failure in result.failures:
        grouped.setdefault((failure.task, failure.message), []).append(failure.node)
    told = "; ".join(
        f'{" and ".join(nodes)}: "{task.rsplit(" : ", 1)[-1]}" failed: {" ".join(message.split()).rstrip(".")}'
        for (task, message), nodes in grouped.items()
    )
    return UserError(where, told, fix=f"The whole output is in {log}.")
