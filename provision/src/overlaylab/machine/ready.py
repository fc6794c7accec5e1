"""The host, the machine that runs the nodes: making it ready, and what it is and can do.

Lab tasks call ``ensure()`` first. It costs under 0.3 s when all is in place, changes nothing then and never
touches the network.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.machine import access, kvm, packages, services
from overlaylab.machine.services import stop_services

__all__ = [
    "accelerator",
    "accelerator_reason",
    "available_memory_mib",
    "ensure",
    "ensure_packages",
    "machine",
    "preflight",
    "stop_services",
]

_MIB = 2**20
_GIB = 2**30


@dataclass(frozen=True)
class Needs:
    """What nodes take of this machine."""

    # Of `packages.OPTIONAL`, beside the packages that all nodes of this machine need.
    groups: tuple[str, ...] = ()
    # Those groups and nothing else: the nodes do not run here.
    alone: bool = False
    # libvirt answers.
    libvirt: bool = False


# Images can be built, and virtual machines run.
MACHINES = Needs(libvirt=True)


def ensure(
    needs: Needs = MACHINES, groups: Collection[str] = (), meanwhile: Callable[[], None] | None = None
) -> None:
    """Make this machine able to run the lab: packages, groups, cache folder, libvirt's service.

    groups: of `packages`, for what the command does besides: all come in one installation. meanwhile: called beside
    that, of whose errors nothing is said: whoever needs what it brings sees to it.

    Call it before anything else in a command: where a group was joined since the login, it starts the command
    again inside that group (and does not return). Raises UserError for what it cannot put right.
    """
    wanted = (*needs.groups, *groups)
    if needs.alone:
        ensure_packages(wanted, alone=True)
        return
    access.prepare_cache()
    if packages.missing(wanted) or access.kvm_is_untouched() or access.missing_memberships():
        with _beside(meanwhile):
            ensure_packages(wanted)
        with access.setup_lock():
            if access.kvm_is_untouched():
                access.open_kvm()
            access.join_groups()
    access.enter_groups()
    if needs.libvirt and services.libvirt_error():
        with access.setup_lock():
            services.ensure_running()


@contextlib.contextmanager
def _beside(work: Callable[[], None] | None) -> Iterator[None]:
    """Let `work` go on beside the block, and wait for it where that came to its end."""

    def quietly() -> None:
        with contextlib.suppress(UserError, OSError):
            assert work is not None
            work()

    if work is None:
        yield
        return
    # It ends with this program: nobody waits for it after Ctrl-C.
    thread = threading.Thread(target=quietly, name="meanwhile", daemon=True)
    thread.start()
    yield
    # The next step may be to start this program again.
    thread.join()


def ensure_packages(groups: Collection[str], *, alone: bool = False) -> None:
    """Install what is missing of all packages and these groups, or of these `alone`. Raises UserError."""
    access.prepare_cache()
    if not packages.missing(groups, alone=alone):
        return
    with access.setup_lock():
        # Asked again under the lock: another command may have done it meanwhile.
        missing = packages.missing(groups, alone=alone)
        if missing:
            packages.install(missing)
        if "lxc" in missing:
            services.end_lxc_net()


def accelerator() -> str:
    """How the nodes' CPUs run here: ``kvm`` or ``tcg``. Decided by booting once per boot, up to 40 s."""
    return kvm.verdict().accelerator


def accelerator_reason() -> str:
    """Why ``accelerator()`` is what it is, with what would change it, e.g. for a table or a log."""
    verdict = kvm.verdict()
    return verdict.reason + (f"; {verdict.fix}" if verdict.fix else "")


def machine() -> str:
    """What the nodes run on, without its name: ``2 cores, AMD EPYC, 24 GB``. GB as memory is sold: GiB."""
    cores = len(os.sched_getaffinity(0))
    memory = round(parse_meminfo(_read("/proc/meminfo"))["MemTotal"] / _GIB)
    return f"{cores} core{'' if cores == 1 else 's'}, {parse_cpu_model(_read('/proc/cpuinfo'))}, {memory} GB"


def available_memory_mib() -> int:
    """Memory in MiB that new VMs can have without swapping: the kernel's MemAvailable."""
    return parse_meminfo(_read("/proc/meminfo"))["MemAvailable"] // _MIB


def free_disk_bytes() -> int:
    """Bytes that this user may still write below the cache folder."""
    folder = paths.cache()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def preflight(memory_mib: int, disk_bytes: int) -> None:
    """Raise UserError unless ``memory_mib`` MiB of memory and ``disk_bytes`` below the cache are to be had."""
    memory, disk = available_memory_mib(), free_disk_bytes()
    if memory < memory_mib:
        raise UserError(
            "memory of this machine",
            f"must have {memory_mib} MiB available for the nodes",
            seen=f"{memory} MiB",
            fix="End other programs or VMs (`virsh -c qemu:///system list` shows those), or use a smaller CLUSTER",
        )
    if disk < disk_bytes:
        raise UserError(
            f"disk below {paths.cache()}",
            f"must have {disk_bytes / 1e9:.1f} GB free",
            seen=f"{disk / 1e9:.1f} GB",
            fix="Free some, or set OVERLAYLAB_CACHE to a folder on another disk (outside your home)",
        )


def parse_meminfo(text: str) -> dict[str, int]:
    """proc_meminfo(5) in bytes; lines without a unit are left out."""
    fields = (line.split() for line in text.splitlines())
    return {
        field[0].rstrip(":"): int(field[1]) * 1024 for field in fields if len(field) == 3 and field[2] == "kB"
    }


def parse_cpu_model(text: str) -> str:
    """The CPU's own name from /proc/cpuinfo, with single spaces; ``unknown CPU`` where it has none."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name" and value.strip():
            return " ".join(value.split())
    return "unknown CPU"


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace")
