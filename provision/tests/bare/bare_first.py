"""Commands typed first: each on a bare machine of its own, on which nothing has been typed before."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from bare_space import USER, Space


@dataclass(frozen=True)
class First:
    """A command, the exit code that is right, and whether it may install no package and use no sudo."""

    command: str
    code: int = 0
    free: bool = False


# What makes a lab task short: containers, no tier.
SHORT = "BLOCKS=1 SCALE=0.2 PROFILE=none PROVIDER=lxc"

# The exit code of a command whose last line, one paragraph, says what to type first.
REFUSED = 2

# May install no package and use no sudo.
FREE = True

# What stands before a task to give it results.
_DEMO = "zcat viewer/demo/demo.sqlite.gz >../demo.sqlite && LAB_DB=$HOME/demo.sqlite"

# (command, the exit code that is right, FREE where it is that).
COMMANDS: tuple[tuple[str, int] | tuple[str, int, bool], ...] = (
    ("./task", 0, FREE),
    ("./task lab:weave --help", 0, FREE),
    ("./task setup", 0),
    ("./task doctor", 1, FREE),
    ("./task version", 0, FREE),
    ("./task lab:weave DRY_RUN=1", 0, FREE),
    ("./task lab:host DRY_RUN=1", 0, FREE),
    ("./task lab:all DRY_RUN=1", 0, FREE),
    (f"./task lab:flannel MODES=host-gw {SHORT}", 0),
    ("./task lab:up PROVIDER=lxc", 0),
    ("./task lab:status", 0, FREE),
    ("./task lab:ssh -- node1 true", REFUSED, FREE),
    ("./task lab:explain OVERLAY=weave", 0, FREE),
    ("./task lab:mtu", REFUSED, FREE),
    ("./task lab:mtu OVERLAY=flannel MODES=host-gw PROFILE=none PROVIDER=lxc", 0),
    ("./task lab:policy OVERLAY=calico MODES=bgp BLOCKS=1 SCALE=0.2 RULES=5 PROVIDER=lxc", 0),
    ("./task lab:resume", REFUSED, FREE),
    ("./task lab:down", 0, FREE),
    ("./task lab:validate", 0),
    ("./task lab:shell -- node1 true", REFUSED, FREE),
    ("./task drill:list", 0, FREE),
    ("./task drill:history", 0, FREE),
    ("./task drill:start", REFUSED, FREE),
    ("./task drill:start DRILL=pings-fine-refuses-every-call PROVIDER=lxc", 0),
    ("./task drill:check", REFUSED, FREE),
    ("./task drill:prove DRILL=pings-fine-refuses-every-call PROVIDER=lxc SAMPLE=0", 0),
    ("./task --yes lab:destroy", 0, FREE),
    ("./task lab:destroy --help", 0, FREE),
    ("./task image:build", 0),
    ("./task image:show", 0, FREE),  # an image is lent
    ("./task image:validate", 0),
    ("./task profile:list", 0, FREE),
    ("./task profile:show PROFILE=azure-a1", 0, FREE),
    ("./task profile:apply PROFILE=azure-a1", REFUSED, FREE),
    ("./task profile:clear", REFUSED, FREE),
    ("./task profile:calibrate INVENTORY=hosts.yml NAME=own", REFUSED, FREE),
    ("./task results:list", REFUSED, FREE),
    (f"{_DEMO} ./task results:list", 0, FREE),
    (f"{_DEMO} ./task results:show", 0, FREE),
    (f"{_DEMO} ./task results:report OUT=../report.html", 0, FREE),
    (f"{_DEMO} ./task results:export FORMAT=csv OUT=../results.csv", 0, FREE),
    (f"{_DEMO} ./task results:compare", REFUSED, FREE),
    (f"{_DEMO} ./task results:refresh", 0, FREE),
    (f"{_DEMO} ./task results:prune KEEP=1 DRY_RUN=1", 0, FREE),
    (f"{_DEMO} ./task results:void RUN=1 WHY=tried YES=1", 0, FREE),
    ("./task results:import", REFUSED, FREE),
    ("./task view", REFUSED, FREE),
    ("./task viewer:demo", 0),
    ("./task viewer:package", 0),
    ("./task bundle:show FILE=overlaylab.tar", REFUSED, FREE),
    ("./task bundle:verify FILE=overlaylab.tar", REFUSED, FREE),
    ("./task bundle:make OUT=../overlaylab.tar FOR=debian-12 WITH=viewer", 0),
    ("./task docs:overlays", 0, FREE),
    ("./task bench:statistics TRIALS=2 INTERVALS=20", 0, FREE),
    ("./task bench:profiles DRY_RUN=1", 0, FREE),
    ("./task bench:fidelity DRY_RUN=1", 0, FREE),
    ("./task bench:front-door", 0, FREE),
    ("./task test:lint", 0),
    ("./task test:unit -- -k routes", 0),
    ("./task test:kills KILLS=2", 0),
    ("./task test:viewer -- -t figure", 0),
    ("./task test:bare", 201, FREE),
)


def rows(lines: Sequence[str]) -> list[First]:
    """Those of COMMANDS that are named, or all; a line that is none of them has to succeed."""
    known = {row[0]: First(*row) for row in COMMANDS}
    return [known.get(line, First(line)) for line in lines] or list(known.values())


def walk(machine: Callable[[], AbstractContextManager[Space]], commands: Sequence[First]) -> int:
    """Type each on a machine of its own, print a row each; how many ended otherwise than they should."""
    wrong = 0
    for first in commands:
        with machine() as there:
            wrong += not _row(there, first)
    return wrong


def _row(there: Space, first: First) -> bool:
    before, started = _packages(there), time.monotonic()
    done = there.as_user(
        f"cd overlaylab && {first.command}",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    took = time.monotonic() - started
    told = [line for line in done.stdout.splitlines() if line.strip()]
    last = told[-1] if told else ""
    came = _packages(there) - before
    wrong = faults(first, done.returncode, done.stdout, came, _sudo_was_used(there))
    verdict = f"WRONG: {', '.join(wrong)}" if wrong else "right"
    print(
        f"{first.command} | {done.returncode} {verdict} | {took:.0f} s | {came} packages came | {last}",
        flush=True,
    )
    if wrong:
        print("\n".join(f"    {line}" for line in told[-15:]), flush=True)
    return not wrong


def faults(first: First, code: int, told: str, came: int, sudo: bool) -> list[str]:
    """What is wrong with how a command ended. came: so many packages; sudo: whether it was used."""
    said = [line for line in told.splitlines() if line.strip()]
    judged = {
        f"expected {first.code}": code != first.code,
        "a traceback": "Traceback" in told,
        "its last line is no message of ours": first.code == REFUSED
        and not (said and said[-1].startswith("overlaylab: ")),
        "no package may come": first.free and came != 0,
        "sudo may not be used": first.free and sudo,
    }
    return [what for what, wrong in judged.items() if wrong]


def _packages(there: Space) -> int:
    listed = there.as_root(["dpkg-query", "--show"], capture_output=True).stdout
    return len(listed.splitlines())


def _sudo_was_used(there: Space) -> bool:
    """Sudo leaves this with its first use by a member of its group (sudoers(5))."""
    return there.as_root(["test", "-e", f"/home/{USER}/.sudo_as_admin_successful"]).returncode == 0
