"""The node image: which one the inputs ask for, whether it is there, and building it.

An image lies in ``images/<system>-<key12>`` of the cache: ``overlaylab.box`` and ``manifest.json``. The key is
a digest of all that goes in, so an image that is there is the right one, and a folder that is there is whole:
it is moved into place when everything else is done. Nobody's SSH key goes in: the same checkout gives the same
key on every machine, and an image works on another than its maker's.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.progress import say, step
from overlaylab.image import boxes, kit, process
from overlaylab.machine import bundle_source, ready, ssh_keys, userns
from overlaylab.machine.packages import find_program

# Definitions: one template, scripts, and per system ``systems/<system>.*``.
PACKER = paths.ROOT / "packer"

BOX = "overlaylab.box"
MANIFEST = "manifest.json"
# Raised when the manifest or the build below change in a way that makes older images unusable.
MANIFEST_FORMAT = 2

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


def systems() -> list[str]:
    """Names of the systems that have a definition, sorted."""
    return sorted(path.name.split(".")[0] for path in (PACKER / "systems").glob("*.pkrvars.hcl"))


def image_key(system: str = "debian") -> str:
    """SHA-256 in hex over every input: template, scripts, the system's files; none is this user's or machine's.

    Raises UserError for a system without a definition.
    """
    digest = hashlib.sha256(f"format {MANIFEST_FORMAT} kit {kit.key()}\n".encode())
    for path in input_files(system):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(PACKER)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def input_files(system: str) -> list[Path]:
    """Files that the image depends on, in a fixed order."""
    if system not in systems():
        raise UserError(
            "SYSTEM",
            f"must be one of {', '.join(systems())}",
            seen=system,
            fix="Choose one of them, or add packer/systems/<name>.pkrvars.hcl",
        )
    shared = [PACKER / "lab.pkr.hcl", PACKER / "box.rb", *(PACKER / "scripts").glob("*.sh")]
    return sorted([*shared, *(PACKER / "systems").glob(f"{system}.*")])


def folder(system: str = "debian") -> Path:
    """Where the image for the present inputs lies or will lie."""
    return paths.cache() / "images" / f"{system}-{image_key(system)[:12]}"


def box_path(system: str = "debian") -> Path:
    """The Vagrant box for the present inputs; there only after ``build``."""
    return folder(system) / BOX


def manifest(system: str = "debian") -> dict[str, Any] | None:
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


def build(system: str = "debian") -> Path:
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
        made_of = kit.ensure()
        for stale in target.parent.glob(".building-*"):  # of a builder that was killed: we hold its lock
            process.end_leftovers(stale)
            process.remove(stale)
        with process.interruptible(), _workspace(target.parent) as work:
            _build_in(work, system, made_of)
            (work / "result").rename(target)
        _prune(target, system)
    say(f"image {target.name} is ready: {target / BOX}")
    return target


def _build_in(work: Path, system: str, made_of: kit.Kit) -> None:
    """All of the build below ``work``; leaves ``work/result`` with box and manifest."""
    accelerator = ready.accelerator()
    (work / "tmp").mkdir()
    (work / "ssh").mkdir(mode=0o700)
    key = work / "ssh" / "id_ed25519"
    ssh_keys.make(key)
    log = work.parent / f"{system}.log"
    started = datetime.now(UTC)
    environment = {
        "TMPDIR": str(work / "tmp"),
        "CHECKPOINT_DISABLE": "1",  # Packer asks no server for news
        "PACKER_CACHE_DIR": str(paths.cache() / "packer"),
        "PACKER_CONFIG_DIR": str(work / "tmp"),
    }
    variables = {
        "accelerator": accelerator,
        "private_key_file": str(key),
        "public_key": ssh_keys.public(key),
        "output_directory": str(work / "out"),
    }
    maker = PACKER / "systems" / f"{system}.base.sh"
    if maker.exists():
        _lay_kit(made_of, work / "kit")
        (work / "base").mkdir()
        with step(f"image {system} base", "image: base disk from packages", 60):
            argv = ["sh", str(maker), str(work / "base"), str(work / "kit")]
            # dpkg looks for a configuration in the home, where root of the namespace may not look.
            home = {"HOME": str(work / "tmp")}
            process.run(argv, log, {**environment, **home}, what="base disk", own_mounts=True)
        variables["base_image"] = str(work / "base" / "base.raw")
    with step(f"image {system} {accelerator}", f"image: provision, test and pack ({accelerator})", 120):
        argv = ["packer", "build", "-color=false", "-timestamp-ui", *packer_arguments(system, variables)]
        process.run(argv, log, environment, what="packer build", cwd=PACKER)
    _refuse_keys(work / "out" / BOX, ssh_keys.public(key))
    result = work / "result"
    result.mkdir()
    (work / "out" / BOX).rename(result / BOX)
    report = json.loads((work / "out" / "report.json").read_text())
    with (result / BOX).open("rb") as box:
        checksum = hashlib.file_digest(box, "sha256").hexdigest()
    written = {
        "format": MANIFEST_FORMAT,
        "system": system,
        "key": image_key(system),
        "box": {"file": BOX, "sha256": checksum, "bytes": (result / BOX).stat().st_size},
        "built_at": started.isoformat(timespec="seconds"),
        "build_seconds": round((datetime.now(UTC) - started).total_seconds(), 1),
        "accelerator": accelerator,
        "git_commit": _git_commit(),
        "kit": made_of.digest,
        **report,
    }
    (result / MANIFEST).write_text(json.dumps(written, indent=1, sort_keys=True) + "\n")
    log.unlink(missing_ok=True)


def _lay_kit(made: kit.Kit, folder: Path) -> None:
    """What the base's maker puts into the system: the kit, and the file that names it there."""
    folder.mkdir()
    shutil.copy(made.archive, folder / kit.ARCHIVE)
    (folder / kit.DIGEST).write_text(f"{made.digest}\n")


def _refuse_keys(box: Path, public: str) -> None:
    """UserError where the box's disk holds any private key, or the public one that let Packer in."""
    keys = {PRIVATE_KEY: "a private key", public.split()[1].encode(): "Packer's key"}
    found = boxes.found_on_disk(box, keys.keys())
    if found:
        raise UserError(
            "image:build, keys",
            "must leave no SSH key on the image's disk, nor where a file has been",
            seen=" and ".join(words for pattern, words in keys.items() if pattern in found),
            fix="Let packer/scripts/clean.sh write over it before it is removed, or keep it in memory",
        )


def packer_arguments(system: str, variables: dict[str, str]) -> list[str]:
    """Arguments that ``packer build`` and ``packer validate`` share; paths are relative to packer/."""
    pairs = [word for name, value in variables.items() for word in ("-var", f"{name}={value}")]
    return ["-var-file", f"systems/{system}.pkrvars.hcl", *pairs, "."]


def validate(system: str = "debian") -> None:
    """Check template, variables and formatting without building. Raises UserError."""
    input_files(system)
    with tempfile.TemporaryDirectory(prefix="overlaylab-validate-") as folder:
        key = Path(folder) / "id_ed25519"
        ssh_keys.make(key)  # Packer reads it
        _validate(
            system,
            {
                "private_key_file": str(key),
                "public_key": ssh_keys.public(key),
                "output_directory": "/nonexistent",
                "base_image": "/dev/null",
            },
        )


def _validate(system: str, variables: dict[str, str]) -> None:
    for argv in (
        ["packer", "fmt", "-check", "-diff", "."],
        ["packer", "fmt", "-check", "-diff", "systems"],
        ["packer", "validate", *packer_arguments(system, variables)],
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
    from_packages = (PACKER / "systems" / f"{system}.base.sh").exists()
    wanted = PROGRAMS + (BASE_PROGRAMS if from_packages else ())
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


@contextlib.contextmanager
def _workspace(parent: Path) -> Iterator[Path]:
    """A folder beside the result, so that moving into place is one rename; always removed."""
    work = Path(tempfile.mkdtemp(prefix=".building-", dir=parent))
    work.chmod(0o755)  # in its user namespace, an ordinary user's root is somebody else
    try:
        yield work
    finally:
        process.remove(work)
