"""Overlay daemons, built once from pinned Go modules and kept in the cache folder.

A recipe is a folder ``provision/daemons/<name>``: go.mod and go.sum pin the sources, build.yml says what is
built and how. Nothing is compiled, and no network is used, while recipe and compiler stay the same.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overlaylab.core import disk_full, paths, progress
from overlaylab.core.documents import Document, load_document, unknown
from overlaylab.core.documents_limits import shown
from overlaylab.core.errors import UserError
from overlaylab.image.daemon_sources import Patched, copy_files, copy_patched, patched, pinned
from overlaylab.machine import bundle_source

RECIPES = paths.PROVISION / "daemons"
SCHEMA = RECIPES / "recipe.schema.json"
# Counts up when the layout of a finished build changes.
_FORMAT = "1"


@dataclass(frozen=True)
class Recipe:
    """What is built. version: as the module's makers write it, ``2.6.5``; patched: modules built from patched copies."""

    name: str
    folder: Path
    source: Document
    version: str
    patched: tuple[Patched, ...] = ()

    @property
    def binaries(self) -> dict[str, str]:
        """{binary: Go package}."""
        binaries: dict[str, str] = self.source.data["binaries"]
        return binaries

    @property
    def files(self) -> dict[str, str]:
        """{file: its path in the module}: what the daemons read, unchanged."""
        files: dict[str, str] = self.source.data.get("files", {})
        return files


# Recipes of programs that this machine runs, not nodes: built when they are wanted.
HERE = frozenset({"butane"})


def names() -> tuple[str, ...]:
    """Every overlay that has a recipe, sorted; the others come from the distribution's packages."""
    found = {path.parent.name for path in RECIPES.glob("*/build.yml")}
    return tuple(sorted(found - HERE))


def load_recipe(name: str) -> Recipe:
    """The recipe ``provision/daemons/<name>``. Raises UserError."""
    if name not in names() and name not in HERE:
        raise unknown("NAME", f"must be a recipe in {shown(RECIPES)}/", name, names())
    folder = RECIPES / name
    source = load_document(folder / "build.yml", SCHEMA)
    module, go_mod = source.data["module"], _read(folder / "go.mod")
    version = pinned(go_mod, module)
    if version is None:
        raise source.error(
            "module",
            rule="must be required in the go.mod beside it",
            seen=f'"{module}"',
            fix=f"Name a module of {shown(folder / 'go.mod')}.",
        )
    version = source.data.get("version") or version.removeprefix("v").removesuffix("+incompatible")
    return Recipe(name, folder, source, version, patched(source, go_mod))


def ensure(name: str) -> dict[str, Any]:
    """The daemons of an overlay, built if they are not in the cache. Raises UserError.

    Returns the build's manifest: name, version, key, go, and ``binaries``:
    {binary or file: {"path", "archive" (gzip of it), "sha256" (of the binary), "bytes"}}, paths as text.
    """
    recipe, go = load_recipe(name), _go_version()
    key = build_key(recipe, go)
    done = _folder(recipe, key)
    built = _finished(done)
    if built is None:
        with _lock(name):
            built = _finished(done)  # somebody else may have built it while this waited
            if built is None and bundle_source.supply(done, f"the daemons of {name}", packed=True):
                built = _finished(done)
            if built is None:
                try:
                    _build(recipe, go, key, done)
                except OSError as wrong:
                    if not disk_full.is_about(wrong):
                        raise
                    raise disk_full.error(f"daemons of {name}", wrong.strerror) from None
                built = _finished(done)
    if built is None:
        raise UserError(
            f"daemons of {name}",
            f"the build in {done} is not readable",
            fix="Remove that folder and try again.",
        )
    return built


def prepare(names: Iterable[str]) -> None:
    """Build those that are not in the cache yet, saying so: compilers take minutes. Raises UserError."""
    for name in names:
        if bundle_source.present():
            ensure(name)
        elif not cached(name):
            with progress.step(f"daemons-{name}", f"building {name} {load_recipe(name).version}", 90):
                ensure(name)


def begin(names: Iterable[str]) -> threading.Thread | None:
    """Build those that are not in the cache yet beside whatever follows; None where nothing is to be built.

    `ensure` waits for the one that it needs. A failure is said at once, and raised by that `ensure`; what cannot
    be built for want of a compiler or a header raises UserError here.
    """
    missing = [name for name in dict.fromkeys(names) if not cached(name)]
    if bundle_source.present():
        prepare(missing)
        return None
    if not missing:
        return None
    for name in missing:
        _check_headers(load_recipe(name))
    seconds = sum(progress.estimate(f"daemons-{name}", 90) or 90 for name in missing)
    about = progress.readable(seconds)
    versions = ", ".join(f"{name} {load_recipe(name).version}" for name in missing)
    progress.say(f"building {versions} beside what follows (about {about} of a core)")
    # It ends with this program, and a build with it (`arguments`).
    thread = threading.Thread(target=_build_in_turn, args=(missing,), name="daemons", daemon=True)
    thread.start()
    return thread


def _build_in_turn(names: Iterable[str]) -> None:
    for name in names:
        started = time.monotonic()
        try:
            ensure(name)
        except UserError as error:
            progress.say(str(error))
            continue
        progress.remember(f"daemons-{name}", time.monotonic() - started)
        progress.say(f"building {name}: {progress.readable(time.monotonic() - started)}")


def cached(name: str) -> bool:
    """Whether `ensure` has nothing to build. Raises UserError for an unknown name."""
    recipe = load_recipe(name)
    return _finished(_folder(recipe, build_key(recipe, _go_version()))) is not None


def _folder(recipe: Recipe, key: str) -> Path:
    return paths.cache() / "daemons" / f"{recipe.name}-{key[:12]}"


def build_key(recipe: Recipe, go: str) -> str:
    """SHA-256 in hex over everything that decides what comes out: sources, recipe, compiler."""
    digest = hashlib.sha256(f"{_FORMAT} {go} {recipe.source.digest}".encode())
    for pin in ("go.mod", "go.sum", *(module.patch.name for module in recipe.patched)):
        digest.update(hashlib.sha256(_read(recipe.folder / pin).encode()).digest())
    return digest.hexdigest()


def arguments(recipe: Recipe) -> list[str]:
    """The go command that builds all binaries of a recipe into ./out."""
    data = recipe.source.data
    flags = ["-s", "-w", *(flag.format(version=recipe.version) for flag in data.get("ldflags", ()))]
    return [
        # However this program ends, the kernel ends the build (prctl(2), PR_SET_PDEATHSIG).
        "setpriv", "--pdeathsig", "TERM", "--",
        # A compiler that takes both cores for a minute would slow whatever else runs here.
        "nice", "-n", "15", "go", "build", "-trimpath", "-buildvcs=false",
        *(["-tags", " ".join(data["tags"])] if data.get("tags") else []),
        "-ldflags", " ".join(flags), "-o", "out/", *dict.fromkeys(recipe.binaries.values()),
    ]  # fmt: skip


def environment(recipe: Recipe) -> dict[str, str]:
    """Keeps Go's state in the cache folder and its hands off the pins; a proxy of the user's counts."""
    go = paths.cache() / "go"
    return os.environ | {
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        # Writable modules, so that the cache folder can be removed like any other.
        "GOFLAGS": "-mod=readonly -modcacherw",
        "GOPATH": str(go / "path"),
        "GOMODCACHE": str(go / "mod"),
        "GOCACHE": str(go / "build"),
        "CGO_ENABLED": "1" if recipe.source.data["cgo"] else "0",
    }


def _build(recipe: Recipe, go: str, key: str, done: Path) -> None:
    _check_headers(recipe)
    work = done.with_name(f".{done.name}.building")
    shutil.rmtree(work, ignore_errors=True)
    (work / "out").mkdir(parents=True)
    for pin in ("go.mod", "go.sum"):
        shutil.copy(recipe.folder / pin, work / pin)
    copy_patched(recipe.name, recipe.patched, work, environment(recipe))
    process = subprocess.run(
        arguments(recipe),
        cwd=work,
        env=environment(recipe),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if process.returncode:
        raise _build_error(recipe, process.stdout, work)
    for name, package in recipe.binaries.items():
        # `go build` names a binary after the last element of its package.
        (work / "out" / package.rsplit("/", 1)[-1]).rename(work / name)
    copy_files(recipe.name, recipe.source.data["module"], recipe.files, work, environment(recipe))
    binaries = {}
    for name in (*recipe.binaries, *recipe.files):
        path = work / name
        archive = path.with_name(f"{name}.gz")
        with path.open("rb") as plain, gzip.GzipFile(archive, "wb", compresslevel=6, mtime=0) as packed:
            shutil.copyfileobj(plain, packed, 1 << 20)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        binaries[name] = {"sha256": digest, "bytes": path.stat().st_size}
    manifest = {"name": recipe.name, "version": recipe.version, "key": key, "go": go, "binaries": binaries}
    (work / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    for folder in ("out", *(module.folder for module in recipe.patched)):
        shutil.rmtree(work / folder)
    shutil.rmtree(done, ignore_errors=True)
    work.rename(done)


def _finished(folder: Path) -> dict[str, Any] | None:
    """The manifest of a complete build with its paths filled in, None where there is none."""
    try:
        manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
        for name, binary in manifest["binaries"].items():
            path = folder / name
            archive = folder / f"{name}.gz"
            if path.stat().st_size != binary["bytes"] or not archive.stat().st_size:
                return None
            binary |= {"path": str(path), "archive": str(archive)}
    except (OSError, ValueError, KeyError):
        return None
    return manifest


def _check_headers(recipe: Recipe) -> None:
    """Name a missing compiler or header before anything is fetched, not in the middle of a compile."""
    if not recipe.source.data["cgo"]:
        return
    packages = " ".join(recipe.source.data.get("host_packages", ["gcc"]))
    fix = f"./task setup installs it; by hand: apt-get install {packages}."
    compiler = shutil.which(os.environ.get("CC", "gcc"))
    if compiler is None:
        raise UserError(f"daemons of {recipe.name}", "a C compiler is needed to build them", fix=fix)
    for header in recipe.source.data.get("headers", ()):
        trial = subprocess.run(
            [compiler, "-E", "-x", "c", "-", "-o", "/dev/null"],
            input=f"#include <{header}>\n",
            text=True,
            capture_output=True,
        )
        if trial.returncode:
            raise UserError(
                f"daemons of {recipe.name}", f"the C header {header} is needed to build them", fix=fix
            )


def _build_error(recipe: Recipe, output: str, work: Path) -> UserError:
    if disk_full.is_reported(output):
        shutil.rmtree(work, ignore_errors=True)
        return disk_full.error(f"daemons of {recipe.name}", "No space left on device")
    log = work / "build.log"
    log.write_text(output)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    unreachable = re.search(
        r"dial tcp|lookup .* no such host|connection refused|i/o timeout|proxyconnect", output
    )
    fix = (
        "The first build fetches Go modules: check the network, or set GOPROXY to a mirror that you can reach."
        if unreachable
        else f"The whole output is in {log}."
    )
    told = " / ".join(lines[-3:]) or "no output"
    return UserError(f"daemons of {recipe.name}", f"could not be built: {told}", fix=fix)


def _go_version() -> str:
    try:
        answer = subprocess.run(
            ["go", "version"], capture_output=True, text=True, env=os.environ | {"GOTOOLCHAIN": "local"}
        )
    except FileNotFoundError:
        raise UserError(
            "go",
            "the pinned Go compiler must be in the path",
            fix="Call this through ./task, which installs it.",
        ) from None
    return answer.stdout.strip()


@contextmanager
def _lock(name: str) -> Iterator[None]:
    """One build of a recipe at a time on this machine."""
    folder = paths.cache() / "daemons"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress.step(f"daemons-wait-{name}", f"waiting for {name}, which is being built"):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as wrong:
        raise UserError(
            shown(path),
            f"must be readable ({wrong.strerror})",
            fix="Restore it: it pins the daemons' sources.",
        ) from None
