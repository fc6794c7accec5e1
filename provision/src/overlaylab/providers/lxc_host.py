"""What containers need of this machine: packages, bridges, LXC's commands, control groups, kernel modules.

All that needs root goes through ``lxc_host.sh``, one verb a call, each announced. What can be known without
root is asked without: nodes are looked at far more often than they are made.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.progress import say
from overlaylab.image.vagrant import home, read_json
from overlaylab.machine import packages, services
from overlaylab.machine.modules import read_modules
from overlaylab.machine.root import end_as_root, run_as_root
from overlaylab.providers.lxc_config import (
    FIRST_NODE,
    MANAGEMENT,
    MANAGEMENT_HOST,
    MANAGEMENT_NETWORK,
    UNDERLAY_MTU,
)
from overlaylab.specs import routes

SCRIPT = Path(__file__).with_name("lxc_host.sh")
CGROUPS = Path("/sys/fs/cgroup")
# Where LXC keeps containers by default (lxc.lxcpath).
LXCPATH = Path("/var/lib/lxc")

CONTAINER_PREFIX = "overlaylab-"

# What any cluster of containers makes the kernel load: nodes, bridges, profiles, a look at sockets.
MODULES = ("overlay", "bridge", "veth", "sch_htb", "sch_netem", "cls_u32", "inet_diag", "tcp_diag")


def _root(verb: str, *arguments: str, why: str, capture: bool = False) -> str:
    """Run a verb of lxc_host.sh; what it printed. UserError where it failed."""
    done = run_as_root(["sh", str(SCRIPT), verb, *arguments], why, capture=capture)
    if done.returncode:
        raise UserError(
            f"containers: {why}",
            "must succeed",
            seen=f"exit code {done.returncode}, its output is above",
            fix="./task doctor looks for the usual causes; ./task lab:destroy clears away what is half made",
        )
    return done.stdout or ""


# -- networks -----------------------------------------------------------------------------------------


def check_routes() -> None:
    """Refuse to take the management network where this machine already reaches it. Raises UserError."""
    route = routes.overlapping_route(MANAGEMENT_NETWORK, routes.known(), [MANAGEMENT])
    if route is not None:
        raise UserError(
            f"the containers' management network {MANAGEMENT_NETWORK}",
            "must not be one that this machine already reaches",
            seen=f"a route to {routes.via(route)}",
            fix="End what uses it, or choose PROVIDER=libvirt",
        )


def free_addresses(count: int, taken: Collection[str]) -> list[str]:
    """The lowest management addresses that no container has. Raises UserError where they run out."""
    hosts = [str(MANAGEMENT_NETWORK[number]) for number in range(FIRST_NODE, 255)]
    free = [address for address in hosts if address not in taken]
    if len(free) < count:
        raise UserError(
            f"the containers' management network {MANAGEMENT_NETWORK}",
            f"must have {count} free addresses",
            seen=len(free),
            fix="Remove clusters that you do not need with ./task lab:destroy",
        )
    return free[:count]


@dataclass(frozen=True)
class Container:
    """One that there is. address: on the management network; box: the archive it was made of.

    Both are None where its making was cut off.
    """

    name: str
    address: str | None
    box: Path | None

    @property
    def is_foreign(self) -> bool:
        """Whether the lab of another cache folder made it."""
        return self.box is not None and not self.box.is_relative_to(home())


def survey() -> list[Container]:
    """All containers of the lab, whoever made them."""
    return parse_survey(_root("survey", why="asking LXC which containers there are", capture=True))


def parse_survey(text: str) -> list[Container]:
    """What lxc_host.sh prints: name, address and box, ``-`` where it has none."""
    found = []
    for line in text.splitlines():
        name, address, box = line.split(" ", 2)
        found.append(Container(name, None if address == "-" else address, None if box == "-" else Path(box)))
    return found


def refuse_foreign(names: Collection[str], there: Sequence[Container]) -> None:
    """UserError where one of the names is that of somebody else's container."""
    for container in there:
        if container.name in names and container.is_foreign:
            raise UserError(
                f"container {container.name}",
                f"must be of this cache folder's lab, {paths.cache()}",
                seen=container.box,
                fix="Another user's lab runs on this machine: use that cache folder (OVERLAYLAB_CACHE), "
                "or have it removed there with ./task lab:destroy",
            )


def make_bridges(underlay: str, neighbours: Mapping[str, str]) -> None:
    """The management bridge and a cluster's underlay, made or put right. neighbours: {address: MAC}."""
    pairs = [word for pair in neighbours.items() for word in pair]
    _root(
        "bridges", MANAGEMENT, str(MANAGEMENT_HOST), underlay, str(UNDERLAY_MTU), *pairs,
        why=f"making the bridges {MANAGEMENT} and {underlay}",
    )  # fmt: skip


# -- containers ---------------------------------------------------------------------------------------


def running(names: Collection[str], sockets: str | None = None) -> set[str]:
    """Those of the containers whose monitor answers. Needs no root. sockets: the text of /proc/net/unix."""
    # LXC's command socket of a container is the abstract ``@LXCPATH/NAME/command``.
    text = Path("/proc/net/unix").read_text() if sockets is None else sockets
    open_ = {line.rsplit(" ", 1)[-1] for line in text.splitlines()}
    return {name for name in names if f"@{LXCPATH}/{name}/command" in open_}


def cpu_seconds(name: str, groups: Path = Path("/sys/fs/cgroup")) -> float | None:
    """CPU time of all of a container's processes since it was started; None where its control group does not tell.

    Source: the kernel's cgroup-v2.rst (cpu.stat, usage_usec) and cgroup-v1/cpuacct.rst (cpuacct.usage, in ns).
    """
    group = f"lxc.payload.{name}"
    with contextlib.suppress(OSError, ValueError):
        return int((groups / "cpuacct" / group / "cpuacct.usage").read_text()) / 1e9
    with contextlib.suppress(OSError, ValueError, KeyError):
        stat = dict(line.split() for line in (groups / group / "cpu.stat").read_text().splitlines())
        return int(stat["usage_usec"]) / 1e6
    return None


def freeze(names: Sequence[str]) -> dict[str, str]:
    """Make what the containers are now their clean state, and start them in it; {container: ``ssh-ed25519 AAAA…``}."""
    # The host keys are read from the containers' disks: nothing on a network has a say in them.
    why = f"starting {', '.join(names)} in the clean state"
    return parse_host_keys(_root("freeze", *names, why=why, capture=True), names)


def parse_host_keys(text: str, names: Sequence[str]) -> dict[str, str]:
    """From ``host-key NAME TYPE KEY`` of lxc_host.sh, a line a container. UserError where one has none."""
    lines = [line.split() for line in text.splitlines()]
    found = {
        words[1]: " ".join(words[2:4]) for words in lines if words[:1] == ["host-key"] and len(words) > 3
    }
    for name in names:
        if name not in found:
            raise UserError(
                f"container {name}",
                "must have made its SSH host key at its first start",
                seen="none on its disk",
                fix="Type the command again, which makes it anew; if that ends alike, look at `systemctl status "
                f"overlaylab-keys` in `lxc-attach --name {name}`",
            )
    return found


def start(names: Sequence[str]) -> None:
    """Start the containers in their clean state; what runs is killed."""
    _root("start", *names, why=f"starting {', '.join(names)} anew")


def stop(names: Sequence[str]) -> None:
    """Kill the containers; they stay."""
    _root("stop", *names, why=f"stopping {', '.join(names)}")


def remove(names: Sequence[str], underlay: str) -> None:
    """Delete the containers and their underlay, and what no container of the lab needs any more.

    Works after a kill at any moment: makers that outlived a killed Vagrant are ended first. UserError, and
    nothing is removed, where a container is somebody else's.
    """
    refuse_foreign(names, survey())
    makers = stale_processes(names, processes())
    if makers:
        end_as_root(makers, f"ending what still makes {', '.join(names)}", "KILL")
    _root("remove", MANAGEMENT, underlay, *names, why=f"removing {', '.join(names)} and {underlay}")


def processes() -> dict[int, list[str]]:
    """{process id: argv} of all processes that can be seen."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            argv = (entry / "cmdline").read_bytes().rstrip(b"\0").decode(errors="replace").split("\0")
        except OSError:  # it has ended meanwhile
            continue
        found[int(entry.name)] = argv
    return found


def stale_processes(names: Collection[str], argvs: Mapping[int, Sequence[str]]) -> list[int]:
    """Processes that make, start or unpack one of the containers: LXC's tools, the box's template, its tar.

    Other programs with such a name among their arguments, virsh say, are not meant: a VM may be called alike.
    """
    found = []
    for pid, argv in argvs.items():
        tools = {Path(word).name for word in argv[:4]}
        of_lxc = any(tool.startswith("lxc-") and tool != "lxc-monitord" for tool in tools)
        named = any(word.removeprefix("--name=") in names for word in argv)
        # The template's child outlives it; the tarball lies in this cache folder's VAGRANT_HOME.
        unpacking = "tar" in tools and any(word.startswith(f"{home()}/boxes/") for word in argv)
        if (of_lxc and named) or unpacking:
            found.append(pid)
    return sorted(found)


# -- kernel modules -----------------------------------------------------------------------------------


def _record() -> Path:
    return paths.cache() / "lxc-modules.json"


def loaded_modules() -> list[str]:
    """Modules that the lab loaded for containers in this boot and that are still there, in the order they came."""
    record = read_json(_record())
    if record.get("boot_id") != services.boot_id():
        return []
    return [name for name in record.get("modules", []) if is_loaded(name)]


def is_loaded(module: str) -> bool:
    """Whether the module is in the kernel."""
    return Path(f"/sys/module/{module}").is_dir()


def load_modules(names: Sequence[str]) -> dict[str, str]:
    """Load kernel modules, as containers cannot; {module: why it could not be loaded}.

    Only what this kernel has as a module that is not loaded: what is built in or absent is for trying to find
    out (requirements). What this loaded is remembered, for unload_modules.
    """
    absent = read_modules().absent(*names)
    if not absent:
        return {}
    if packages.find_program("modprobe") is None:
        return dict.fromkeys(absent, "this machine has no modprobe (package kmod)")
    printed = _root(
        "modules",
        *absent,
        why=f"loading kernel modules for the containers: {', '.join(absent)}",
        capture=True,
    )
    failed = {}
    came = []
    for line in printed.splitlines():
        if line.startswith("failed "):
            _, name, *reason = line.split(" ", 2)
            failed[name] = reason[0] if reason else "modprobe does not say why"
        else:
            came.append(line)
    remember_modules(came)
    return failed


def remember_modules(came: Sequence[str]) -> None:
    """Note modules that came for containers, also those that a link type brought by itself, for unload_modules."""
    if came:
        ours = list(dict.fromkeys([*loaded_modules(), *came]))
        _record().parent.mkdir(parents=True, exist_ok=True)
        _record().write_text(json.dumps({"boot_id": services.boot_id(), "modules": ours}) + "\n")


def unload_modules() -> list[str]:
    """Unload what load_modules loaded and nobody uses; the modules that stay."""
    left = loaded_modules()
    ours: list[str] = []
    # What came by itself is noted without its order: each round frees what the one before used.
    while left and left != ours:
        ours = left
        _root(
            "unload", *reversed(ours),
            why=f"unloading kernel modules that were loaded for containers: {', '.join(ours)}", capture=True,
        )  # fmt: skip
        left = loaded_modules()
    if left:
        say(f"these modules stay loaded, somebody uses them: {', '.join(left)}")
    else:
        _record().unlink(missing_ok=True)
    return left
