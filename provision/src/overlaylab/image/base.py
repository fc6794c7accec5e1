"""The base disk of a system that is made from packages: locked ones, so that two builds have the same root file system."""

from __future__ import annotations

import re
import shlex
import shutil
import stat
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.image import package_lock, process
from overlaylab.image.package_lock import Package, Policy
from overlaylab.image.systems import System
from overlaylab.machine.access import unsearchable_folder
from overlaylab.machine.root import is_root

SCRIPTS = paths.ROOT / "packer" / "base"
# Files that the maker leaves.
DISK, ROOT_DIGEST, PACKAGES = "base.raw", "rootfs.sha256", "packages"
# Of the file system and of what orders its folders: by the system's name, so that all builds have the same.
NAMESPACE = uuid.UUID("6ad7d6a0-6f5c-4b0c-9a3e-2f6d6e6f0c54")
KEYRINGS = Path("/usr/share/keyrings")
# What ARCHIVE= takes to go back to the distribution's own archive.
NO_ARCHIVE = "none"
# Of an archive in folders, and of the keys that one is signed with: sources.list(5), deb822 format.
LOCAL_PLACES = re.compile(r"(?:(?:copy|file):(?://)?|^Signed-By:[ \t]*)(/\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Base:
    """A disk that was made. root_digest: SHA-256 of its root file system, in hex (packer/base/settle.sh)."""

    disk: Path
    root_digest: str
    packages: tuple[Package, ...]
    drifted: tuple[str, ...]


def choose_archive(system: System, archive: Path | None) -> None:
    """Note the sources of packages that count from now on; None: the distribution's own. Raises UserError for no file."""
    note = _archive(system)
    if archive is None:
        note.unlink(missing_ok=True)
        return
    if not archive.is_file():
        raise UserError(
            "ARCHIVE",
            "must be a file with sources of packages, as in deb822(5)",
            seen=archive,
            fix=f"Write one; ARCHIVE={NO_ARCHIVE} goes back to the distribution's own",
        )
    if not is_root():
        _check_builder_may_look(archive)
    note.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(archive, note)


def _check_builder_may_look(archive: Path) -> None:
    """Root of the namespace in which an ordinary user's disks are made is somebody else to what lies on this machine."""
    for place in LOCAL_PLACES.findall(archive.read_text(encoding="utf-8")):
        closed = unsearchable_folder(Path(place) if Path(place).is_dir() else Path(place).parent)
        if closed:
            raise UserError(
                f"ARCHIVE={archive}",
                "must name places where everybody may search every folder: disks are made by a user of their own",
                seen=f"{place}, and {closed} has mode {stat.S_IMODE(closed.stat().st_mode):04o}",
                fix=f"Move it out of {closed}, or allow it: `chmod o+x {shlex.quote(str(closed))}`",
            )


def _archive(system: System) -> Path:
    return paths.cache() / "images" / f"{system.name}.sources"


def make(system: System, work: Path, kit: Path, log: Path, rules: Policy) -> Base:
    """Make the disk below `work`. kit: see base.sh. Raises UserError."""
    made = _packages(system, work, kit, log, rules)
    folder = made[-1]
    got = _read(folder)
    drifted = package_lock.check(f"the image of {system.name}", package_lock.read(system.lock), got, rules)
    return Base(folder / DISK, (folder / ROOT_DIGEST).read_text().strip(), got, tuple(drifted))


def listed(system: System, work: Path, log: Path) -> tuple[Package, ...]:
    """Today's packages of a system, in the versions of its archive, without making a disk of them."""
    (work / "tmp").mkdir()
    folder = work / "base"
    folder.mkdir()
    argv = ["sh", str(SCRIPTS / "base.sh"), str(folder), ""]
    process.run(argv, log, _environment(system, work), what="packages", own_mounts=True)
    log.unlink(missing_ok=True)
    return _read(folder)


def _read(folder: Path) -> tuple[Package, ...]:
    return tuple(sorted(Package(*line.split()) for line in (folder / PACKAGES).read_text().splitlines()))


def _packages(system: System, work: Path, kit: Path, log: Path, rules: Policy) -> list[Path]:
    assert system.packages is not None
    tries: list[Path] = []

    def take(preferences: str | None, snapshots: str) -> None:
        if tries:
            process.remove(tries[-1])
        folder = work / f"base{len(tries)}"
        folder.mkdir()
        tries.append(folder)
        if preferences:
            (folder / "preferences").write_text(preferences)
        if snapshots:
            (folder / "snapshots.sources").write_text(snapshots)
        argv = ["sh", str(SCRIPTS / "base.sh"), str(folder), str(kit)]
        process.run(argv, log, _environment(system, work), what="base disk", own_mounts=True)

    name, suite, components = f"the image of {system.name}", system.packages.suite, system.packages.components
    package_lock.fetch(name, system.lock, suite, components, rules, take, log)
    return tries


def _environment(system: System, work: Path) -> dict[str, str]:
    assert system.packages is not None
    archive = _archive(system) if _archive(system).exists() else None
    return {
        "TMPDIR": str(work / "tmp"),
        # dpkg looks for a configuration in the home, where root of the namespace may not look.
        "HOME": str(work / "tmp"),
        "SYSTEM": system.name,
        "SUITE": system.packages.suite,
        "COMPONENTS": ",".join(system.packages.components),
        "INCLUDE": ",".join(system.packages.include),
        "KEYRING": str(_keyring(system)) if archive is None and system.packages.keyring else "",
        "ARCHIVE": str(archive or ""),
        "ROOT_UUID": str(uuid.uuid5(NAMESPACE, system.name)),
        "HASH_SEED": str(uuid.uuid5(NAMESPACE, f"{system.name} folders")),
        "SOURCE_DATE_EPOCH": str(_epoch(system)),
    }


def _keyring(system: System) -> Path:
    assert system.packages is not None and system.packages.keyring is not None
    path = KEYRINGS / system.packages.keyring
    if not path.exists():
        raise UserError(
            f"SYSTEM={system.name}",
            f"needs the keys that its archive is signed with: {path}",
            fix=f"Install the package that has them: `sudo apt-get install {_keyring_package(path)}`",
        )
    return path


def _keyring_package(path: Path) -> str:
    """Debian's packages of keys are called by whose they are."""
    return f"{path.name.split('-')[0]}-keyring"


def _epoch(system: System) -> int:
    """Seconds since 1970 of the day that the lock was taken; without a lock, of now."""
    day = package_lock.taken(system.lock) if system.lock.exists() else None
    at = datetime.strptime(day, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) if day else datetime.now(UTC)
    return int(at.timestamp())
