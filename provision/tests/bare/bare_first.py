"""Commands typed first: each on a bare machine of its own, on which nothing has been typed before."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from bare_space import Space

SHORT = "BLOCKS=1 SCALE=0.2 PROFILE=none PROVIDER=lxc"
"""What makes a lab task short: containers, no tier."""

REFUSED = 2
"""The exit code of a command whose last line, one paragraph, says what to type first."""

COMMANDS: tuple[tuple[str, int], ...] = (
    ("./task", 0),
    ("./task lab:weave --help", 0),
    ("./task setup", 0),
    ("./task doctor", 1),
    ("./task lab:weave DRY_RUN=1", 0),
    (f"./task lab:flannel MODES=host-gw {SHORT}", 0),
    ("./task lab:up PROVIDER=lxc", 0),
    ("./task lab:status", 0),
    ("./task lab:ssh -- node1 true", 2),
    ("./task lab:explain OVERLAY=weave", 0),
    ("./task lab:mtu", 2),
    ("./task lab:mtu OVERLAY=flannel MODES=host-gw PROFILE=none PROVIDER=lxc", 0),
    ("./task lab:policy OVERLAY=calico MODES=bgp BLOCKS=1 SCALE=0.2 RULES=5 PROVIDER=lxc", 0),
    ("./task lab:resume", 2),
    ("./task lab:down", 0),
    ("./task lab:validate", 0),
    ("./task --yes lab:destroy", 0),
    ("./task image:build", 0),
    ("./task image:show", 0),  # an image is lent
    ("./task image:validate", 0),
    ("./task profile:list", 0),
    ("./task profile:show PROFILE=azure-a1", 0),
    ("./task profile:apply PROFILE=azure-a1", 2),
    ("./task results:list", 2),
    ("./task results:show LAB_DB=viewer/demo/demo.sqlite", 2),
    ("./task view", 2),
    ("./task viewer:demo", 0),
    ("./task viewer:package", 0),
    ("./task bundle:show FILE=overlaylab.tar", 2),
    ("./task bundle:make OUT=../overlaylab.tar FOR=debian-12 WITH=viewer", 0),
    ("./task docs:overlays", 0),
    ("./task bench:statistics TRIALS=2 INTERVALS=20", 0),
    ("./task bench:fuzz INPUTS=200", 0),
    ("./task bench:profiles DRY_RUN=1", 0),
    ("./task bench:fidelity DRY_RUN=1", 0),
    ("./task test:lint", 0),
    ("./task test:unit -- -k routes", 0),
    ("./task test:kills KILLS=2", 0),
    ("./task test:viewer -- -t figure", 0),
    ("./task test:bare", 201),
)
"""(command, the exit code that is right)."""


def walk(machine: Callable[[], AbstractContextManager[Space]], commands: Mapping[str, int]) -> int:
    """Type each on a machine of its own, print a row each; how many ended otherwise than they should."""
    wrong = 0
    for command, expected in commands.items():
        with machine() as there:
            wrong += not _row(there, command, expected)
    return wrong


def _row(there: Space, command: str, expected: int) -> bool:
    started = time.monotonic()
    done = there.as_user(
        f"cd overlaylab && {command}",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    took = time.monotonic() - started
    told = [line for line in done.stdout.splitlines() if line.strip()]
    packages = there.as_root(["sh", "-c", "dpkg-query -W | wc -l"], capture_output=True).stdout.strip()
    last = told[-1] if told else ""
    right = done.returncode == expected and "Traceback" not in done.stdout
    right = right and (expected != REFUSED or last.startswith("overlaylab: "))
    verdict = "right" if right else f"WRONG, expected {expected}"
    print(
        f"{command} | {done.returncode} {verdict} | {took:.0f} s | {packages} packages | {last}", flush=True
    )
    if not right:
        print("\n".join(f"    {line}" for line in told[-15:]), flush=True)
    return right
