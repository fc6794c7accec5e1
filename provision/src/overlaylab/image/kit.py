"""The node kit: which one the inputs ask for, whether it is there, and building it.

A kit lies in ``kits/<key12>`` of the cache: ``kit.tar.gz`` and ``manifest.json``. The key is a digest of all that goes
in; the kit's own digest is that of its tar, and what nodes and results carry: the same lock gives the same one on
every machine. Nothing of this machine goes in.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from overlaylab.core import disk_full, paths
from overlaylab.core.documents import Document, load_document
from overlaylab.core.errors import UserError
from overlaylab.core.progress import step
from overlaylab.image import kit_tree, package_lock, process
from overlaylab.image.kit_tree import Part, Tree
from overlaylab.image.package_lock import PREFER, Package, Policy
from overlaylab.machine import bundle_source, ready, userns
from overlaylab.machine.packages import find_program

DEFINITION = paths.ROOT / "packer" / "kit"
SPEC, LAUNCHER, SCRIPT, LOCK = "kit.yml", "launch.c", "packages.sh", "kit.lock"
SCHEMA = DEFINITION / "kit.schema.json"

ARCHIVE, MANIFEST = "kit.tar.gz", "manifest.json"
# Raised when this module or kit_tree change in a way that makes other kits of the same inputs.
FORMAT = 1
# Kits that stay in the cache: the newest, and the one before for whoever goes back a commit.
KEPT = 2
# Free space that a build needs at its peak.
DISK_BYTES = 2 * 10**9
MEMORY_MIB = 500

# The file in a node's home with the digest of the kit that was unpacked there: written last.
DIGEST = "kit.digest"


@dataclass(frozen=True)
class Kit:
    """A kit that is there. digest: SHA-256 of its tar. archive: that tar, gzipped, with `archive_sha256` of its own.

    tools: {tool: what it prints as its version}. drifted: what is not as its lock says.
    """

    archive: Path
    archive_sha256: str
    digest: str
    architecture: str
    tools: dict[str, str]
    drifted: tuple[str, ...]
    manifest: dict[str, Any]


def spec() -> Document:
    """kit.yml. Raises UserError."""
    return load_document(DEFINITION / SPEC, SCHEMA)


def parts(document: Document) -> tuple[Part, ...]:
    """The parts of a definition, in its order."""
    return tuple(
        Part(
            name,
            about["about"],
            tuple(about["packages"]),
            {key: path for one in about["programs"] for key, path in _named(one)},
            about.get("folders", {}),
            about.get("environment", {}),
            tuple(about.get("arguments", ())),
            about.get("prefix", ""),
            tuple(about.get("without", ())),
        )
        for name, about in document.data["parts"].items()
    )


def _named(program: str | dict[str, str]) -> list[tuple[str, str | None]]:
    return [(program, None)] if isinstance(program, str) else list(program.items())


def programs() -> frozenset[str]:
    """Names of all programs that a kit has in its bin."""
    return frozenset(name for part in parts(spec()) for name in part.programs)


def key() -> str:
    """SHA-256 in hex over all that goes in."""
    digest = hashlib.sha256(f"format {FORMAT}\n".encode())
    for name in (SPEC, LAUNCHER, SCRIPT, LOCK):
        content = (DEFINITION / name).read_bytes() if (DEFINITION / name).exists() else b""
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def folder() -> Path:
    """Where the kit for the present inputs lies or will lie."""
    return paths.cache() / "kits" / key()[:12]


def cached() -> Kit | None:
    """The kit for the present inputs, None if it is not built. Raises UserError where it is damaged."""
    path = folder() / MANIFEST
    try:
        made: dict[str, Any] = json.loads(path.read_text())
        return Kit(
            folder() / ARCHIVE,
            made["archive"]["sha256"],
            made["digest"],
            made["architecture"],
            made["tools"],
            tuple(made["drifted"]),
            made,
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as wrong:
        raise UserError(
            str(path),
            "must be the manifest that kit:build wrote",
            seen=wrong,
            fix=f"Remove the folder {path.parent} and type `./task kit:build`",
        ) from wrong


def ensure(rules: Policy = PREFER) -> Kit:
    """The kit, from the cache, the bundle, or built; seconds to a minute. Raises UserError."""
    if found := cached():
        return found
    target = folder()
    target.parent.mkdir(parents=True, exist_ok=True)
    with process.lock(target.parent / ".lock", "another kit:build runs; waiting for it"):
        if not cached() and not bundle_source.supply(target, "the node kit"):
            for stale in target.parent.glob(".building-*"):  # of a builder that was killed: we hold its lock
                process.end_leftovers(stale)
                process.remove(stale)
            _preflight()
            try:
                with process.interruptible(), process.workspace(target.parent) as work:
                    _build(work, package_lock.read(DEFINITION / LOCK), rules)
                    (work / "result").rename(target)
            except OSError as wrong:
                if not disk_full.is_about(wrong):
                    raise
                raise disk_full.error("kit:build", wrong.strerror) from None
            _prune(target)
    made = cached()
    assert made is not None
    return made


def renew_lock() -> list[str]:
    """Write the lock anew from what the mirrors have today; what changed, a line each. Raises UserError."""
    _preflight()
    parent = paths.cache() / "kits"
    parent.mkdir(parents=True, exist_ok=True)
    with process.interruptible(), process.workspace(parent) as work:
        got = package_lock.downloaded(_fetch(work, spec(), None, ""))
    return package_lock.renew(DEFINITION / LOCK, "Packages of the node kit", got)


def _build(work: Path, locked: Sequence[Package], rules: Policy) -> None:
    """All of the build below `work`; leaves `work/result`."""
    started = time.monotonic()
    document = spec()
    with step("kit-packages", "kit: packages", 20):
        tar = _fetch_locked(work, document, rules)
        got = package_lock.downloaded(tar)
        drifted = package_lock.check("the node kit", locked, got, rules)
    with step("kit-tree", "kit: programs, libraries, Python's bytecode", 20):
        root, home = work / "root", work / "home"
        root.mkdir()
        kit_tree.unpack(tar, root)
        tar.unlink()
        tree = Tree(root, home)
        wanted = parts(document)
        for part in wanted:
            launcher = tree.compile_launcher(document.data["compiler"], DEFINITION / LAUNCHER, part)
            tree.add(part, launcher)
        tree.add_libraries()
        compiler = document.data["compiler"]
        tree.add_licences(
            p.name for p in got if p.name not in (compiler, f"lib{compiler}-dev", f"lib{compiler}1")
        )
        tree.compile_python(paths.NODE_HOME)
        tools = {
            tool: kit_tree.version(home / "bin", argv) for tool, argv in document.data["versions"].items()
        }
    with step("kit-pack", "kit: pack", 10):
        result = work / "result"
        result.mkdir()
        with (result / ARCHIVE).open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
            digest = kit_tree.pack(home, packed)
        with (result / ARCHIVE).open("rb") as file:
            archive = hashlib.file_digest(file, "sha256").hexdigest()
    manifest = {
        "format": FORMAT,
        "key": key(),
        "digest": digest,
        "architecture": document.data["architecture"],
        "archive": {"file": ARCHIVE, "sha256": archive, "bytes": (result / ARCHIVE).stat().st_size},
        "bytes": tree.sizes,
        "about": {part.name: part.about for part in wanted},
        "programs": sorted(name for part in wanted for name in part.programs),
        "tools": tools,
        "packages": {package.name: package.version for package in got},
        "drifted": drifted,
        "built_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "build_seconds": round(time.monotonic() - started, 1),
    }
    (result / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")


def _fetch_locked(work: Path, document: Document, rules: Policy) -> Path:
    """The tar with the locked packages, or with today's where mirrors dropped some and that is not refused."""
    made: list[Path] = []
    data = document.data
    package_lock.fetch(
        "the node kit", DEFINITION / LOCK, data["suite"], data["components"], rules,
        lambda preferences, snapshots: made.append(_fetch(work, document, preferences, snapshots)), _log(),
    )  # fmt: skip
    return made[-1]


def _fetch(work: Path, document: Document, preferences: str | None, snapshots: str) -> Path:
    inside = Path(tempfile.mkdtemp(prefix="fetch-", dir=work))
    if preferences is not None:
        (inside / "preferences").write_text(preferences)
    if snapshots:
        (inside / "snapshots.sources").write_text(snapshots)
    data = document.data
    names = dict.fromkeys(package for part in parts(document) for package in part.packages)
    script = shutil.copy(DEFINITION / SCRIPT, inside / SCRIPT)
    argv = ["sh", str(script), str(inside), data["suite"], ",".join(data["components"])]
    argv.append(",".join([*names, data["compiler"]]))
    # dpkg looks for a configuration in the home, where root of the namespace may not look.
    process.run(
        argv, _log(), {"HOME": str(inside), "TMPDIR": str(inside)}, what="kit packages", own_mounts=True
    )
    return inside / "root.tar"


def _log() -> Path:
    return paths.cache() / "kits" / "packages.log"


def _preflight() -> None:
    if find_program("mmdebstrap") is None:
        raise UserError(
            "kit:build", "needs the program mmdebstrap", fix="Type `./task setup`, which installs it"
        )
    userns.check_mmdebstrap()
    ready.preflight(MEMORY_MIB, DISK_BYTES)


def _prune(target: Path) -> None:
    built = [path.parent for path in target.parent.glob(f"*/{MANIFEST}")]
    for old in sorted(built, key=lambda path: path.stat().st_mtime, reverse=True)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
