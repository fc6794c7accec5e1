"""The bare machine's root: unpacked, entered, and gone with its processes, mounts and control groups."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import bare_groups
import bare_roots
import bare_settings
import bare_space
import bare_walk
import pytest


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OVERLAYLAB_BARE", str(tmp_path / "bare"))
    return tmp_path / "bare"


# -- roots ------------------------------------------------------------------------------------------


@pytest.fixture
def archive(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A root of one file."""
    import tarfile

    (tmp_path / "hostname").write_text("bare")
    with tarfile.open(tmp_path / "root.tar", "w") as made:
        made.add(tmp_path / "hostname", "./etc/hostname")
    monkeypatch.setattr(bare_roots, "archive", lambda _: tmp_path / "root.tar")


def test_a_root_comes_from_this_machines_own_sources_of_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        "Debian deb http://mirror.example/debian/ bookworm main",
        "Debian deb http://mirror.example/debian/ bookworm main",
        "Debian deb http://mirror.example/debian/ bookworm non-free",
        "Debian deb http://mirror.example/debian/ bookworm-backports main",
        "Debian deb http://mirror.example/debian-security/ bookworm-security main",
        "Debian deb http://mirror.example/debian/ trixie main",
        "Other deb http://other.example/ bookworm main",
    ]
    program = tmp_path / "apt-get"
    program.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert bare_roots.mirrors() == [
        "deb http://mirror.example/debian/ bookworm main",
        "deb http://mirror.example/debian-security/ bookworm-security main",
    ]


def test_a_root_is_unpacked_anew_and_removed(archive: None) -> None:
    with bare_roots.unpacked() as root:
        assert (root / "etc/hostname").read_text() == "bare"
    assert list((bare_roots.state() / "runs").iterdir()) == []


def test_a_root_may_stay_until_others_are_done_with(archive: None) -> None:
    with contextlib.ExitStack() as later:
        with bare_roots.unpacked(later=later) as first:
            pass
        with bare_roots.unpacked(later=later) as second:
            assert first.is_dir() and second.is_dir()
        assert first.is_dir() and second.is_dir()
    assert list((bare_roots.state() / "runs").iterdir()) == []


def test_what_a_killed_run_left_is_removed_and_a_running_one_is_not(archive: None, state: Path) -> None:
    for name in ("killed", "running"):
        (state / "runs" / name).mkdir(parents=True)
    (state / "runs" / "killed.lock").touch()
    with (state / "runs" / "running.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with bare_roots.unpacked():
            left = {path.name for path in (state / "runs").iterdir()}
    assert {"running", "running.lock"} < left and "killed" not in left and "killed.lock" not in left


# -- what any company's machine needs to get out ------------------------------------------------------


def test_settings_of_package_clients_are_copied_and_secrets_beside_them_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, root = tmp_path / "own", tmp_path / "root"
    home = root / "home/newcomer"
    for folder in (own, home, root / "etc/apt/apt.conf.d"):
        folder.mkdir(parents=True)
    (own / ".npmrc").write_text(
        "registry=https://npm.example\n//npm.example/:_authToken=secret\ncafile=/ca.pem\n"
    )
    (own / ".pip").mkdir()
    (own / ".pip/pip.conf").write_text("[global]\nindex-url = https://pip.example\nno-color = true\n")
    monkeypatch.setenv("HOME", str(own))
    monkeypatch.setenv("SSL_CERT_FILE", "/ca.pem")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setattr(
        bare_settings, "apt_settings", lambda: ['Acquire::http::Proxy "http://proxy.example";']
    )
    bare_settings.write(root, home)
    assert (home / ".npmrc").read_text() == "registry=https://npm.example\ncafile=/ca.pem\n"
    assert "index-url = https://pip.example" in (root / "etc/pip.conf").read_text()
    assert "no-color" not in (root / "etc/pip.conf").read_text()
    assert 'SSL_CERT_FILE="/ca.pem"' in (root / "etc/environment").read_text()
    assert "proxy.example" in (root / "etc/apt/apt.conf.d/80company").read_text()
    assert not any("secret" in path.read_text() for path in root.rglob("*") if path.is_file())


# -- entering it -------------------------------------------------------------------------------------

# What libvirt does before it starts QEMU: virFileMoveMount of each mount below /dev.
_MOVED = """
set -eu
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
exec sh "$2" "$1/root" sh -c 'touch /run/saved; mount --move /dev/kvm /run/saved; stat --format=%F,%a /run/saved'
"""


@pytest.mark.root
@pytest.mark.skipif(not Path("/dev/kvm").exists(), reason="there is no /dev/kvm")
def test_its_dev_kvm_is_its_own_and_can_be_moved(tmp_path: Path) -> None:
    spaces = ["unshare", "--mount", "--propagation=private", "--pid", "--fork", "--uts", "--net", "--cgroup"]
    with tempfile.TemporaryDirectory(dir="/run") as folder:  # upper and work must not lie on an overlay
        argv = [
            *spaces,
            "sh",
            "-c",
            _MOVED,
            "sh",
            folder,
            str(Path(bare_walk.__file__).with_name("enter.sh")),
        ]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("character special file,600\n", "")


# Holds a machine on an overlay of / until it is killed, with a process in it that nobody waits for.
_HELD = """
import sys, time
from collections.abc import Iterable
from pathlib import Path
import bare_space
with bare_space.running(Path(sys.argv[1]), network=bool(sys.argv[2])) as there:
    there.as_root(["sh", "-c", "setsid sleep 600 >/dev/null 2>&1 &"])
    print(there.pid, flush=True)
    time.sleep(600)
"""
_ON_AN_OVERLAY = """
set -eu
mkdir "$1/upper" "$1/work" "$2"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$2"
shift 2
exec "$@"
"""


def _processes_of(spaces: set[str], first: str) -> dict[tuple[str, str], str]:
    """{(pid, start time): command line} of what is in these namespaces, or brings the network to that first process."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            words = (process / "cmdline").read_text().split("\0")
            inside = {str((process / "ns" / kind).readlink()) for kind in ("mnt", "net", "pid")}
            if inside & spaces or (words[0] == "slirp4netns" and first in words):
                found[process.name, _started(process)] = " ".join(words[:3])
    return found


def _started(process: Path) -> str:
    """When it began, in clock ticks (proc(5), stat): with its pid, what tells it from any other."""
    return (process / "stat").read_text().rsplit(")", 1)[1].split()[19]


def _still_there(processes: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """A namespace's number is another one's as soon as it is free, so that these are looked for by themselves."""
    found = []
    for pid, started in processes:
        with contextlib.suppress(OSError):
            if _started(Path("/proc") / pid) == started:
                found.append((pid, started))
    return found


@pytest.mark.root
def test_a_killed_run_takes_its_processes_its_network_and_its_mounts_with_it() -> None:
    network = "yes" if shutil.which("slirp4netns") else ""  # a bare machine in a bare machine has none
    with tempfile.TemporaryDirectory(dir="/run", prefix="killed-") as folder:
        root = Path(folder) / Path(folder).name  # which its control groups are named after
        holding = [sys.executable, "-c", _HELD, str(root), network]
        # A mount namespace of its own keeps the overlay from this machine; what runs in it is killed, not its parent.
        argv = [
            "unshare",
            "--mount",
            "--propagation=private",
            "sh",
            "-c",
            _ON_AN_OVERLAY,
            "sh",
            folder,
            str(root),
        ]
        environment = {**os.environ, "PYTHONPATH": str(Path(bare_space.__file__).parent)}
        with subprocess.Popen([*argv, *holding], stdout=subprocess.PIPE, text=True, env=environment) as held:
            try:
                assert held.stdout is not None
                first = held.stdout.readline().strip()
                spaces = {str(Path(f"/proc/{first}/ns/{kind}").readlink()) for kind in ("mnt", "net", "pid")}
                # What a shell puts into the background may begin after the shell has ended.
                deadline = time.monotonic() + 20
                before = _processes_of(spaces, first)
                while not any(line.startswith("sleep ") for line in before.values()):
                    assert time.monotonic() < deadline, before
                    time.sleep(0.02)
                    before = _processes_of(spaces, first)
            finally:
                held.kill()
        deadline = time.monotonic() + 20
        while _still_there(before) and time.monotonic() < deadline:
            time.sleep(0.05)
        if after := _still_there(before):
            os.kill(int(first), signal.SIGKILL)
        mounts = Path("/proc/self/mountinfo").read_text()
        groups = [point / f"{bare_groups.PREFIX}{root.name}" for point, _ in _hierarchies()]
        bare_groups.remove(groups, seconds=10)
    programs = {line.split()[0].rpartition("/")[2] for line in before.values()}
    assert {"sleep", "python3"} | ({"slirp4netns"} if network else set()) <= programs
    assert after == []
    assert str(root) not in mounts
    assert not any(group.exists() for group in groups)


def _hierarchies() -> list[tuple[Path, int]]:
    return bare_groups.hierarchies(Path("/proc/mounts").read_text())


SNMP = """\
Ip: Forwarding DefaultTTL InReceives OutRequests OutDiscards OutNoRoutes ReasmTimeout
Ip: 2 64 1 2 3 7 4
Icmp: InMsgs InErrors
Icmp: 0 0
"""


@pytest.mark.parametrize(
    ("six", "counted"), [("Ip6InNoRoutes   \t5\nIp6OutNoRoutes  \t9\n", 9), ("", 0)], ids=["IPv6", "no IPv6"]
)
def test_what_found_no_route_is_read_for_both_families(six: str, counted: int) -> None:
    assert bare_space.no_routes(SNMP + six) == {"OutNoRoutes": 7, "Ip6OutNoRoutes": counted}


def test_this_kernel_counts_what_found_no_route() -> None:
    shown = [Path("/proc/net/snmp"), Path("/proc/net/snmp6")]
    counted = bare_space.no_routes("".join(file.read_text() for file in shown if file.exists()))
    assert all(count >= 0 for count in counted.values())


# -- control groups ---------------------------------------------------------------------------------

MOUNTS = """\
tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0
cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
"""


def test_hierarchies_of_both_versions_are_found_once() -> None:
    assert bare_groups.hierarchies(MOUNTS) == [
        (Path("/sys/fs/cgroup/cpu"), 1),
        (Path("/sys/fs/cgroup/unified"), 2),
    ]


def test_processes_go_below_a_group_of_version_2_and_into_one_of_version_1(tmp_path: Path) -> None:
    (tmp_path / "two" / "init").mkdir(parents=True)
    (tmp_path / "one").mkdir()
    assert bare_groups.members([tmp_path / "one", tmp_path / "two"]) == [
        tmp_path / "one/cgroup.procs",
        tmp_path / "two/init/cgroup.procs",
    ]


def test_groups_of_a_killed_run_are_removed_and_of_a_running_one_the_empty_ones_stay_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, running = (tmp_path / f"{bare_groups.PREFIX}{name}" for name in ("killed", "running"))
    (killed / "init").mkdir(parents=True)
    for group in ("init", "machine"):
        (running / group).mkdir(parents=True)
    (running / "init/cgroup.procs").write_text("12\n")
    monkeypatch.setattr(bare_groups, "hierarchies", lambda _: [(tmp_path, 2)])
    bare_groups.remove_forgotten()
    assert not killed.exists()
    assert (running / "machine").is_dir()


def test_groups_are_removed_from_below(tmp_path: Path) -> None:
    (tmp_path / "group" / "machine" / "node1").mkdir(parents=True)
    bare_groups.remove([tmp_path / "group"])
    assert not (tmp_path / "group").exists()
