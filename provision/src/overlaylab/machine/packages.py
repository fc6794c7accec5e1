"""The distribution's packages that the lab needs on the host, and installing what is missing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Collection, Iterable
from pathlib import Path

from overlaylab.core.errors import UserError
from overlaylab.core.progress import say
from overlaylab.machine import apt as host_apt
from overlaylab.machine import bundle_apt, bundle_source, releases
from overlaylab.machine.root import prefix, run_as_root

IMAGES = "images"
REACHING = "reaching the nodes"
BUILDING = "building overlay daemons"
KIT = "the node kit"
# What each package is for: said to the operator before sudo is used.
PACKAGES: dict[str, tuple[str, ...]] = {
    "virtual machines": (
        "qemu-system-x86",
        "qemu-utils",
        "seabios",
        "ipxe-qemu",
        "libvirt-daemon-system",
        "libvirt-clients",
        "libvirt-daemon-driver-qemu",
        "dnsmasq-base",
        "iptables",
        "nftables",
        "tini",
    ),
    "clusters": ("vagrant", "vagrant-libvirt"),
    KIT: (
        "mmdebstrap",
        # mmdebstrap checks Debian's signatures with these; Ubuntu has neither by itself.
        "debian-archive-keyring",
        "gpg",
        "uidmap",
    ),
    IMAGES: (
        "packer",
        "fdisk",
        "e2fsprogs",
        "grub-common",
        "grub-pc-bin",
        "squashfs-tools",
        "rsync",
        # cloud-init's volume
        "xorriso",
    ),
    REACHING: ("openssh-client", "iproute2", "iperf3"),
    "testing what nodes are told": ("ethtool", "gpg-agent", "iputils-ping", "jq", "tcpdump"),
    BUILDING: ("gcc", "libc6-dev", "libpcap-dev", "patch"),
}

# What makes the image, the kit and the daemons, which a bundle has ready.
MAKING = (IMAGES, KIT, BUILDING)

CONTAINERS = "system containers"
VIEWER = "the viewer"
SCREENLESS = "running the viewer without a screen"
BROWSER = "testing the viewer's page in a current browser"
BUNDLES = "making a bundle"
# Groups that not everybody needs: asked for by name, never missed by anybody else.
OPTIONAL: dict[str, tuple[str, ...]] = {
    CONTAINERS: ("lxc", "vagrant-lxc"),
    VIEWER: (
        # What Electron is linked against; https://www.electronjs.org/docs/latest/development/build-instructions-linux
        "libgtk-3-0",
        "libnss3",
        "libasound2",
        "libgbm1",
        "libatk-bridge2.0-0",
        "libcups2",
        "libdrm2",
        "libxkbcommon0",
        "libxcomposite1",
        "libxdamage1",
        "libxrandr2",
        "libxfixes3",
        "libpango-1.0-0",
        "libcairo2",
        "squashfs-tools",
    ),
    SCREENLESS: ("xvfb",),
    BROWSER: ("chromium",),
    BUNDLES: ("git", "gpg", "gpg-agent"),
}

_GROUPS = {**PACKAGES, **OPTIONAL}
ALL = tuple(_GROUPS)

# What has to be in the path for a group on a system without apt, where packages have other names; libraries are
# no programs, and say themselves that they are missing.
PROGRAMS: dict[str, tuple[str, ...]] = {
    "virtual machines": (
        "qemu-system-x86_64",
        "qemu-img",
        "libvirtd",
        "virsh",
        "dnsmasq",
        "iptables",
        "nft",
        "tini",
    ),
    "clusters": ("vagrant",),
    KIT: ("mmdebstrap", "newuidmap"),
    IMAGES: (
        "packer",
        "sfdisk",
        "mkfs.ext4",
        "grub-mkimage",
        "mksquashfs",
        "rsync",
    ),
    REACHING: ("ssh", "ip", "iperf3"),
    BUILDING: ("gcc", "patch"),
    CONTAINERS: ("lxc-create", "lxc-start", "redir"),
    VIEWER: ("unsquashfs",),
    SCREENLESS: ("Xvfb",),
    BROWSER: ("chromium",),
    BUNDLES: ("git", "gpg", "gpg-agent"),
}

# noninteractive: no dialogue can be answered here. NEEDRESTART_MODE=l: Ubuntu's needrestart lists services instead of
# restarting them under the operator. LC_ALL: what went wrong is known by apt's and dpkg's English words.
_ENVIRONMENT = ("env", "DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_MODE=l", "LC_ALL=C.UTF-8")

_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def names(groups: Iterable[str] = (), *, alone: bool = False) -> tuple[str, ...]:
    """Every package by name, with those of these optional groups; `alone`: only those of these."""
    wanted = [*(() if alone else PACKAGES), *groups]
    return tuple(dict.fromkeys(name for group in wanted for name in _GROUPS[group]))


def renamed(name: str) -> str:
    """What some libraries are called since Debian 13 and Ubuntu 24.04."""
    # Their times became wider: https://wiki.debian.org/ReleaseGoals/64bit-time
    return f"{name}t64"


def find_program(name: str) -> str | None:
    """Path of a program; the sbin folders count although an ordinary user's PATH lacks them on Debian."""
    return shutil.which(name) or shutil.which(name, path=":".join(_SYSTEM_FOLDERS))


def uses_apt() -> bool:
    """Whether this is Debian, Ubuntu or a descendant."""
    return bool(shutil.which("dpkg-query") and shutil.which("apt-get"))


def parse_installed(listing: str) -> set[str]:
    """Names of installed packages from lines of ``name status``; only ``installed`` counts."""
    pairs = (line.split() for line in listing.splitlines())
    return {pair[0] for pair in pairs if len(pair) == 2 and pair[1] == "installed"}


def missing(groups: Collection[str] = (), *, alone: bool = False) -> list[str]:
    """Packages that are not installed, in the order of PACKAGES; no network, about 20 ms.

    groups: what is needed besides PACKAGES, less what a bundle beside makes needless; `alone`: instead of them.
    Raises UserError on a system without apt that lacks a program; such a system is the operator's to equip.
    """
    of_nodes = [use for use in PACKAGES if use not in MAKING or not bundle_source.present()]
    kinds = [*(() if alone else of_nodes), *groups]
    if not uses_apt():
        programs = [name for group in kinds for name in PROGRAMS.get(group, ())]
        absent = [name for name in programs if find_program(name) is None]
        if absent:
            raise UserError(
                f"system {system_name()}",
                "must be Debian or Ubuntu, or have these programs: " + ", ".join(programs),
                seen="missing " + ", ".join(absent),
                fix="Install them"
                + ("" if alone else " (and the Vagrant plugin vagrant-libvirt)")
                + " with your package manager",
            )
        return []
    wanted = names(kinds, alone=True)
    libraries = [renamed(name) for name in wanted if name.startswith("lib")]
    # One query with all names; it exits with 1 when one is unknown, and still lists the others.
    listing = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *wanted, *libraries],
        capture_output=True,
        text=True,
        check=False,
    )
    installed = parse_installed(listing.stdout)
    absent = [name for name in wanted if not installed & {name, renamed(name)}]
    release = releases.here() if absent else None
    # What the release does not have may come from its makers; then the program is what counts.
    own = {name for name in (release.absent if release else ()) if find_program(name)}
    return [name for name in absent if name not in own]


def describe(packages: Iterable[str]) -> str:
    """``virtual machines: qemu-utils, tini; images: packer``."""
    left = set(packages)
    groups = {}
    for use, group in _GROUPS.items():
        groups[use] = [name for name in group if name in left]
        left.difference_update(group)
    return "; ".join(f"{use}: {', '.join(group)}" for use, group in groups.items() if group)


def install(packages: list[str]) -> None:
    """Install ``packages`` with apt-get. Raises UserError with what to do when that fails."""
    release = releases.here()
    if release is None:
        say(releases.warning(releases.key()))
    else:
        _check_there(release, packages)
    say(f"these packages are missing ({describe(packages)})")
    # Use-Pty=0: dpkg counts no percents then.
    apt = [
        *_ENVIRONMENT,
        "apt-get",
        "--quiet",
        f"--option=DPkg::Lock::Timeout={host_apt.WAIT}",
        "--option=Dpkg::Use-Pty=0",
        *bundle_apt.options(),
    ]
    prefix(["apt-get", "install", "--no-install-recommends", *_as_called_here(packages)])
    host_apt.wait_until_free()
    # A foreign source that cannot be refreshed must not stop the install; the install itself decides.
    refreshed = _call([*apt, "update"], "refreshing the package lists with apt-get update")[1]
    install = (
        [*apt, "--yes", "--no-install-recommends", "install", *_as_called_here(packages)],
        "installing them with apt-get install --no-install-recommends",
    )
    code, said = _call(*install)
    # In this order: what dpkg cannot end lacks packages. --no-remove: a repair takes nothing away.
    fix_broken = [*apt, "--yes", "--no-install-recommends", "--no-remove", "--fix-broken", "install"]
    for sign, name, repair in (
        (host_apt.INTERRUPTED, "dpkg --configure -a", [*_ENVIRONMENT, "dpkg", "--configure", "-a"]),
        (host_apt.BROKEN, "apt-get --fix-broken install", fix_broken),
    ):
        if code != 0 and sign in said:
            repaired = _call(repair, f"an earlier installation was cut off: ending it with {name}")[1]
            code, said = _call(*install)
            said = f"{repaired}\n{said}"
    if code != 0:
        said = f"{refreshed}\n{said}"
        raise bundle_apt.failed(packages, said) or host_apt.failed(packages, code, said)


def _call(argv: list[str], why: str) -> tuple[int, str]:
    """Exit code and complaints of apt-get or dpkg; a second time where another program was a moment faster."""
    for _ in range(2):
        done = run_as_root(argv, why, stderr=subprocess.PIPE)
        said = host_apt.pass_on(done.stderr)
        if done.returncode == 0 or not host_apt.is_held(said):
            break
        host_apt.wait_until_free()
    return done.returncode, said


def _check_there(release: releases.Release, packages: list[str]) -> None:
    """Raise UserError, before root is asked for, where the release lacks a package and no other source has it."""
    lacking = [name for name in packages if name in release.absent]
    lacking = [name for name in lacking if name not in _known(lacking)]
    if lacking:
        raise UserError(
            f"system {release.title}",
            f"must have the packages {', '.join(packages)}",
            seen="not in its package sources: "
            + ", ".join(f"{name} ({release.absent[name]})" for name in lacking),
            fix="Run the lab on Debian 12, in a VM for instance; or add a package source that has them, type "
            "`sudo apt-get update`, and the command again. INVENTORY=hosts.yml and ./task view need none of them",
        )


def _as_called_here(packages: list[str]) -> list[str]:
    """The same packages by the names that this system's lists have for them."""
    if release := releases.here():
        return [release.renamed.get(name, name) for name in packages]
    libraries = {renamed(name) for name in packages if name in OPTIONAL[VIEWER] and name.startswith("lib")}
    known = _known(libraries)
    return [renamed(name) if renamed(name) in known else name for name in packages]


def _known(names: Collection[str]) -> set[str]:
    """Those that apt's lists have, of whatever source."""
    if not names:
        return set()
    # One line for each version of each name that is known, "name | version | source".
    listing = subprocess.run(
        ["apt-cache", *bundle_apt.options(), "madison", *names], capture_output=True, text=True, check=False
    )
    return {line.partition("|")[0].strip() for line in listing.stdout.splitlines()} & set(names)


def system_name(os_release: Path = Path("/etc/os-release")) -> str:
    """``Debian GNU/Linux 12 (bookworm)``, as the system calls itself; ``unknown`` without a name."""
    try:
        lines = os_release.read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    return fields.get("PRETTY_NAME", "unknown").strip().strip("\"'")
