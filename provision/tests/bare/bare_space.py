"""A root in namespaces of its own: entering it, its way to the network, ending it. Needs root; standard library alone."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import bare_groups

HERE = Path(__file__).resolve().parent
# The ordinary user in a bare root: has sudo, and a login shell without sbin in its PATH, as Debian makes them.
USER = "newcomer"

# The kernel ends it when this process ends, however that is (prctl(2), PR_SET_PDEATHSIG).
_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")


@dataclass(frozen=True)
class Space:
    """A bare root that runs, seen from outside.

    root: its folder; pid: its first process; members: files that take a process into its control groups.
    """

    root: Path
    pid: int
    members: tuple[Path, ...]

    def as_root(self, argv: Sequence[str], **options) -> subprocess.CompletedProcess[str]:
        """Run `argv` in it as root, with an environment of its own; its exit code is the caller's to judge."""
        spaces = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup")
        inside = [*_within(self.members), "nsenter", f"--target={self.pid}", *spaces, "--"]
        bare = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", f"TERM={os.environ.get('TERM', 'dumb')}"]
        return subprocess.run([*inside, *bare, *argv], text=True, check=False, **options)

    def as_user(self, command: str = "", **options) -> subprocess.CompletedProcess[str]:
        """Run shell text as the ordinary user types it after logging in; without text, a shell to type in."""
        return self.as_root(["su", "-", USER, *(["-c", command] if command else [])], **options)

    def without_route(self) -> dict[str, int]:
        """Packets that its kernel refused so far, as they had no route out."""
        shown = self.as_root(["cat", "/proc/net/snmp", "/proc/net/snmp6"], capture_output=True)
        return no_routes(shown.stdout)


def no_routes(snmp: str) -> dict[str, int]:
    """IPv4's and IPv6's counter in the texts of /proc/net/snmp and snmp6; 0 where IPv6 is off, and so has no file.

    https://docs.kernel.org/networking/snmp_counter.html: IpOutNoRoutes.
    """
    lines = [line.split() for line in snmp.splitlines()]
    names, values = (line for line in lines if line[0] == "Ip:")
    six = dict(line for line in lines if len(line) == 2)
    counted = dict(zip(names, values, strict=True))["OutNoRoutes"]
    return {"OutNoRoutes": int(counted), "Ip6OutNoRoutes": int(six.get("Ip6OutNoRoutes", 0))}


@contextlib.contextmanager
def running(root: Path, *, network: bool = True, systemd: bool = False) -> Iterator[Space]:
    """The root while the block runs; network: False leaves it nothing but loopback; systemd: as its first process.

    Its processes and mounts end with the block, and with this process where that is killed.
    """
    bare_groups.remove_forgotten()
    groups = bare_groups.make(root.name)
    # https://systemd.io/CONTAINER_INTERFACE: told that it is in one, it leaves devices and consoles to who runs it.
    init = ["sh", "-c", "echo ready; exec env container=overlaylab /sbin/init >/dev/null 2>&1"]
    first = init if systemd else ["/usr/bin/python3", "-c", (HERE / "first.py").read_text()]
    argv = [
        *_within([group / "cgroup.procs" for group in groups]), *_WITH_US,
        "unshare", "--mount", "--propagation=private", "--pid", "--net", "--uts", "--ipc", "--cgroup",
        "--fork", "--kill-child=KILL", "--", "sh", str(HERE / "enter.sh"), str(root), *first,
    ]  # fmt: skip
    processes = [subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)]
    try:
        assert processes[0].stdout is not None
        if processes[0].stdout.readline().strip() != "ready":
            raise SystemExit(f"bare root: its first process did not start, exit code {processes[0].wait()}")
        pid = _child_of(processes[0].pid)
        members = bare_groups.members(groups)
        for file in members:
            for process in (processes[0].pid, pid):
                file.write_text(str(process))
        if network:
            processes.append(_connect(pid))
        yield Space(root, pid, tuple(members))
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()
        # The kernel ends what is in the namespaces after their first process.
        bare_groups.remove(groups, seconds=20)


def _within(members: Sequence[Path]) -> list[str]:
    """What stands before a command that is to run in these control groups."""
    script = 'for file; do [ "$file" != -- ] || break; echo $$ >"$file"; shift; done; shift; exec "$@"'
    return ["sh", "-c", script, "sh", *map(str, members), "--"]


def _child_of(pid: int) -> int:
    """The one child of a process: unshare(1) stays as the parent of what it starts."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def _connect(pid: int) -> subprocess.Popen[str]:
    """The network as any program of this machine has it, by a user-mode stack: no link, route or rule changes here."""
    if shutil.which("slirp4netns") is None:
        raise SystemExit("bare root: slirp4netns is missing; apt-get install slirp4netns brings it")
    read, write = os.pipe()
    process = subprocess.Popen(
        [*_WITH_US, "slirp4netns", "--configure", "--mtu=65520", "--disable-host-loopback",
         f"--ready-fd={write}", str(pid), "tap0"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, pass_fds=[write],
    )  # fmt: skip
    os.close(write)
    with os.fdopen(read) as ready:
        if ready.read(1) != "1":
            assert process.stderr is not None
            raise SystemExit(f"bare root: slirp4netns did not connect it: {process.stderr.read().strip()}")
    return process
