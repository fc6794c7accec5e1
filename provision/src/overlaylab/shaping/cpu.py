"""vCPUs and CPU quota of the nodes: put in force, and read back from what the nodes say themselves.

What a quota inside a node does not hold: kernel threads and softirq work that runs in them, PID 1, and containers
whose runtime makes control groups outside the slices. Each of the two slices may use the whole quota: what is run
over SSH is in user.slice, daemons and the servers of benchmarks are in system.slice, so a node that works in both
at once can use up to twice of it. A hypervisor's quota has none of these gaps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from overlaylab.core.errors import NodeError
from overlaylab.nodes.ssh import Nodes

# On the node: which CPUs were taken offline, which slices limited. Gone after a reboot, as both are.
STATE = "/run/overlaylab/cpu"

# Microseconds over which a quota is kept to: the default of the kernel, systemd and libvirt alike.
PERIOD = 100_000

# Where systemd runs daemons and logins (systemd.special(7)); a machine's root group takes no quota.
SLICES = "system.slice user.slice"

# Relative difference up to which two quotas are one: systemd takes hundredths of a percent, libvirt whole µs.
TOLERANCE = 0.01


@dataclass(frozen=True)
class CpuState:
    """What is in force on a node. quota: share of the time of its vCPUs together, None where not limited."""

    vcpus: int
    quota: float | None


class CpuHolder(Protocol):
    """Holds all nodes of a cluster to a number of vCPUs and a share of their time."""

    async def hold(self, vcpus: int | None, quota: float | None) -> None:
        """Put both in force; None: all that there are, no limit. Idempotent; hold(None, None) leaves no trace.

        A node that has fewer vCPUs than asked gets what there is: `held` says so. Nothing is remembered between
        calls, as a revert replaces whatever was in force. NodeError where a node or hypervisor refuses; UserError
        where these nodes take it only when they are made.
        """
        ...

    async def held(self) -> dict[str, CpuState]:
        """What is in force now, by node, as kernel and hypervisor say. NodeError where they cannot be asked."""
        ...

    def after_reboot(self, vcpus: int | None, quota: float | None) -> str:
        """What a node has to do itself, as root's POSIX sh, for both to be in force again after a reboot."""
        ...


class InNode:
    """Holds nodes from inside, as root there: CPUs taken offline, a quota on systemd's slices."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes

    async def hold(self, vcpus: int | None, quota: float | None) -> None:
        await self.nodes.sh(hold_script(vcpus, quota))

    async def held(self) -> dict[str, CpuState]:
        answers = await self.nodes.sh(READ)
        return {name: parse_held(name, done.stdout) for name, done in answers.items()}

    def after_reboot(self, vcpus: int | None, quota: float | None) -> str:
        return "" if (vcpus, quota) == (None, None) else hold_script(vcpus, quota)


def problems(state: CpuState, vcpus: int | None, quota: float | None) -> list[str]:
    """What of `vcpus` and `quota`, as hold() was asked for them, is not in force, in words."""
    found = []
    if vcpus is not None and state.vcpus != vcpus:
        found.append(f"{state.vcpus} vCPU{'' if state.vcpus == 1 else 's'} in place of {vcpus}")
    if not same_quota(state.quota, quota):
        found.append(f"{_in_words(state.quota)} in place of {_in_words(quota)}")
    return found


def same_quota(one: float | None, other: float | None) -> bool:
    """Whether two quotas are one, within TOLERANCE. All of the time is no limit."""
    return math.isclose(one or 1.0, other or 1.0, rel_tol=TOLERANCE)


def _in_words(quota: float | None) -> str:
    return "no quota" if quota is None else f"a quota of {quota:.4g}"


# -- scripts ------------------------------------------------------------------------------------------

# `limit_of GROUP` finds a control group's quota and period in either version of the hierarchy; none is `max`.
_LIMIT_OF = """\
groups=/sys/fs/cgroup
limit_of() {
    quota=max period=100000
    if [ -e "$groups$1/cpu.max" ]; then
        read -r quota period <"$groups$1/cpu.max"
    elif [ -e "$groups/cpu$1/cpu.cfs_quota_us" ]; then
        read -r quota <"$groups/cpu$1/cpu.cfs_quota_us"
        read -r period <"$groups/cpu$1/cpu.cfs_period_us"
        [ "$quota" != -1 ] || quota=max
    fi
}
"""

# POSIX sh: the CPUs that a command may use, then quota and period (µs) of the root group and of each slice.
READ = f"""set -eu
{_LIMIT_OF}
nproc
# What a container's own root group is held to; a machine's has no such file, or says that it is not limited.
limit_of ''
echo "$quota $period"
for slice in {SLICES}; do
    [ -d "$groups/$slice" ] || [ -d "$groups/cpu/$slice" ] || continue
    limit_of "/$slice"
    echo "$quota $period"
done
"""


def parse_held(node: str, text: str) -> CpuState:
    """From what READ printed. NodeError where it is something else.

    Of several slices the least strict counts: it is what the node as a whole is held to.
    """
    try:
        vcpus, *groups = text.split("\n")
        count = int(vcpus)
        root, *slices = [cpus_worth(line) for line in groups if line]
    except ValueError as error:
        raise NodeError(f"{node}: cannot tell vCPUs and quota from {text!r}") from error
    worth = min(root, max(slices, default=math.inf))
    return CpuState(count, share(worth, count))


def cpus_worth(limit: str) -> float:
    """CPUs' worth of time of ``50000 100000``, as in cpu.max; math.inf of ``max 100000``. ValueError else."""
    quota, period = limit.split()
    return math.inf if quota == "max" else int(quota) / int(period)


def share(worth: float, vcpus: int) -> float | None:
    """The share of so many vCPUs' time that `worth` CPUs' worth is; None where it is no limit to them."""
    return round(worth / vcpus, 6) if worth < vcpus else None


# The note is written before the CPU goes, so that a kill in between leaves none behind. Reading a file costs no
# process in sh, and a CPU that is online already may be told so again.
_ONLINE = """\
cpus=/sys/devices/system/cpu
noted=''
[ ! -e "$state/offline" ] || read -r noted <"$state/offline"
read -r present <"$cpus/present"
last=${present##*[-,]} number=0 kept=''
while [ "$number" -le "$last" ]; do
    switch=$cpus/cpu$number/online online=1
    [ -d "$cpus/cpu$number" ] || online=0
    # Not every kernel lets its first CPU be switched: it has no such file.
    [ ! -e "$switch" ] || read -r online <"$switch"
    case " $noted " in *" $number "*) ours=1 ;; *) ours='' ;; esac
    if [ "$left" -gt 0 ]; then
        if [ "$online$ours" = 01 ]; then
            echo 1 >"$switch" || refused "to bring CPU $number back online"
            online=1
        fi
        left=$((left - online)) ours=''
    elif [ "$online" = 1 ]; then
        noted="$noted $number" ours=1
        echo "$noted" >"$state/offline"
        { [ -e "$switch" ] && echo 0 >"$switch"; } || refused "to take CPU $number offline"
    fi
    [ -z "$ours" ] || kept="$kept $number"
    number=$((number + 1))
done
"""

# set-property alone would leave an empty CPUQuota= behind, which hides one of the node's own; so the drop-in that
# it writes goes, and systemd reads its units again.
_UNLIMIT = """\
reload=''
for slice in $slices; do
    [ -d "$state/$slice" ] || continue
    reload=1
    systemctl set-property --runtime "$slice" CPUQuota=
    rm -rf "${control:?}/$slice.d/50-CPUQuota.conf"
    [ ! -e "$state/$slice/50-CPUQuota.conf" ] || cp "$state/$slice/50-CPUQuota.conf" "$control/$slice.d/"
    rmdir "$control/$slice.d" 2>/dev/null || :
done
if [ -n "$reload" ]; then
    rmdir "$control" 2>/dev/null || :
    systemctl daemon-reload
fi
for slice in $slices; do rm -rf "${state:?}/$slice"; done
"""

# Limited already is left alone: systemctl costs more than all the rest.
_LIMIT = """\
count=$(nproc)
percent=$((count * share / 100)).$((count * share % 100 / 10))$((count * share % 10))
wanted=$((count * share * 10))
limited() { limit_of "/$1"; [ "$quota" != max ] && [ $((quota * 100000)) -eq $((wanted * period)) ]; }
for slice in $slices; do
    ! limited "$slice" || continue
    if [ ! -d "$state/$slice" ]; then
        mkdir -p "$state/$slice"
        [ ! -e "$control/$slice.d/50-CPUQuota.conf" ] ||
            cp "$control/$slice.d/50-CPUQuota.conf" "$state/$slice/"
    fi
    systemctl set-property --runtime "$slice" "CPUQuota=$percent%"
    # A slice without a group has nothing in it; one that comes later comes with its quota.
    { [ ! -d "$groups/$slice" ] && [ ! -d "$groups/cpu/$slice" ]; } || limited "$slice" ||
        refused "to hold $slice to $percent %, its limit is $quota of $period us"
done
"""


def _begin() -> str:
    return f"""set -eu
state={STATE} slices='{SLICES}' control=/run/systemd/system.control
refused() {{ echo "this node's kernel refuses $1" >&2; exit 1; }}
"""


def hold_script(vcpus: int | None, quota: float | None) -> str:
    """POSIX sh for root on the node: as many vCPUs and such a share of their time, for all that runs in slices.

    It fails where the kernel refuses, a container's for example, whose CPUs are those of its machine.
    """
    if vcpus is None and quota is None:
        return clear_script()
    # Hundredths of a percent, which is what systemd takes and sh can count.
    limit = f"share={round(quota * 10_000)}\n{_LIMIT_OF}{_LIMIT}" if quota is not None else _UNLIMIT
    return f"""{_begin()}[ -d "$state" ] || mkdir -p "$state"
left={_many(vcpus)}
{_ONLINE}echo "$kept" >"$state/offline"
{limit}"""


def clear_script() -> str:
    """POSIX sh for root on the node: give it back the CPUs and the time that hold_script took, and no more."""
    return f"""{_begin()}[ -d "$state" ] || exit 0
left={_many(None)}
{_ONLINE}{_UNLIMIT}rm -rf "$state"
rmdir "${{state%/*}}" 2>/dev/null || :
"""


def _many(vcpus: int | None) -> int:
    """How many CPUs stay online; more than any machine has where none is to go."""
    return 1_000_000 if vcpus is None else vcpus
