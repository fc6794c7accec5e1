"""Ansible's linear strategy with nodes that only answer: what each would be told to do is written down.

A play's variable recorder_state says what its nodes are in: fresh, lacking (of the daemons), other (another mode
runs) or same. RECORDER_FILE takes a JSON object for each task and node.
"""

import base64
import json
import os
from pathlib import Path

from ansible.plugins.action import ActionBase
from ansible.plugins.loader import action_loader
from ansible.plugins.strategy.linear import StrategyModule

__all__ = ["StrategyModule"]


def answer(module, arguments, variables):
    state = variables["recorder_state"]
    said = "unchanged" if state == "same" else "changed"
    if module == "overlay_check":
        there = "of another mode" if state in ("other", "same") else None
        missing = list(arguments["digests"]) if state == "lacking" else []
        return {"missing": missing, "settings": dict.fromkeys(arguments["settings"], there)}
    if module == "slurp":
        return {"content": base64.b64encode(b"a token").decode()}
    words = str(arguments.get("cmd"))
    if "wait.sh" in words:
        said = json.dumps({"endpoint_address": f"endpoint-of-{variables['inventory_hostname']}"})
    elif "wg genkey" in words:
        said = f"key-of-{variables['inventory_hostname']} made"
    return {"changed": True, "rc": 0, "stdout": said, "stderr": ""}


def record(action, module, arguments, variables):
    line = {
        "play": variables["recorder_play"],
        "node": variables["inventory_hostname"],
        "task": action._task.get_name().rsplit(" : ", 1)[-1],
        "module": module.rsplit(".", 1)[-1],
        "arguments": arguments,
    }
    # One write for each line: the nodes' workers are processes of their own.
    with Path(os.environ["RECORDER_FILE"]).open("a", buffering=1 << 24) as file:
        file.write(json.dumps(line, default=str) + "\n")
    return line["module"]


def execute_module(self, module_name=None, module_args=None, tmp=None, task_vars=None, **_):
    arguments = dict(self._task.args if module_args is None else module_args)
    module = record(self, module_name or self._task.action, arguments, task_vars)
    return answer(module, {"cmd": arguments.get("_raw_params"), **arguments}, task_vars)


def copy(self, tmp=None, task_vars=None):
    record(self, "copy", dict(self._task.args), task_vars)
    return {"changed": True}


ActionBase._execute_module = execute_module
ActionBase._early_needs_tmp_path = lambda self: False
action_loader.get("copy", class_only=True).run = copy
