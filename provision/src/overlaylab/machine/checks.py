"""What ``./task doctor`` looks at: each check says what it found, how bad that is and what to do about it.

Checks change nothing, use no sudo and no network.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.machine import access, kvm, packages, ready, services, userns
from overlaylab.machine.root import is_root, user_name

OK, WARNING, PROBLEM = "ok", "warning", "problem"

# What ``lab:up`` asks for with the cluster pair: two nodes of 1024 MiB and 512 for QEMU itself.
MEMORY_NEEDED_MIB = 2560

# Bytes that ``lab:up`` asks for with two nodes; building the image asks for less.
DISK_NEEDED = 2 * 4 * 2**30

# Bytes with which snapshots of several overlays, 1 GB of memory per node in each, fit beside it.
DISK_COMFORTABLE = 20 * 10**9

# Share of the CPUs that has to be idle: with both cores of two busy, 100 Mbit/s were measured as 84 to 89.
IDLE_NEEDED = 0.8

SETUP = "type `./task setup`"


@dataclass(frozen=True)
class Check:
    """One line of the table. state: ``ok``, ``warning`` (the lab runs, with a drawback) or ``problem`` (it cannot)."""

    name: str
    state: str
    found: str
    advice: str = ""


def all_checks() -> list[Check]:
    """Every check, in the order in which they build on each other. About 2 s, some more when KVM is first tried."""
    return [check() for check in _CHECKS]


def can_run(checks: list[Check]) -> bool:
    """Whether nothing stands in the way."""
    return all(check.state != PROBLEM for check in checks)


def check_packages() -> Check:
    try:
        missing = packages.missing()
    except UserError as error:
        return Check("packages", PROBLEM, f"{error.where}: {error.seen}", error.fix)
    if missing:
        return Check("packages", PROBLEM, "missing: " + ", ".join(missing), f"{SETUP}, which installs them")
    return Check("packages", OK, f"all there, on {packages.system_name()}")


def check_libvirt() -> Check:
    if joining := access.missing_memberships():
        return Check("libvirt", PROBLEM, f"{user_name()} is not in the group {', '.join(joining)}", SETUP)
    error = services.libvirt_error()
    if error:
        return Check("libvirt", PROBLEM, error, f"{SETUP}, which starts it")
    by = "started by systemd" if services.has_systemd() else "no systemd here"
    if [service for service in services.started_services() if service.name == "libvirtd"]:
        by = "started by ./task setup, ended by ./task lab:destroy"
    return Check("libvirt", OK, f"{services.libvirt_version()} answers at {services.URI} ({by})")


def check_cache() -> Check:
    folder = paths.cache()
    closed = access.unsearchable_folder(folder)
    if closed == folder:
        return Check(
            "cache folder", PROBLEM, f"{folder} is closed to QEMU's user", f"{SETUP}, or chmod 0755 {folder}"
        )
    if closed:
        mode = f"{stat.S_IMODE(closed.stat().st_mode):04o}"
        return Check(
            "cache folder",
            PROBLEM,
            f"{folder}: QEMU's user cannot pass {closed} (mode {mode})",
            "unset OVERLAYLAB_CACHE, or choose a folder outside of it",
        )
    return Check("cache folder", OK, f"{folder}, searchable by QEMU's user")


def check_accelerator() -> Check:
    verdict = kvm.verdict()
    if not verdict.is_emulated:
        return Check("KVM", OK, f"works: {verdict.reason}")
    drawback = "without KVM the lab runs in software emulation: slower, and ratios that the CPU bounds are not a cloud's"
    return Check("KVM", WARNING, verdict.reason, f"{drawback}; {verdict.fix}" if verdict.fix else drawback)


def check_memory() -> Check:
    available = ready.available_memory_mib()
    domains = services.running_domains()
    found = f"{available} MiB available" + (f" beside {len(domains)} running VMs" if domains else "")
    if available >= MEMORY_NEEDED_MIB:
        return Check("memory", OK, found)
    advice = f"the cluster pair needs {MEMORY_NEEDED_MIB} MiB: end other programs"
    # The lab's own nodes may be among those that run, and then nothing more is needed.
    return Check("memory", WARNING if domains else PROBLEM, found, advice)


def check_disk() -> Check:
    free = ready.free_disk_bytes()
    found = f"{free / 1e9:.1f} GB free below {paths.cache()}"
    if free < DISK_NEEDED:
        advice = f"at least {DISK_NEEDED / 1e9:.0f} GB are needed: free some, or set OVERLAYLAB_CACHE to another disk"
        return Check("disk", PROBLEM, found, advice)
    if free < DISK_COMFORTABLE:
        return Check(
            "disk", WARNING, found, f"with {DISK_COMFORTABLE / 1e9:.0f} GB, snapshots of several overlays fit"
        )
    return Check("disk", OK, found)


def check_idle_cpu(seconds: float = 1.0) -> Check:
    before = read_stat()
    time.sleep(seconds)
    idle = idle_share(before, read_stat())
    cores = len(os.sched_getaffinity(0))
    found = f"{cores} core{'' if cores == 1 else 's'}, {idle:.0%} idle over {seconds:g} s"
    if cores < 2:
        return Check("CPU", WARNING, found, "two nodes share one core: measure with this in mind")
    if idle < IDLE_NEEDED:
        return Check(
            "CPU", WARNING, found, "measurements suffer while other work runs: end it before you measure"
        )
    return Check("CPU", OK, found)


def parse_stat(text: str) -> tuple[int, int]:
    """(idle, all) in clock ticks since boot, from the first line of proc_stat(5). Waiting for a disk is idle."""
    name, *counters = text.splitlines()[0].split()
    if name != "cpu":
        raise ValueError(f"/proc/stat begins with {name!r}")
    # user nice system idle iowait irq softirq steal; guest time is counted in user already.
    ticks = [int(counter) for counter in counters[:8]]
    return ticks[3] + ticks[4], sum(ticks)


def idle_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Share in [0, 1] of all CPUs' time between two readings that was idle."""
    elapsed = after[1] - before[1]
    if elapsed <= 0:
        raise ValueError("the two readings of /proc/stat are of the same tick")
    return (after[0] - before[0]) / elapsed


def read_stat() -> tuple[int, int]:
    """`parse_stat` of this machine, now."""
    return parse_stat(Path("/proc/stat").read_text(encoding="ascii"))


def check_user_namespaces() -> Check:
    name = "user namespaces"
    if is_root():
        return Check(name, OK, "root needs no user namespace")
    if packages.find_program("mmdebstrap") is None:
        return Check(name, PROBLEM, "mmdebstrap is not installed", SETUP)
    if trouble := userns.mmdebstrap_trouble():
        return Check(name, PROBLEM, f"no user namespace for mmdebstrap: {trouble.found}", trouble.fix)
    return Check(name, OK, "mmdebstrap may use a user namespace")


def check_virtualbox() -> Check:
    program = packages.find_program("VBoxManage")
    if program:
        return Check("VirtualBox", OK, f"{program}; libvirt is what the lab uses unless told otherwise")
    return Check("VirtualBox", OK, "not installed, and not needed: the lab uses libvirt")


_CHECKS: tuple[Callable[[], Check], ...] = (
    check_packages,
    check_libvirt,
    check_cache,
    check_accelerator,
    check_memory,
    check_disk,
    check_idle_cpu,
    check_user_namespaces,
    check_virtualbox,
)
