"""libvirt: whether it answers, starting it with or without systemd, and ending what was started here."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.progress import say
from overlaylab.machine.packages import find_program
from overlaylab.machine.root import end_as_root, run_as_root

URI = "qemu:///system"

_CONFIG = """\
# Written by ./task setup, for a machine without systemd. Membership of the group decides; no polkit.
unix_sock_group = "libvirt"
unix_sock_ro_perms = "0777"
unix_sock_rw_perms = "0770"
auth_unix_ro = "none"
auth_unix_rw = "none"
"""

# libvirt makes these chains when it starts, fills them for networks, and never removes them (network_iptables.c).
_END_RULES = r"""
PATH=$PATH:/usr/sbin:/sbin
for tool in iptables ip6tables; do
    for table in filter nat mangle; do
        rules=$($tool -t $table -S 2>/dev/null) || continue
        printf '%s\n' "$rules" | sed -n 's/^-A \([A-Z]*\) -j \(LIBVIRT_[A-Z]*\)$/\1 \2/p' |
            while read -r from chain; do $tool -t $table -D "$from" -j "$chain"; done
        for step in -F -X; do
            printf '%s\n' "$rules" | sed -n 's/^-N \(LIBVIRT_[A-Z]*\)$/\1/p' |
                while read -r chain; do $tool -t $table $step "$chain"; done
        done
    done
done
"""

# Seconds until libvirt has to answer after its start; 1 s where this was measured.
_START_WAIT = 30.0


@dataclass(frozen=True)
class Service:
    """A process that setup started: the tini that holds a daemon."""

    name: str
    # Proves nothing by itself: after a reboot or a wrap of the counter it is another process.
    pid: int
    # Clock ticks since boot (proc(5), field 22).
    started: int
    boot_id: str


def has_systemd() -> bool:
    """Whether systemd is PID 1; the test of sd_booted(3)."""
    return Path("/run/systemd/system").is_dir()


def boot_id() -> str:
    """Changes with every boot of this machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def is_installed() -> bool:
    """Whether libvirt's daemon and the program that asks it are there at all."""
    return all(find_program(name) for name in ("libvirtd", "virsh"))


def libvirt_error() -> str | None:
    """Why libvirt does not answer this user, in virsh's words; None where it does. About 15 ms."""
    # "uri" opens the connection and no more; "version" has libvirt probe QEMU, 0.7 s where KVM is broken.
    return _virsh("uri")[1]


def libvirt_version() -> str | None:
    """Version of the running daemon, e.g. ``9.0.0``; None where it does not answer. Up to a second."""
    text, error = _virsh("version", "--daemon")
    return None if error else parse_daemon_version(text)


def running_domains() -> list[str]:
    """Names of running VMs of whomever; empty where libvirt does not answer."""
    text, error = _virsh("list", "--name")
    return [] if error else text.split()


def _virsh(*arguments: str) -> tuple[str, str | None]:
    """(output, error): the error is None when virsh succeeded."""
    virsh = find_program("virsh")
    if virsh is None:
        return "", "virsh is not installed"
    try:
        asked = subprocess.run(
            [virsh, "--connect", URI, *arguments],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=20,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", "no answer within 20 s"
    if asked.returncode != 0:
        return "", " ".join(asked.stderr.split()) or f"virsh ended with {asked.returncode}"
    return asked.stdout, None


def parse_daemon_version(text: str) -> str:
    """``9.0.0`` from ``Running against daemon: 9.0.0``; virsh has no machine-readable form for it."""
    for line in text.splitlines():
        label, _, value = line.partition(":")
        if label.strip() == "Running against daemon":
            return value.strip()
    raise ValueError(f"virsh version --daemon names no daemon: {text!r}")


def ensure_running() -> None:
    """Start libvirt unless it answers. Raises UserError when it does not come up."""
    error = libvirt_error()
    if error is None:
        return
    if has_systemd():
        run_as_root(["systemctl", "start", "libvirtd"], f"starting the service libvirtd ({error})")
        log = "journalctl -u libvirtd"
    else:
        log = str(_start_daemons())
    deadline = time.monotonic() + _START_WAIT
    while time.monotonic() < deadline:
        error = libvirt_error()
        if error is None:
            say(f"libvirt answers at {URI}")
            return
        time.sleep(0.2)
    raise UserError(
        f"libvirt at {URI}",
        f"must answer within {_START_WAIT:.0f} s of its start",
        seen=error,
        fix=f"Read {log}, then type `./task setup` again",
    )


def end_lxc_net() -> None:
    """Switch off what the package lxc has started a moment ago; the lab's bridges are its own."""
    if has_systemd():
        run_as_root(
            ["systemctl", "disable", "--quiet", "--now", "lxc-net.service"],
            "switching off the bridge lxcbr0, its DHCP server and its NAT, which the package lxc has just brought",
        )


def _folder() -> Path:
    return paths.cache() / "libvirt"


def _record() -> Path:
    return _folder() / "services.json"


def _start_daemons() -> Path:
    """Start virtlogd and libvirtd under tini in sessions of their own; returns the log's path.

    tini -s adopts and reaps: QEMU's double fork leaves defunct children of a plain ``libvirtd -d`` where
    PID 1 does not reap, and then ``vagrant up`` stalls for minutes.
    """
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    config, log = folder / "libvirtd.conf", folder / "daemons.log"
    config.write_text(_CONFIG, encoding="ascii")
    for name, arguments in (("virtlogd", ()), ("libvirtd", ("--config", str(config)))):
        if _daemon_runs(name):
            continue  # Somebody else's virtlogd serves as well; it is not ours to end.
        program = find_program(name)
        if program is None or find_program("tini") is None:
            raise UserError(
                name,
                "must be installed together with tini",
                fix="Type `./task setup`, which installs both",
            )
        # The shell's background job is no group leader, so setsid does not fork and $! is tini's pid.
        started = run_as_root(
            [
                "sh",
                "-c",
                'log=$1; shift; umask 022; cd /; setsid tini -s -- "$@" </dev/null >>"$log" 2>&1 & echo $!',
                "start",
                str(log),
                program,
                *arguments,
            ],
            f"starting {name}: there is no systemd here that would",
            capture=True,
        )
        if started.returncode != 0 or not started.stdout.strip().isdigit():
            raise UserError(
                name,
                "must start",
                seen=f"exit code {started.returncode}",
                fix=f"Read {log}, then type `./task setup` again",
            )
        _remember(name, int(started.stdout))
        if name == "virtlogd":
            _wait_for(Path("/run/libvirt/virtlogd-sock"))
    return log


def _wait_for(socket: Path, seconds: float = 5.0) -> None:
    """Wait for a socket file: libvirtd looks for virtlogd's when the first domain starts."""
    deadline = time.monotonic() + seconds
    while not socket.exists() and time.monotonic() < deadline:
        time.sleep(0.05)


def _daemon_runs(name: str, processes: Path = Path("/proc")) -> bool:
    """Whether a process of that name runs here, whoever started it; one in a container serves only that."""
    for entry in processes.iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "comm").read_text().strip() == name and not _is_contained(entry):
                    return True
            except OSError:
                continue
    return False


def _is_contained(process: Path) -> bool:
    """Whether a process has an id of its own in a PID namespace below this one: proc_pid_status(5), NSpid."""
    for line in (process / "status").read_text(errors="replace").splitlines():
        if line.startswith("NSpid:"):
            return len(line.split()) > 2
    return False


def start_time(pid: int) -> int | None:
    """Clock ticks since boot at which ``pid`` started; None where there is no such live process."""
    try:
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


def _remember(name: str, pid: int) -> None:
    ticks = start_time(pid)
    if ticks is None:
        return
    kept = [service for service in started_services() if service.name != name]
    kept.append(Service(name, pid, ticks, boot_id()))
    _record().write_text(json.dumps([asdict(service) for service in kept], indent=2) + "\n", encoding="ascii")


def started_services() -> list[Service]:
    """What setup started in this boot with this cache folder and what still runs, in order of start."""
    try:
        rows = json.loads(_record().read_text(encoding="ascii"))
        services = [Service(**row) for row in rows]
    except (OSError, ValueError, TypeError):
        return []
    boot = boot_id()
    return [
        service
        for service in services
        if service.boot_id == boot and start_time(service.pid) == service.started
    ]


def stop_services() -> list[str]:
    """End the daemons that setup itself started; returns their names, in the order they were ended.

    Nothing is ended while VMs run: they are somebody else's, as the lab's own are destroyed before.
    A packaged service is left as the system wants it.
    """
    services = started_services()
    if not services:
        _record().unlink(missing_ok=True)
        return []
    if domains := running_domains():
        say(f"libvirt stays up: it still runs {', '.join(domains)}")
        return []
    ended = []
    for service in reversed(services):
        end_as_root([service.pid], f"ending {service.name}, which ./task setup started")
        deadline = time.monotonic() + 10
        while start_time(service.pid) == service.started and time.monotonic() < deadline:
            time.sleep(0.05)
        if start_time(service.pid) == service.started:
            raise UserError(
                service.name,
                "must end within 10 s of SIGTERM",
                seen=f"process {service.pid} still runs",
                fix=f"Read {_folder() / 'daemons.log'}, then end it yourself (sudo kill {service.pid})",
            )
        ended.append(service.name)
    if "libvirtd" in ended:
        run_as_root(["sh", "-c", _END_RULES], "taking away libvirtd's own firewall chains, which it leaves")
    _record().unlink(missing_ok=True)
    return ended
