"""The README's two commands as a new user types them on a bare machine, and what they leave behind."""

from __future__ import annotations

import fnmatch
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import bare_caches
from bare_space import USER, Space

# Of so many commits, one is walked without anything that earlier runs fetched or built, others in another way too.
TURNS = 5
COLD, WARM, SYSTEMD, OFFLINE = "cold", "warm", "systemd", "offline"
# {turn: the walks that are made one after the other}; any other turn: warm alone.
WALKS: Mapping[int, tuple[str, ...]] = {0: (COLD,), 2: (SYSTEMD, WARM), 4: (OFFLINE, WARM)}

_ROOT_TESTS = (
    "sudo env OVERLAYLAB_CACHE=/var/tmp/overlaylab-$USER"
    " ./task --with-tools pytest provision/tests/unit -m root --numprocesses=auto --dist=loadfile"
)
STEPS = (
    # A run that stops says itself what carries it on: its profile's proof fails where the machine is busy otherwise.
    ("./task lab:weave BLOCKS=1 || ./task lab:resume", "one block is enough to see a table"),
    ("./task test", "all tests"),
    (_ROOT_TESTS, "unit tests that take root"),
)
ENDING = (
    ("./task --yes lab:destroy", "what was made is removed"),
    ("./task --yes lab:destroy", "and again, where nothing is left"),
)

# What packages and their programs put below /run, which the next boot empties.
_RUN = {
    **dict.fromkeys(("lock", "log", "sendsigs.omit.d", "shm", "systemd", "user"), "systemd's installation"),
    "adduser": "adduser's lock",
    "dbus": "its package's folder",
    "dnsmasq": "its package's folder",
    "libvirt": "its daemons' folders",
    "mount": "mount(8)'s table of its own",
}

# {look: {pattern: why it may be left}}: README, "What it does to the machine".
STAYS: Mapping[str, Mapping[str, str]] = {
    "files": {
        "/var/log/*": "logs of packages",
        "/etc/*": "settings of packages, as their installation writes them",
        "/var/lib/*": "state of packages, as their installation or their daemons write it",
        "/var/cache/*": "caches of packages",
        "/usr/*": "caches that packages' triggers make",
        "/boot/grub": "a folder that grub's package makes",
        # README: what programs keep in homes and below /tmp and /run.
        "/home/*/.sudo_as_admin_successful": "sudo, with its first use by somebody of its group",
        "/root/.sudo_as_admin_successful": "the same, with the unit tests that take root",
        "/tmp/tmp????????": "empty: a command of ours that a test kills while asyncssh looks for a library",
        "/home/*/.ansible": "Ansible's folder for collections and roles, empty",
        "/home/*/.cache/biome": "Biome, which checks the viewer's style: an empty folder",
        "/home/*/.local/share/vitest": "Vitest: a token for its own server",
        "/home/*/.config/go": "what `go env` is told, and Go's counters of its own use",
        "/root/.ssh": "systemd's installation, empty",
        "/tmp/node-compile-cache": "Node, of the viewer's tools that ask for it",
        "/tmp/pytest-of-*": "pytest: the last three runs' folders",
        "/tmp/.X11-unix": "Xvfb, empty",
        **{f"/run/{name}": why for name, why in _RUN.items()},
    },
    "named": {
        "/run/libvirt/network/overlaylab-*": "README: libvirt's notes of networks, until the next boot",
        "/var/log/libvirt/qemu/overlaylab-*": "README: libvirt's logs of the nodes",
        "/tmp/pytest-of-*/*": "README: pytest's folders are named after tests",
    },
    "groups": {
        "/sys/fs/cgroup/*machine": "README: empty, libvirt's",
        "/sys/fs/cgroup/*lxc.pivot": "README: empty, LXC's",
    },
    "members": {
        f"libvirt: {USER}": "README",
        f"kvm: {USER}": "README",
        "kvm: libvirt-qemu": "the package's own",
        "libvirt-qemu: libvirt-qemu": "the package's own",
    },
}


def look(there: Space) -> dict[str, list[str]]:
    """What there is, by kind; see remains.py."""
    script = (Path(__file__).parent / "remains.py").read_text()
    done = there.as_root(["python3", "-"], input=script, capture_output=True)
    if done.returncode:
        raise SystemExit(f"bare root: what there is could not be looked at: {done.stderr.strip()}")
    return json.loads(done.stdout)


def left(before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """{kind: what came and is not listed in STAYS}; kinds without any are left out."""
    found = {}
    for kind, now in after.items():
        came = sorted(set(now) - set(before[kind]))
        rest = [one for one in came if not any(fnmatch.fnmatch(one, may) for may in STAYS.get(kind, ()))]
        if rest:
            found[kind] = rest
    return found


SYSTEMD_STEPS = (
    ("./task setup", "the system's own services are found"),
    ("systemctl is-active libvirtd", "which systemd started"),
    ("./task lab:up", "and nodes run on them"),
    ("./task lab:status", "and are found there"),
    ("./task --yes lab:destroy", "and the services stay as they are"),
    ("systemctl is-active libvirtd", "as before"),
)

# Beside the checkout, in the home of who makes it.
BUNDLE = "overlaylab-bundle.tar"
MAKING = (
    (f"./task bundle:make OUT=../{BUNDLE} FOR=debian-12 OVERLAYS=weave", "one file with all of it"),
    (f"./task bundle:verify FILE=../{BUNDLE}", "and it is what its sums say"),
)
OFFLINE_STEPS = (
    ("./task lab:weave BLOCKS=1 || ./task lab:resume", "a table, from the bundle alone"),
    ("./task viewer:screenshots", "the viewer that the bundle brought, and its demo"),
    ("./task --yes lab:destroy", "what was made is removed"),
)


def turn(checkout: Path) -> int:
    """Counts up with every commit, below TURNS."""
    argv = ["git", "-c", "safe.directory=*", "-C", str(checkout), "rev-list", "--count", "HEAD"]
    return int(subprocess.run(argv, capture_output=True, text=True, check=True).stdout) % TURNS


def chosen(asked: str | None, turn: int) -> tuple[str, ...]:
    """The walks to make, one after the other: what was asked for and nothing else, or what this turn takes."""
    return (asked,) if asked else WALKS.get(turn, (WARM,))


def walk(there: Space, *, cold: bool) -> int:
    """Type it all; 0 where each command succeeded and nothing is left behind but what the README lists.

    cold: nothing was lent to the machine.
    """
    print(f"bare machine: {'cold' if cold else 'with caches of downloads, image and daemons'}", flush=True)
    before = look(there)
    done = all(_typed(there, command, what) for command, what in STEPS)
    bare_caches.collect(there.root)
    if not done or not all(_typed(there, command, what) for command, what in ENDING):
        return 1
    rest = left(before, look(there))
    if came := rest.pop("modules", None):  # packages' daemons load them, too; which are ours, unit tests say
        print(f"bare machine: kernel modules that came: {', '.join(came)}", flush=True)
    for kind, names in rest.items():
        print(f"bare machine: left behind, {kind}: {', '.join(names)}", flush=True)
    if not rest:
        print("bare machine: nothing is left behind but what the README lists", flush=True)
    return 1 if rest else 0


def walk_systemd(there: Space) -> int:
    """What is done otherwise where systemd is the first process; 0 where it succeeded."""
    return 0 if all(_typed(there, command, what) for command, what in SYSTEMD_STEPS) else 1


def make_bundle(there: Space) -> bool:
    """Have BUNDLE made in the user's home; whether it is there, and whole."""
    return all(_typed(there, command, what) for command, what in MAKING)


def walk_offline(there: Space) -> int:
    """A bundle's way to a table and a picture; 0 where it succeeded and nothing looked for the network."""
    before = there.without_route()
    done = all(_typed(there, command, what) for command, what in OFFLINE_STEPS)
    return refused(before, there.without_route()) or int(not done)


def refused(before: Mapping[str, int], after: Mapping[str, int]) -> int:
    """Print what found no route in between; 1 where that is anything, as nothing may look for the network."""
    rose = {name: count - before[name] for name, count in after.items()}
    counted = ", ".join(f"{name} {count}" for name, count in rose.items())
    print(f"bare root: refused for want of a route: {counted}", file=sys.stderr, flush=True)
    return int(any(rose.values()))


def _typed(there: Space, command: str, what: str) -> bool:
    print(f"bare machine: {USER}$ {command}   # {what}", flush=True)
    started = time.monotonic()
    code = there.as_user(f"cd overlaylab && {command}", stdin=subprocess.DEVNULL).returncode
    took = time.monotonic() - started
    print(
        f"bare machine: exit code {code} after {took // 60:.0f} min {took % 60:02.0f} s: {command}",
        flush=True,
    )
    return code == 0
