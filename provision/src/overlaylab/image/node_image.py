"""The node image: which one the inputs ask for, whether it is there, and building it.

An image lies in ``images/<system>-<key12>`` of the cache: ``overlaylab.box`` and ``manifest.json``. The key is
a digest of all that goes in, so an image that is there is the right one, and a folder that is there is whole:
it is moved into place when everything else is done. Nobody's SSH key goes in: the same checkout gives the same
key on every machine, and an image works on another than its maker's.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.model import JSON
from overlaylab.core.progress import say, step
from overlaylab.image import base, boxes, foreign_disk, kit, package_lock, process, systems
from overlaylab.image.package_lock import PREFER, Policy
from overlaylab.image.systems import System
from overlaylab.machine import bundle_source, ready, ssh_keys, userns
from overlaylab.machine.packages import find_program

# Definitions: one template, scripts, what makes a base disk, and the systems.
PACKER = paths.ROOT / "packer"

BOX = "overlaylab.box"
MANIFEST = "manifest.json"
# Raised when the manifest or the build below change in a way that makes older images unusable.
MANIFEST_FORMAT = 3

# What the text of every private key of OpenSSH begins with (its PROTOCOL.key), as far as all have it.
PRIVATE_KEY = base64.b64encode(b"openssh-key-v1\0")[:19]

# Images per system that stay: the newest, and the one before for whoever goes back a commit.
KEPT = 2

# Free space that a build may need at its peak; what stays is the box, under 350 MB.
DISK_BYTES = 6 * 10**9

# Packer's VM (1024 MiB) and what QEMU and the compression take.
MEMORY_MIB = 1400

PROGRAMS = ("packer", "qemu-system-x86_64", "qemu-img", "ssh-keygen")
# Needed where the base is made from packages.
BASE_PROGRAMS = ("mmdebstrap", "mkfs.ext4", "sfdisk", "grub-mkimage")


def image_key(system: str = systems.DEFAULT) -> str:
    """SHA-256 in hex over every input: template, scripts, the system's files, a foreign disk; none is this user's.

    Raises UserError for a system without a definition, or without the disk that it is made from.
    """
    digest = hashlib.sha256(f"format {MANIFEST_FORMAT} kit {kit.key()}\n".encode())
    for name, path in input_files(system).items():
        content = path.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    if disk := foreign_disk.of(systems.load(system)):
        digest.update(f"disk {disk.sha256}\n".encode())
    return digest.hexdigest()


def input_files(system: str) -> dict[str, Path]:
    """Files that the image depends on, by what they are called, in a fixed order."""
    shared = [PACKER / "lab.pkr.hcl", PACKER / "box.rb", PACKER / "seed" / "user-data"]
    shared += [path for kind in ("scripts", "base") for path in (PACKER / kind).glob("*.sh")]
    own = {f"system/{path.name}": path for path in systems.load(system).files}
    return dict(sorted({str(path.relative_to(PACKER)): path for path in shared}.items())) | own


def folder(system: str = systems.DEFAULT) -> Path:
    """Where the image for the present inputs lies or will lie."""
    return paths.cache() / "images" / f"{system}-{image_key(system)[:12]}"


def box_path(system: str = systems.DEFAULT) -> Path:
    """The Vagrant box for the present inputs; there only after ``build``."""
    return folder(system) / BOX


def manifest(system: str = systems.DEFAULT) -> dict[str, Any] | None:
    """What the image for the present inputs is made of; None if it is not built."""
    path = folder(system) / MANIFEST
    try:
        made: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except ValueError as wrong:
        raise UserError(
            str(path),
            "must be the manifest that image:build wrote",
            seen=wrong,
            fix=f"Remove the folder {path.parent} and type `./task image:build`",
        ) from wrong
    return made


def drift(system: str = systems.DEFAULT) -> str | None:
    """A digest, 8 hex digits, of how the built image's packages differ from the lock; None where they do not."""
    other = (manifest(system) or {}).get("drifted")
    return hashlib.sha256("\n".join(other).encode()).hexdigest()[:8] if other else None


def build(system: str = systems.DEFAULT, rules: Policy = PREFER) -> Path:
    """Build the image unless it is there; the folder it lies in. Minutes; progress goes to standard error.

    Raises UserError for missing programs, disk or memory, and for a step that fails (with the end of its log).
    """
    target = folder(system)
    if (target / MANIFEST).exists():
        say(f"image {target.name} is up to date: {target / BOX}")
        return target
    if not bundle_source.present():
        _preflight(system)
    target.parent.mkdir(parents=True, exist_ok=True)
    with process.lock(
        target.parent / ".lock", f"another image:build runs; waiting for it ({target.parent / '.lock'})"
    ):
        if (target / MANIFEST).exists() or bundle_source.supply(target, f"the image of {system}"):
            return target
        made_of = kit.ensure(rules)
        for stale in target.parent.glob(".building-*"):  # of a builder that was killed: we hold its lock
            process.end_leftovers(stale)
            process.remove(stale)
        with process.interruptible(), process.workspace(target.parent) as work:
            _build_in(work, systems.load(system), made_of, rules)
            (work / "result").rename(target)
        _prune(target, system)
    say(f"image {target.name} is ready: {target / BOX}")
    return target


def renew_lock(system: str) -> list[str]:
    """Write the lock of a system's packages anew from what its archive has today; what changed, a line each."""
    chosen = systems.load(system)
    _preflight(system)
    images = paths.cache() / "images"
    images.mkdir(parents=True, exist_ok=True)
    with process.interruptible(), process.workspace(images) as work:
        got = base.listed(chosen, work, images / f"{system}-lock.log")
    return package_lock.renew(chosen.lock, f"Packages of {chosen.title}", got)


def _build_in(work: Path, system: System, made_of: kit.Kit, rules: Policy) -> None:
    """All of the build below ``work``; leaves ``work/result`` with box and manifest."""
    accelerator = ready.accelerator()
    (work / "tmp").mkdir()
    (work / "ssh").mkdir(mode=0o700)
    key = work / "ssh" / "id_ed25519"
    ssh_keys.make(key)
    log = work.parent / f"{system.name}.log"
    started = datetime.now(UTC)
    _lay_kit(made_of, work / "kit")
    foreign = foreign_disk.of(system)
    variables = {
        "accelerator": accelerator,
        "private_key_file": str(key),
        "public_key": ssh_keys.public(key),
        "output_directory": str(work / "out"),
        "release": system.release or "",
    }
    drifted = [f"node kit: {other}" for other in made_of.drifted]
    if foreign:
        disk = work / "out" / "disk" / "node.qcow2"
        made: JSON = {"drifted": drifted, "disk": {"sha256": foreign.sha256, "from": foreign.origin}}
        variables |= foreign_disk.variables(system, foreign, work, ssh_keys.public(key))
    else:
        with step(f"image {system.name} base", "image: base disk from packages", 60):
            found = base.make(system, work, work / "kit", log, rules)
        disk = found.disk
        made = {
            "root_sha256": found.root_digest,
            "drifted": [*drifted, *found.drifted],
            "locked": {p.name: p.version for p in found.packages},
        }
        variables["base_image"] = str(disk)
    environment = {
        "TMPDIR": str(work / "tmp"),
        "CHECKPOINT_DISABLE": "1",  # Packer asks no server for news
        "PACKER_CACHE_DIR": str(paths.cache() / "packer"),
        "PACKER_CONFIG_DIR": str(work / "tmp"),
    }
    doing = "make a node of it and test it" if foreign else "test it"
    with step(f"image {system.name} {accelerator}", f"image: {doing} ({accelerator})", 120):
        argv = ["packer", "build", "-color=false", "-timestamp-ui", *packer_arguments(variables)]
        process.run(argv, log, environment, what="packer build", cwd=PACKER)
    report = json.loads((work / "out" / "report.json").read_text())
    if report.get("modules_missing") and not foreign:
        raise UserError(
            f"image:build, {system.title}",
            "must have the kernel modules that overlays and profiles need",
            seen=f"without {', '.join(report['modules_missing'])}",
            fix=f"Name the packages that have them in packer/systems/{system.name}/{systems.FILE}",
        )
    result = work / "result"
    result.mkdir()
    with step("image-pack", "image: pack", 20):
        boxes.make(disk, PACKER / "box.rb", result / BOX, work)
    _refuse_keys(result / BOX, None if foreign else ssh_keys.public(key))
    with (result / BOX).open("rb") as box:
        checksum = hashlib.file_digest(box, "sha256").hexdigest()
    written = {
        "format": MANIFEST_FORMAT,
        "system": system.name,
        "title": system.title,
        "key": image_key(system.name),
        "box": {"file": BOX, "sha256": checksum, "bytes": (result / BOX).stat().st_size},
        "built_at": started.isoformat(timespec="seconds"),
        "build_seconds": round((datetime.now(UTC) - started).total_seconds(), 1),
        "accelerator": accelerator,
        "git_commit": _git_commit(),
        "kit": made_of.digest,
        **made,
        **report,
    }
    (result / MANIFEST).write_text(json.dumps(written, indent=1, sort_keys=True) + "\n")
    log.unlink(missing_ok=True)


def _lay_kit(made: kit.Kit, folder: Path) -> None:
    """What the base's maker puts into the system: the kit, and the file that names it there."""
    folder.mkdir()
    shutil.copy(made.archive, folder / kit.ARCHIVE)
    (folder / kit.DIGEST).write_text(f"{made.digest}\n")


def _refuse_keys(box: Path, public: str | None) -> None:
    """UserError where the box's disk holds any private key, or the public one that let Packer in.

    public: None for a foreign disk, where it may stand in blocks that no file has any more (cloud-init writes its files
    several times), and lets nobody in there.
    """
    keys = {PRIVATE_KEY: "a private key"}
    if public:
        keys[public.split()[1].encode()] = "Packer's key"
    found = boxes.found_on_disk(box, keys.keys())
    if found:
        raise UserError(
            "image:build, keys",
            "must leave no SSH key on the image's disk, nor where a file has been",
            seen=" and ".join(words for pattern, words in keys.items() if pattern in found),
            fix="Let packer/scripts/clean.sh write over it before it is removed, or keep it in memory",
        )


def packer_arguments(variables: Mapping[str, str]) -> list[str]:
    """Arguments that ``packer build`` and ``packer validate`` share; paths are relative to packer/."""
    return [word for name, value in variables.items() for word in ("-var", f"{name}={value}")] + ["."]


def validate(system: str = systems.DEFAULT) -> None:
    """Check definition, template, variables and formatting without building. Raises UserError."""
    chosen = systems.load(system)
    with tempfile.TemporaryDirectory(prefix="overlaylab-validate-") as folder:
        key = Path(folder) / "id_ed25519"
        ssh_keys.make(key)  # Packer reads it
        _validate(
            {
                "private_key_file": str(key),
                "public_key": ssh_keys.public(key),
                "output_directory": "/nonexistent",
                "release": chosen.release or "",
                "base_image": "/dev/null",
            }
        )
        if chosen.disk:
            foreign_disk.validate(chosen, Path(folder), ssh_keys.public(key))


def _validate(variables: Mapping[str, str]) -> None:
    for argv in (
        ["packer", "fmt", "-check", "-diff", "."],
        ["packer", "validate", *packer_arguments(variables)],
    ):
        environment = {**os.environ, "CHECKPOINT_DISABLE": "1"}
        done = subprocess.run(argv, cwd=PACKER, env=environment, text=True, capture_output=True, check=False)
        if done.returncode:
            raise UserError(
                f"packer/ ({' '.join(argv[:2])})",
                "must pass",
                seen=(done.stdout + done.stderr).strip(),
                fix="Correct it; `packer fmt packer` puts the formatting right",
            )


def _preflight(system: str) -> None:
    chosen = systems.load(system)
    from_packages = foreign_disk.of(chosen) is None
    wanted = PROGRAMS + (BASE_PROGRAMS if from_packages else foreign_disk.programs(chosen))
    absent = [name for name in wanted if find_program(name) is None]
    if absent:
        raise UserError(
            "image:build",
            "needs the programs " + ", ".join(wanted),
            seen="missing " + ", ".join(absent),
            fix="Type `./task setup`, which installs them",
        )
    if from_packages:
        userns.check_mmdebstrap()
    ready.preflight(MEMORY_MIB, DISK_BYTES)


def _git_commit() -> str | None:
    """Commit of the checkout, with ``+`` where packer/ differs from it; None outside a repository."""
    git = ["git", "-C", str(paths.ROOT)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], text=True, capture_output=True, check=True).stdout
        changes = subprocess.run(
            [*git, "status", "--porcelain", "packer"], text=True, capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.strip() + ("+" if changes.stdout.strip() else "")


def _prune(target: Path, system: str) -> None:
    """Remove all but the newest images of a system; those of other systems stay."""
    built = [path.parent for path in target.parent.glob(f"{system}-*/{MANIFEST}")]
    newest_first = sorted(built, key=lambda path: path.stat().st_mtime, reverse=True)
    for old in newest_first[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
