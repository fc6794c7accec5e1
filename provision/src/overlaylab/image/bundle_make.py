"""Making a bundle: its parts one after the other, then one tar of them, read back before it gets its name."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from overlaylab.core import disk_full, lock, paths
from overlaylab.core.documents import unknown
from overlaylab.core.errors import UserError
from overlaylab.core.progress import say, step
from overlaylab.image import bundle_parts, bundle_verify, daemons, process, systems
from overlaylab.image.bundle_parts import CONTENTS, Source
from overlaylab.image.bundle_systems import chosen
from overlaylab.machine import packages, ready
from overlaylab.machine.bundle_manifest import FOLDER, NAME, SUMS, TOP, File, Manifest, Part, sums_of, to_json

# Of the ssh signature: one that was made for something else is none for a bundle.
NAMESPACE = "overlaylab-bundle"

# Bytes that must be left below OUT beside the bundle itself.
ROOM = 5 * 10**8


# Folders of the cache that no part is made of.
SECRETS = ("ssh", "secrets")


@dataclass(frozen=True)
class Request:
    """What was typed: FOR, WITH, OVERLAYS, SYSTEM, SIGN. nodes: systems of nodes."""

    system: str
    contents: tuple[str, ...] = CONTENTS
    overlays: tuple[str, ...] = ()
    nodes: tuple[str, ...] = (systems.DEFAULT,)
    key: Path | None = None


def make(out: Path, request: Request) -> str:
    """Write the bundle to `out`, a new file; its SHA-256 in hex. Raises UserError, and leaves no file then."""
    system, architecture = chosen(request.system)
    for name in request.contents:
        if name not in CONTENTS:
            raise unknown("WITH", f"must name some of {', '.join(CONTENTS)}, with commas", name, CONTENTS)
    for name in request.overlays:
        if name not in daemons.names():
            raise unknown("OVERLAYS", "must name overlays whose daemons are built", name, daemons.names())
    for name in request.nodes:
        if systems.load(name).folder.parent != systems.DEFINITIONS:
            raise UserError(
                f"SYSTEM={name}",
                "must be one of packer/systems, which the bundle carries with the checkout",
                seen=systems.load(name).folder,
                fix="Copy its folder there, and commit it",
            )
    check_out(out)
    check_key(request.key)
    ready.ensure_packages((packages.BUNDLES,))
    commit, version, made = described()
    overlays = request.overlays or daemons.names() if bundle_parts.LAB in request.contents else ()
    contents = tuple(name for name in CONTENTS if name in request.contents)
    home = paths.cache() / "bundle"
    with lock.held(home):
        try:
            with _workspace(home, out) as work:
                sources = list(
                    bundle_parts.sources(work, system, architecture, contents, overlays, request.nodes)
                )
                with step("bundle-digests", "bundle: digests of all files", 10):
                    parts = tuple(measured(source) for source in sources)
                manifest = Manifest(
                    system.name, architecture, commit, version, made, contents, tuple(overlays), parts
                )
                files = {path: source for part in sources for path, source in part.files.items()}
                with step("bundle-write", f"bundle: writing {out.name}", 20):
                    digest = write(manifest, files, out)
        except OSError as wrong:
            raise full(out, wrong) from None
    if request.key is not None:
        sign(out, request.key)
    return digest


@contextlib.contextmanager
def _workspace(home: Path, out: Path) -> Iterator[Path]:
    """A folder for what is not kept. First goes what a command that was killed has left, here and beside its OUT."""
    unfinished = home / ".out"
    if unfinished.is_symlink():
        with contextlib.suppress(OSError):
            unfinished.readlink().unlink()
    for path in home.glob(".*"):  # what is whole has a name without a dot
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    unfinished.symlink_to(unwritten(out))
    try:
        with tempfile.TemporaryDirectory(prefix=".work-", dir=home) as name:
            yield Path(name)
    finally:
        unfinished.unlink()


def unwritten(out: Path) -> Path:
    """Where the tar lies until it is whole."""
    return out.with_name(f".{out.name}.new")


def check_out(out: Path) -> None:
    """Raise UserError where the bundle cannot be written there."""
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise UserError(
            f"OUT={out}",
            "must be in a folder that you can write to",
            fix="Make that folder, or choose another",
        )
    if out.exists() and not out.is_file():
        raise UserError(
            f"OUT={out}", "must be a file", seen="something else is there", fix="Choose another name"
        )


def check_key(key: Path | None) -> None:
    """Raise UserError where SIGN names no key."""
    if key is not None and not key.is_file():
        raise UserError(
            f"SIGN={key}",
            "must be a key of ssh",
            fix="Name its file, or the public half of one that ssh-agent holds",
        )


def described() -> tuple[str, str, int]:
    """(commit, what git calls it, its time in s) of the checkout. Raises UserError where files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(paths.ROOT), *words], capture_output=True, text=True, check=True
        ).stdout.rstrip()

    try:
        if not (paths.ROOT / ".git").exists():
            raise FileNotFoundError(paths.ROOT / ".git")
        changed = git("status", "--porcelain", "--untracked-files=no")
        answers = git("rev-parse", "HEAD"), git("describe", "--always"), int(git("log", "-1", "--format=%ct"))
    except (OSError, subprocess.CalledProcessError) as wrong:
        raise UserError(
            "bundle:make",
            "must have the checkout's git repository: a bundle is of a commit",
            seen=wrong,
            fix="Make it in a clone (`git clone bundle/history.bundle` makes one of what came in a bundle)",
        ) from None
    if changed:
        raise UserError(
            "the checkout",
            "must be as it was committed: a bundle is of a commit",
            seen=", ".join(line[3:] for line in changed.splitlines()[:3]),
            fix="Commit the changes, or put them aside (git stash)",
        )
    return answers


def measured(source: Source) -> Part:
    """A part with size and SHA-256 of its files, in the order of their names."""
    files = []
    for path, lies in sorted(source.files.items()):
        refuse_secret(path, lies)
        with lies.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        files.append(File(path, lies.stat().st_size, digest, executable=bool(lies.stat().st_mode & 0o100)))
    return Part(source.name, source.about, source.licences, tuple(files))


def refuse_secret(path: str, lies: Path) -> None:
    """Raise UserError where a file is one of the cache folder's keys and passwords, by any link."""
    for folder in SECRETS:
        if lies.resolve().is_relative_to((paths.cache() / folder).resolve()):
            raise UserError(
                path,
                "must be no key and no password of this machine",
                seen=str(lies.resolve()),
                fix="Tell the maintainers; no bundle was written",
            )


def write(manifest: Manifest, files: dict[str, Path], out: Path) -> str:
    """Write the tar: the manifest, the checkout, the other parts; by name, and folders before what is in them.

    Its SHA-256. Where tar is cut while it unpacks the checkout, parts are missing too, which ./task looks at. It gets its name when it has been read back and found right. Raises OSError, UserError.
    """
    size = sum(file.bytes for file in manifest.files)
    if (free := shutil.disk_usage(out.parent).free) < size + ROOM:
        raise UserError(
            f"disk of {out}",
            f"must have {(size + ROOM) / 1e9:.1f} GB free",
            seen=f"{free / 1e9:.1f} GB",
            fix="Free some, or name a file on another disk (OUT); the parts that were made are kept",
        )
    executable = {file.path for file in manifest.files if file.executable}
    partial = unwritten(out)
    try:
        with process.interruptible(), tarfile.open(partial, "w", format=tarfile.GNU_FORMAT) as tar:
            seen: set[PurePosixPath] = set()
            contents: list[tuple[str, bytes | Path]] = [
                (NAME, to_json(manifest).encode()),
                (SUMS, sums_of(manifest).encode()),
                *sorted(files.items(), key=lambda item: (item[0].startswith(f"{FOLDER}/"), item[0])),
            ]
            for path, content in contents:
                for folder in reversed(PurePosixPath(TOP, path).parents[:-1]):
                    if folder not in seen:
                        seen.add(folder)
                        tar.addfile(_member(str(folder), manifest.made, kind=tarfile.DIRTYPE, mode=0o755))
                member = _member(f"{TOP}/{path}", manifest.made, mode=0o755 if path in executable else 0o644)
                if isinstance(content, bytes):
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
                else:
                    member.size = content.stat().st_size
                    with content.open("rb") as file:
                        tar.addfile(member, file)
        digest = bundle_verify.verify(partial).digest
        partial.replace(out)
        return digest
    finally:
        partial.unlink(missing_ok=True)


def _member(name: str, made: int, *, mode: int, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mtime, info.mode, info.type = made, mode, kind
    info.uname = info.gname = "root"
    return info


def sign(out: Path, key: Path) -> Path:
    """Sign the bundle with a key of ssh, or one that ssh-agent holds; the signature, beside it. Raises UserError."""
    signature = out.with_name(f"{out.name}.sig")
    signature.unlink(missing_ok=True)  # ssh-keygen asks before it overwrites
    done = subprocess.run(
        ["ssh-keygen", "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(out)], check=False
    )
    if done.returncode:
        raise UserError(
            f"SIGN={key}",
            "must sign the bundle",
            seen=f"ssh-keygen -Y sign ended with {done.returncode}, its words are above",
            fix=f"Sign it by hand: ssh-keygen -Y sign -f KEY -n {NAMESPACE} {out}; the bundle itself is whole",
        )
    say(f"signed: {signature}")
    return signature


def full(out: Path, wrong: OSError) -> UserError:
    """What to tell of a file that could not be read or written."""
    fix = (
        f"Free some on the disk of {wrong.filename or out} and of {paths.cache()}"
        if disk_full.is_about(wrong)
        else "Look at that file and its folder"
    )
    return UserError(
        str(wrong.filename or out),
        "must be readable and writable while a bundle is made",
        seen=wrong.strerror or str(wrong),
        fix=f"{fix}, then type the command again; the parts that were made are kept, nothing half made is left",
    )


def contents_of(words: Sequence[str]) -> tuple[str, ...]:
    """Names out of a list with commas."""
    return tuple(dict.fromkeys(name for word in words for name in word.replace(",", " ").split()))
