"""Inventories, states and namespaces that several tests of the core build."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from ipaddress import IPv4Interface
from pathlib import Path

import pytest

from overlaylab.specs.inventory import Inventory, InventoryNode


def node(number: int, zone: str = "a", ssh_host: str | None = None) -> InventoryNode:
    """node<number> with the underlay address 192.168.77.1<number>; SSH over another address by default."""
    return InventoryNode(
        name=f"node{number}",
        ssh_host=ssh_host or f"192.168.121.1{number}",
        ssh_port=22,
        ssh_user="lab",
        ssh_key=None,
        host_key=None,
        underlay_interface="eth1",
        underlay_address=IPv4Interface(f"192.168.77.1{number}/24"),
        zone=zone,
    )


def inventory(*zones: str) -> Inventory:
    """One node per zone that is named, in that order."""
    return Inventory("pair", "libvirt", tuple(node(n, zone) for n, zone in enumerate(zones, 1)))


def cpu(busy: int, idle: int) -> dict[str, int]:
    """Ticks as `node_state.state_script` prints them."""
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    return dict.fromkeys(names, 0) | {"user": busy, "idle": idle}


def _kill(pid: int) -> None:
    """Kill a process and wait until it is one no more: on a busy machine it lives on for a moment."""
    left = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(left, signal.SIGKILL)
        assert select.select([left], [], [], 10)[0], f"process {pid} does not end"
    finally:
        os.close(left)


class Namespace:
    """A network namespace of its own with /run and /sys to match, as a node for scripts that root runs.

    It has eth1 with its peer, and an endpoint namespace with ethwe, whose peer ovl is outside.
    """

    def __init__(self) -> None:
        # Ends by itself should the tests be killed.
        self._holder = subprocess.Popen(["unshare", "--net", "--mount", "sleep", "120"])
        own = _identity("self")
        deadline = time.monotonic() + 10
        while any(a == b for a, b in zip(_identity(str(self._holder.pid)), own, strict=True)):
            assert time.monotonic() < deadline, "unshare did not start"
            time.sleep(0.01)
        self.sh(
            """
            mount -t sysfs sysfs /sys
            for folder in /run /var/lib /etc/systemd/system; do
                [ ! -d $folder ] || mount -t tmpfs tmpfs $folder
            done
            for which in all default; do  # router solicitations would be traffic that nobody sent
                [ ! -e /proc/sys/net/ipv6 ] || echo 1 >/proc/sys/net/ipv6/conf/$which/disable_ipv6
            done
            ip link set lo up
            ip link add eth1 mtu 9001 type veth peer name peer mtu 9001
            ip link set eth1 up; ip link set peer up
            ip netns add endpoint
            ip link add ovl type veth peer name ethwe netns endpoint
            # The kernel notes the carrier a moment later; a test that compares would see it change.
            for device in eth1 peer; do
                until grep -q up /sys/class/net/$device/operstate; do sleep 0.01; done
            done
            """
        )

    @property
    def _inside(self) -> list[str]:
        return ["nsenter", "--target", str(self._holder.pid), "--net", "--mount"]

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a POSIX sh script in it as root."""
        return subprocess.run([*self._inside, "sh", "-c", script], capture_output=True, text=True, timeout=30)

    def start(self, argv: list[str], stdin: str) -> subprocess.Popen[str]:
        """Start a program in it that reads this, and whose output can be read."""
        process = subprocess.Popen(
            [*self._inside, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        return process

    def sh(self, script: str) -> str:
        """Run a script that must exit 0; what it printed."""
        done = self.run(script)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def close(self) -> None:
        # A test that failed half-way may have left daemons, which would keep the namespaces and run on.
        own = _identity(str(self._holder.pid))
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if _identity(process.name) == own and int(process.name) != self._holder.pid:
                    _kill(int(process.name))
        self._holder.kill()
        self._holder.wait()


def namespace(*programs: str) -> Iterator[Namespace]:
    """For fixtures: a namespace with these programs in reach; its tests are marked `root`."""
    missing = [name for name in ("unshare", "nsenter", "ip", *programs) if not shutil.which(name)]
    if missing:
        pytest.skip(f"takes {', '.join(missing)}: ./task setup installs them")
    made = Namespace()
    yield made
    made.close()


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie; one that ends while it is looked at does not run."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _identity(process: str) -> list[int]:
    return [Path(f"/proc/{process}/ns/{kind}").stat().st_ino for kind in ("net", "mnt")]
