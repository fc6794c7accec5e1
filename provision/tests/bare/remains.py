"""What there is on a machine, as JSON: runs inside a bare root, as root, before and after; standard library alone.

Files of packages are left out: packages stay, and are named by what dpkg lists.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

_NOT_OURS = {"/proc", "/sys", "/dev"}
_SHARED = {"/tmp", "/run"}
# Folders of a home in which every program has one of its own.
_OF_PROGRAMS = {".cache", ".config", ".local", ".local/share", ".local/state"}


def files(root: str = "") -> list[str]:
    """Every path that is no package's; of a folder that is none's, only the folder.

    Of homes it is what each program keeps, a checkout as one path; of /tmp and /run the first level.
    root: where the tree to look at lies.
    """
    owned = {"/."}
    for listing in Path(f"{root}/var/lib/dpkg/info").glob("*.list"):
        for line in listing.read_text().splitlines():
            # Since Debian 12, /bin, /lib and /sbin are links into /usr (UsrMerge).
            owned |= {line, f"/usr{line}", os.path.realpath(f"{root}{line}").removeprefix(root)}
    found = []
    for folder, folders, names in os.walk(root or "/"):
        below = folder.removeprefix(root).rstrip("/")
        folders[:] = [name for name in folders if f"{below}/{name}" not in _NOT_OURS]
        inside = [name for name in folders if _is_looked_into(f"{below}/{name}", owned)]
        paths = [f"{below}/{name}" for name in [*folders, *names] if name not in inside]
        found += [path for path in paths if path not in owned]
        folders[:] = inside
    return sorted(found)


def _is_looked_into(folder: str, owned: set[str]) -> bool:
    parts = Path(folder).parts[1:]
    if parts[0] in ("home", "root"):
        beginning = 2 if parts[0] == "home" else 1
        return len(parts) <= beginning or "/".join(parts[beginning:]) in _OF_PROGRAMS
    return folder in _SHARED or (folder in owned and str(Path(folder).parent) not in _SHARED)


def named() -> list[str]:
    """Every path with the project's name in it, wherever it lies."""
    found = []
    for folder, folders, names in os.walk("/"):
        paths = {name: f"{folder.rstrip('/')}/{name}" for name in [*folders, *names]}
        ours = {name for name in paths if "overlaylab" in name or "ovlab" in name}
        found += [paths[name] for name in ours]
        # What is below such a folder stays and goes with it; the checkout is one.
        folders[:] = [name for name in folders if name not in ours and paths[name] not in _NOT_OURS]
    return sorted(found)


def links() -> list[str]:
    """Names of network devices."""
    return sorted(path.name for path in Path("/sys/class/net").iterdir())


def rules() -> list[str]:
    """nftables' rules, iptables' included, and chains that somebody named; tables without any filter nothing."""
    nft = shutil.which("nft")
    asked = subprocess.run([nft, "-j", "list", "ruleset"], capture_output=True, text=True) if nft else None
    entries = json.loads(asked.stdout)["nftables"] if asked and asked.stdout else []
    chains = [entry["chain"] for entry in entries if "hook" not in entry.get("chain", {"hook": None})]
    found = [f"chain {chain['family']} {chain['table']} {chain['name']}" for chain in chains]
    for rule in (entry["rule"] for entry in entries if "rule" in entry):
        words = json.dumps([part for part in rule["expr"] if "counter" not in part])
        found.append(f"rule in {rule['family']} {rule['table']} {rule['chain']}: {words}")
    return sorted(found)


def groups() -> list[str]:
    """Control groups, of every hierarchy."""
    return sorted(folder for folder, _, _ in os.walk("/sys/fs/cgroup"))


def mounts() -> list[str]:
    return sorted({line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()})


def processes() -> list[str]:
    """Command names, but for kernel threads, this process and the first one."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if words[0] and entry.name not in ("1", str(os.getpid())):
            found.append(words[0].decode(errors="replace").rpartition("/")[2])
    return sorted(found)


def members() -> list[str]:
    """``group: member`` of every group with members."""
    lines = [line.split(":") for line in Path("/etc/group").read_text().splitlines()]
    return sorted(f"{name}: {user}" for name, _, _, users in lines for user in users.split(",") if user)


def modules() -> list[str]:
    """Kernel modules, the whole machine's; none where the kernel has no loadable ones."""
    listing = Path("/proc/modules")
    return sorted(line.split()[0] for line in listing.read_text().splitlines()) if listing.exists() else []


if __name__ == "__main__":
    looks = (files, named, links, rules, groups, mounts, processes, members, modules)
    print(json.dumps({look.__name__: look() for look in looks}))
