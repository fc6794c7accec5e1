"""Whether an overlay's daemons lived through a trial: their processes and CPU time, as their cgroups show them.

A sample takes no process of its own, for one costs 10 ms on an emulated CPU: the shell reads files. It is taken
right before and right after a trial, and once in its middle while traffic flows. A daemon is known again by process
number and start time: the same ones before and after mean that it lived all the time in between.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from overlaylab.core.model import Evidence

# On a node: the sample that was taken in the middle of the trial whose client ran there.
KEPT = "/run/overlaylab/health"

# States of a process, as proc_pid_stat(5) has them, in which it does no work.
_ENDED = {"Z": "a zombie", "X": "dead", "T": "stopped", "t": "traced"}


def sample_script(units: Collection[str]) -> str:
    """POSIX sh for root, builtins only: prints the units' sample as one JSON object in one line.

    {unit: null where it does not run though it is set up on this node, else {"cpu_usec": its CPU time, "processes":
    [[process, state, start in ticks since boot], …]}}. Listed are processes that systemd itself started (those have it
    as their parent); helpers come and go. Units that this node does not have are left out: not every member of a
    cluster has etcd, not every mode a BGP speaker.
    """
    # cgroup v2; v2 beside v1, as in containers on some hosts; v1, whose CPU time is another file, in ns.
    return f"""\
sample=''
for unit in {shlex.join(units)}; do
    group='' usec=null alive=''
    for root in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
        if [ -e "$root/system.slice/$unit/cgroup.procs" ]; then group=$root/system.slice/$unit; break; fi
    done
    if [ -n "$group" ]; then
        if [ -e "$group/cpu.stat" ]; then
            while read -r name value; do [ "$name" != usage_usec ] || usec=$value; done <"$group/cpu.stat"
        fi
        file=/sys/fs/cgroup/cpuacct/system.slice/$unit/cpuacct.usage
        if [ "$usec" = null ] && [ -e "$file" ]; then read -r value <"$file"; usec=$((value / 1000)); fi
        while read -r process; do
            read -r line 2>/dev/null </proc/$process/stat || continue
            set -- ${{line##*) }}  # behind the command's name, which may hold blanks: state, parent, …, start
            [ "$2" != 1 ] || alive="$alive${{alive:+,}}[$process,\\"$1\\",${{20}}]"
        done <"$group/cgroup.procs"
    elif [ ! -e "/run/systemd/system/$unit" ] && [ ! -e "/run/systemd/system/$unit.d" ]; then
        continue
    fi
    [ -z "$alive" ] || alive="{{\\"cpu_usec\\":$usec,\\"processes\\":[$alive]}}"
    sample="$sample${{sample:+,}}\\"$unit\\":${{alive:-null}}"
done
printf '{{%s}}\\n' "$sample"
"""


def sampled_meanwhile(command: str, units: Collection[str], after: float) -> str:
    """The command, for a shell, with a sample `after` so many seconds on its own node, kept there in KEPT.

    The node's one open shell is busy with the command itself, and a login of its own would take half a second of an
    emulated CPU from it. Should the command end before, nothing is kept.
    """
    if not units:
        return command
    # Emptied here: the sampling shell may be ended before it gets to it. Not with `:`, which would end this shell
    # where that cannot be done (a special builtin).
    return f"""\
true 2>/dev/null >{KEPT}
( sleep {after:g}
{sample_script(units)}) 2>/dev/null >{KEPT} &
{command}
code=$?
kill $! 2>/dev/null
exit $code
"""


def kept_script() -> str:
    """POSIX sh, builtins only: prints the sample that `sampled_meanwhile` kept, null where there is none."""
    return f"kept=null; if [ -s {KEPT} ]; then read -r kept <{KEPT}; fi; printf '%s\\n' \"$kept\""


Sample = Mapping[str, Any]

# [number, state, start in ticks since boot].
Process = Sequence[Any]


@dataclass(frozen=True)
class Moments:
    """The samples of one node around one trial. during: None where the trial was over before its middle."""

    before: Sample
    during: Sample | None
    after: Sample


def judge(node: str, units: Sequence[str], seen: Moments, required: bool = True) -> Evidence | None:
    """Every daemon that this node has ran before the trial, and the same process did until after it.

    None where it has none and none is required.
    """
    there = [unit for unit in units if unit in seen.before or unit in seen.after]
    if not there and not required:
        return None
    observed: dict[str, Any] = {}
    problems = [] if there else [f"none of {', '.join(units)} is set up on this node"]
    for unit in there:
        before, after = seen.before.get(unit), seen.after.get(unit)
        observed[unit] = {
            "before": _processes(before),
            "during": _processes(seen.during.get(unit)) if seen.during is not None else None,
            "after": _processes(after),
            "cpu_seconds": cpu_seconds(before, after),
        }
        problems += _problems(unit, observed[unit])
    return Evidence(
        node, "health", "during", not problems, {"units": list(units)}, observed, "; ".join(problems) or None
    )


def cpu_seconds(before: Sample | None, after: Sample | None) -> float | None:
    """CPU time that a unit used between two samples; None where it did not run, or nothing tells it."""
    first, last = ((one or {}).get("cpu_usec") for one in (before, after))
    return None if first is None or last is None or last < first else (last - first) / 1e6


def _processes(sample: Sample | None) -> list[Process]:
    return [] if sample is None else list(sample["processes"])


def _problems(unit: str, moments: Mapping[str, Any]) -> list[str]:
    began = {_identity(one) for one in moments["before"]}
    if not began:
        return [f"{unit} did not run before the trial"]
    found = []
    for when in ("during", "after"):
        if moments[when] is None:
            continue
        now = {_identity(one) for one in moments[when]}
        if not began <= now:
            found.append(f"{unit} {'was restarted' if now - began else 'ended'} {_WHEN[when]}")
            break
    idle = {
        _ENDED[state]
        for when in ("before", "during", "after")
        for _, state, _ in moments[when] or ()
        if state in _ENDED
    }
    found += [f"a process of {unit} was {word}" for word in sorted(idle)]
    return found


_WHEN = {"during": "before the middle of the trial", "after": "during the trial"}


def _identity(process: Process) -> tuple[int, int]:
    """What tells a process from a later one with its number."""
    return process[0], process[2]
