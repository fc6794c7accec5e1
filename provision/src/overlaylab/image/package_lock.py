"""Locks: which packages an image or the node kit is made of, to the byte; and getting exactly those.

A lock is a text file with a line ``name version architecture sha256`` for each package, sorted. apt is told to take
those versions and no others. Mirrors drop versions that were superseded: then an archive of snapshots is tried, SNAPSHOTS
or the one that the mirror's Release file names, and last today's packages are taken and the differences said, as a lab
with newer packages is better than none. LOCK=strict refuses them.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from overlaylab.core.documents_limits import shown
from overlaylab.core.errors import UserError
from overlaylab.core.progress import say

# Where the downloaded packages lie in what the unpacking script makes.
ARCHIVES = "var/cache/apt/archives"

# Where apt keeps Release files, and what they write for the day in the address of snapshots.
LISTS = Path("/var/lib/apt/lists")
DAY = "@SNAPSHOTID@"

# What LOCK may say: today's packages where a locked one is gone, or none then.
RULES = ("prefer", "strict")

# apt's words where a version that it is told to take is in no source.
_GONE = (
    "Unable to correct problems",
    "has no installation candidate",
    "Unable to locate package",
    "was not found",
)


@dataclass(frozen=True, order=True)
class Package:
    """One package as a mirror has it. sha256: of its file, in hex."""

    name: str
    version: str
    architecture: str
    sha256: str


@dataclass(frozen=True)
class Policy:
    """How exactly a lock binds. snapshots: an address with DAY in it, in place of what Release files name."""

    strict: bool = False
    snapshots: str | None = None


PREFER = Policy()


def policy(lock: str = RULES[0], snapshots: str | None = None) -> Policy:
    """What LOCK and SNAPSHOTS ask for."""
    return Policy(lock == "strict", snapshots or None)


def read(path: Path) -> tuple[Package, ...]:
    """The packages of a lock; none where there is no file. Raises UserError for a line that is none."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return ()
    packages = []
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        words = line.split()
        if len(words) != 4 or not re.fullmatch(r"[0-9a-f]{64}", words[3]):
            raise UserError(
                f"{shown(path)}:{number}",
                "must be name, version, architecture and SHA-256 of a package",
                seen=line,
                fix="Restore the file, or type `./task image:lock`, which writes it anew",
            )
        packages.append(Package(*words))
    return tuple(packages)


def text(packages: Iterable[Package], about: str, taken: str) -> str:
    """A lock's file. taken: the day, YYYYMMDDTHHMMSSZ, whose snapshot of the archive has all of it."""
    lines = [f"# {about}. Written by `./task image:lock`.", f"# taken {taken}"]
    lines += [f"{p.name} {p.version} {p.architecture} {p.sha256}" for p in sorted(packages)]
    return "\n".join(lines) + "\n"


def taken(path: Path) -> str | None:
    """The day that a lock was written on, as `text` puts it."""
    found = re.search(r"^# taken (\S+)$", path.read_text(), re.MULTILINE)
    return found.group(1) if found else None


def preferences(packages: Iterable[Package]) -> str:
    """apt_preferences(5) that leave no choice: these versions, and no other package."""
    # The first that fits counts; 1001: even if another source has a newer one.
    pins = [f"Package: {p.name}\nPin: version {p.version}\nPin-Priority: 1001\n" for p in sorted(packages)]
    return "\n".join([*pins, "Package: *\nPin: release *\nPin-Priority: -1\n"])


def differences(locked: Sequence[Package], got: Sequence[Package]) -> list[str]:
    """What is not as locked, a line each: ``libc6 2.36-9 in place of 2.36-8``."""
    before = {package.name: package for package in locked}
    after = {package.name: package for package in got}
    lines = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old is None and new is not None:
            lines.append(f"{name} {new.version} is new")
        elif new is None and old is not None:
            lines.append(f"{name} {old.version} is gone")
        elif old is not None and new is not None and old.version != new.version:
            lines.append(f"{name} {new.version} in place of {old.version}")
        elif old != new:
            lines.append(f"{name} {old.version if old else ''} has other content than was locked")
    return lines


def is_gone(log: str) -> bool:
    """Whether apt said that a version is in none of its sources, rather than that it cannot reach them."""
    return any(words in log for words in _GONE) and "Failed to fetch" not in log


def snapshot_source(address: str, day: str, suites: Sequence[str], components: Sequence[str]) -> str:
    """deb822(5) of sources.list for one day of an archive of snapshots; what is old is signed all the same."""
    return (
        f"Types: deb\nURIs: {address.replace(DAY, day)}\nSuites: {' '.join(suites)}\n"
        f"Components: {' '.join(components)}\nCheck-Valid-Until: no\n"
    )


def announced(suite: str) -> dict[str, list[str]]:
    """{address: suites} of the archives of snapshots that Release files on this machine name for a suite."""
    found: dict[str, list[str]] = {}
    for kind in ("", "-security", "-updates"):
        for release in sorted(LISTS.glob(f"*_dists_{suite}{kind}_*Release")):
            text = release.read_text(encoding="utf-8", errors="replace")
            if told := re.search(rf"^Snapshots: (\S*{DAY}\S*)$", text, re.MULTILINE):
                suites = found.setdefault(told.group(1), [])
                suites += [] if suite + kind in suites else [suite + kind]
    return found


def fetch(
    what: str,
    lock: Path,
    suite: str,
    components: Sequence[str],
    rules: Policy,
    take: Callable[[str | None, str], None],
    log: Path,
) -> None:
    """Have the locked packages taken, or today's where mirrors dropped some and that is not refused.

    take: called with apt's preferences and one more source, each None or empty where there is none; raises UserError.
    log: what apt then said. Raises UserError.
    """
    locked = read(lock)
    if not locked:
        return take(None, "")
    try:
        return take(preferences(locked), "")
    except UserError:
        if not is_gone(log.read_text(errors="replace") if log.exists() else ""):
            raise
    old = {rules.snapshots: [suite, f"{suite}-updates"]} if rules.snapshots else announced(suite)
    if old and (day := taken(lock)):
        say(f"some locked packages of {what} are in no mirror any longer: asking the archive of snapshots")
        source = "\n".join(snapshot_source(one, day, suites, components) for one, suites in old.items())
        # One that does not answer, or lacks them too, must not keep anybody from an image.
        with suppress(UserError):
            return take(preferences(locked), source)
    if rules.strict:
        raise UserError(
            f"packages of {what}",
            "must be those of the lock, as LOCK=strict asks",
            seen="neither mirrors nor an archive of snapshots have some of them",
            fix="Name an archive of snapshots in SNAPSHOTS, leave LOCK out, or renew it with `./task image:lock`",
        )
    say(f"some locked packages of {what} cannot be had any longer: taking today's")
    return take(None, "")


def renew(lock: Path, about: str, got: Sequence[Package]) -> list[str]:
    """Write the lock anew; what changed, a line each."""
    changed = differences(read(lock), got)
    if changed or not lock.exists():
        lock.write_text(text(got, about, datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")))
    return changed


def downloaded(tar: Path) -> tuple[Package, ...]:
    """The packages whose files lie in the tar that an unpacking script made."""
    found = []
    with tarfile.open(tar) as archive:
        for member in archive:
            folder, _, name = member.name.removeprefix("./").rpartition("/")
            if folder == ARCHIVES and name.endswith(".deb"):
                package, version, architecture = name.removesuffix(".deb").split("_")
                file = archive.extractfile(member)
                digest = hashlib.sha256(file.read() if file else b"").hexdigest()
                found.append(Package(package, version.replace("%3a", ":"), architecture, digest))
    return tuple(sorted(found))


def check(what: str, locked: Sequence[Package], got: Sequence[Package], rules: Policy) -> list[str]:
    """Say what is not as locked, and return it. Raises UserError where that is refused, or bytes are other ones."""
    if not locked:
        return []
    other = differences(locked, got)
    versions: Mapping[tuple[str, str], str] = {(p.name, p.version): p.sha256 for p in locked}
    forged = [p.name for p in got if versions.get((p.name, p.version), p.sha256) != p.sha256]
    if forged:
        raise UserError(
            f"packages of {what}",
            "must have the SHA-256 that the lock states",
            seen=f"other content under the same version: {', '.join(forged)}",
            fix="Look at this machine's package sources; if they are right, `./task image:lock` writes the lock anew",
        )
    if other and rules.strict:
        raise UserError(
            f"packages of {what}",
            "must be those of the lock, as LOCK=strict asks",
            seen=_listed(other),
            fix="Name an archive of snapshots in SNAPSHOTS, leave LOCK out, or renew it with `./task image:lock`",
        )
    if other:
        say(
            f"{what}: {len(other)} packages are not as locked, so its digest differs (LOCK=strict refuses): {_listed(other)}"
        )
    return other


def _listed(lines: Sequence[str], most: int = 5) -> str:
    rest = f" and {len(lines) - most} more" if len(lines) > most else ""
    return ", ".join(lines[:most]) + rest
