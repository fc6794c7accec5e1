"""What a container is told in its configuration: its ports and what this machine's control groups hold it to."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path

# What every bridge and host-side veth of the lab begins with.
LINK_PREFIX = "ovlab"

# Bridge of every container's eth0.
MANAGEMENT = "ovlab-mgmt"
MANAGEMENT_NETWORK = IPv4Network("192.168.79.0/24")
MANAGEMENT_HOST = IPv4Interface("192.168.79.1/24")
# Last octet of the first node's management address.
FIRST_NODE = 11

# Jumbo frames fit; a profile sets what the tier has.
UNDERLAY_MTU = 9001

# Microseconds over which the kernel keeps to a CPU quota (its own default).
CPU_PERIOD = 100_000


# -- networks -----------------------------------------------------------------------------------------


def underlay_bridge(cluster: str) -> str:
    """Name of a cluster's underlay: at most 15 characters (IFNAMSIZ), whatever the cluster is called."""
    name = f"{LINK_PREFIX}-u-{cluster}"
    return name if len(name) <= 15 else f"{LINK_PREFIX}-{short_digest(cluster, 8)}"


def short_digest(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def mac(container: str, interface: str) -> str:
    """A node's own MAC address, the same at each start: neighbour entries stay right."""
    three = short_digest(f"{container} {interface}", 6)
    return f"00:16:3e:{three[:2]}:{three[2:4]}:{three[4:]}"


def settings(container: str, address: str, underlay: str, limits: Limits) -> list[tuple[str, str]]:
    """The container's own lines of lxc.container.conf(5), without their prefix ``lxc.``."""
    lines: list[tuple[str, str]] = []
    ports = (
        ("eth0", MANAGEMENT, "1500"),
        ("eth1", underlay, str(UNDERLAY_MTU)),
    )
    for number, (interface, bridge, mtu) in enumerate(ports):
        values = {
            "type": "veth",
            "link": bridge,
            "flags": "up",
            "name": interface,
            "mtu": mtu,
            "hwaddr": mac(container, interface),
            # A name of our own, so that what is left after a kill is known for ours.
            "veth.pair": f"{LINK_PREFIX}{short_digest(container, 8)}{number}",
        }
        if interface == "eth0":
            values["ipv4.address"] = f"{address}/{MANAGEMENT_NETWORK.prefixlen}"
        lines += [(f"net.{number}.{key}", value) for key, value in values.items()]
    return [*lines, *limits.settings]


# -- control groups -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """What a container is held to. settings: lines of its configuration; problems: what cannot be, in words.

    cpus: CPUs that its processes see and may use; quota: CPUs' worth of time, None where not limited;
    memory_mib: MiB, None where it cannot be limited.
    """

    cpus: int
    quota: float | None
    memory_mib: int | None
    settings: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = field(default=(), compare=False)


def limits(
    index: int,
    cpus: int,
    memory_mib: int,
    quota: float | None = None,
    *,
    controllers: Mapping[str, int] | None = None,
    cores: Sequence[int] | None = None,
) -> Limits:
    """How node number `index` gets its vCPUs and memory through this machine's control groups.

    quota: share of the vCPUs' time, in (0, 1]. controllers: {controller: version of its hierarchy, 1 or 2};
    cores: those that this process may use. Nodes take cores in turn, and share them where there are too few.
    """
    controllers = controllers_of_this_machine() if controllers is None else controllers
    cores = sorted(os.sched_getaffinity(0)) if cores is None else cores
    settings: list[tuple[str, str]] = []
    problems: list[str] = []
    given, share = min(cpus, len(cores)), cpus * quota if quota else None
    if given < cpus:
        problems.append(f"{cpus} vCPUs are asked for and this machine has {len(cores)} cores")
    if given < len(cores):
        if "cpuset" in controllers:
            own = sorted(cores[(index * given + n) % len(cores)] for n in range(given))
            settings.append((_key(controllers, "cpuset", "cpuset.cpus"), ",".join(map(str, own))))
        else:
            share, given = share or float(cpus), len(cores)
            problems.append("no cpuset controller: the node sees all cores and gets the time of its own")
    if share is not None and share < given:
        if "cpu" not in controllers:
            problems.append("no cpu controller: its CPU time is not limited")
            share = None
        elif controllers["cpu"] == 2:
            settings.append(("cgroup2.cpu.max", f"{round(share * CPU_PERIOD)} {CPU_PERIOD}"))
        else:
            settings.append(("cgroup.cpu.cfs_period_us", str(CPU_PERIOD)))
            settings.append(("cgroup.cpu.cfs_quota_us", str(round(share * CPU_PERIOD))))
    else:
        share = None
    memory: int | None = memory_mib
    if controllers.get("memory") == 2:
        settings.append(("cgroup2.memory.max", str(memory_mib * 2**20)))
    elif "memory" in controllers:
        settings.append(("cgroup.memory.limit_in_bytes", str(memory_mib * 2**20)))
    else:
        problems.append("no memory controller: its memory is not limited")
        memory = None
    return Limits(given, share, memory, tuple(settings), tuple(problems))


def _key(controllers: Mapping[str, int], controller: str, setting: str) -> str:
    return f"{'cgroup2' if controllers[controller] == 2 else 'cgroup'}.{setting}"


def controllers_of_this_machine() -> dict[str, int]:
    """{controller: 1 or 2}, the version of the hierarchy that it is bound to here."""
    mounts = Path("/proc/self/mountinfo").read_text()
    unified = {}
    for line in mounts.splitlines():
        if " - cgroup2 " in line:
            path = Path(line.split()[4]) / "cgroup.controllers"
            unified[line.split()[4]] = path.read_text() if path.exists() else ""
    return parse_controllers(mounts, unified)


def parse_controllers(mountinfo: str, unified: Mapping[str, str]) -> dict[str, int]:
    """From proc_pid_mountinfo(5) and the cgroup.controllers of each cgroup2 mount point."""
    found = {name: 2 for text in unified.values() for name in text.split()}
    for line in mountinfo.splitlines():
        _, _, filesystem = line.partition(" - ")
        kind, _, options = [*filesystem.split(" ", 2), "", ""][:3]
        if kind == "cgroup":
            found |= {name: 1 for name in options.split(",") if name not in ("rw", "ro") and "=" not in name}
    return found
