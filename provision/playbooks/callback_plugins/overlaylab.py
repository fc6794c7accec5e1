"""Prints what happens as one JSON object per line: overlaylab.nodes.ansible reads it."""

from __future__ import annotations

import json
import time

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: overlaylab
type: stdout
short_description: one JSON object per line
description:
  - Events are C(task), C(result) and C(stats). Of a result only what a reader needs is printed; what a task
    marks as C(no_log) is left out by Ansible before it gets here.
"""


class CallbackModule(CallbackBase):
    """Events: task (its name), result (one per node and task), stats (the end)."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "overlaylab"

    def __init__(self) -> None:
        super().__init__()
        self._started = time.monotonic()

    def v2_playbook_on_task_start(self, task, is_conditional) -> None:
        self._started = time.monotonic()
        self._print(event="task", task=task.get_name())

    def v2_runner_on_ok(self, result) -> None:
        self._result("ok", result)

    def v2_runner_on_failed(self, result, ignore_errors=False) -> None:
        self._result("ignored" if ignore_errors else "failed", result)

    def v2_runner_on_unreachable(self, result) -> None:
        self._result("unreachable", result)

    def v2_playbook_on_no_hosts_matched(self) -> None:
        self._print(event="warning", message="the inventory has no hosts")

    def v2_playbook_on_stats(self, stats) -> None:
        hosts = sorted(stats.processed)
        self._print(event="stats", hosts={host: stats.summarize(host) for host in hosts})

    def _result(self, status: str, result) -> None:
        said = result.result
        about = {
            "event": "result",
            "node": result.host.get_name(),
            "task": result.task.get_name(),
            "status": status,
            "changed": bool(said.get("changed")),
            "seconds": round(time.monotonic() - self._started, 2),
        }
        if status != "ok":
            about["message"] = _message(said)
        self._print(**about)

    def _print(self, **event) -> None:
        self._display.display(json.dumps(event))


def _message(said: dict) -> str:
    """The most telling text of a failure. A command's own words say more than "non-zero return code"."""
    if "censored" in said:
        return "its details are kept back because they may hold a secret"
    if "rc" in said:
        words = (
            str(said.get("stderr") or said.get("module_stderr") or "").strip()
            or str(said.get("stdout") or "").strip()
        )
        return words or f"ended with {said['rc']}"
    failed = [item for item in said.get("results", ()) if item.get("failed")]
    if failed:
        return "; ".join(_message(item) for item in failed)
    return str(said.get("msg") or "failed without a message")
