"""The tree of the node kit out of unpacked packages: programs behind one launcher, their libraries, licences."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from overlaylab.core.errors import UserError

# Where packages put programs and libraries; a system that is not installed has no links between them.
PROGRAMS = ("usr/bin", "usr/sbin", "bin", "sbin")
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib", "lib")
LOADER = "ld-linux-x86-64.so.2"
# Opened by the C library itself when a thread ends, so that no program names it.
ALWAYS = ("libgcc_s.so.1",)
# 2020-01-01: the same for all files, so that the same content gives the same bytes.
MOMENT = 1577836800


class SupportsWrite(Protocol):
    """A file that takes bytes."""

    def write(self, data: bytes, /) -> int: ...


@dataclass(frozen=True)
class Part:
    """programs: {name in bin: path in the packages, None to look for it}. Others as in kit.yml."""

    name: str
    about: str
    packages: tuple[str, ...]
    programs: Mapping[str, str | None]
    folders: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    prefix: str = ""
    without: tuple[str, ...] = ()


class Tree:
    """The kit below `home`, filled part by part from the packages unpacked below `root`. Raises UserError throughout."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root, self.home = root, home
        # Bytes by part; libraries are of several.
        self.sizes: dict[str, int] = {}
        self._libraries: dict[str, Path] = {}
        self._loader = self._library(LOADER)
        self._search = ":".join(str(root / folder) for folder in LIBRARIES)
        for folder in ("bin", "lib", "libexec/as", "share/licences"):
            (home / folder).mkdir(parents=True)

    def compile_launcher(self, compiler: str, source: Path, part: Part) -> str:
        """The launcher for a part's programs; its name in libexec."""
        defined = []
        for variable, folder in part.environment.items():
            defined += [f'-DVARIABLE="{variable}"', f'-DFOLDER="{folder}"']
        if part.arguments:
            defined.append("-DARGUMENTS=" + ", ".join(f'"{word}"' for word in part.arguments))
        if part.prefix:
            defined.append(f'-DPREFIX="{part.prefix}"')
        name = f"launch-{part.name}" if defined else "launch"
        target = self.home / "libexec" / name
        if not target.exists():
            folder = str(self.root / "usr/lib/x86_64-linux-gnu" / compiler)
            argv = self._loaded(self._program(compiler, None))
            self._run(
                [*argv, f"-B{folder}", "-nostdlib", "-static", *defined, "-o", str(target), str(source)]
            )
            target.chmod(0o755)
        return name

    def add(self, part: Part, launcher: str) -> None:
        """Put a part in: its programs, each a link to the launcher, its folders, and what libraries they need."""
        before = self._bytes()
        for name, path in part.programs.items():
            self._add_program(name, path, launcher, part.prefix)
        for inside, outside in part.folders.items():
            self._add_folder(inside, self.root / outside, part.without)
        self.sizes[part.name] = self._bytes() - before

    def _add_program(self, name: str, path: str | None, launcher: str, prefix: str) -> None:
        source = self._program(name, path)
        base = prefix + name.rpartition("/")[2]
        link = self.home / "bin" / name
        link.parent.mkdir(exist_ok=True)
        if not _is_elf(source):
            raise self._wrong(f"program {name}", "must be a program, not a script", source)
        # A program under several names is one file.
        kept = prefix + source.name
        target = self.home / "libexec" / kept
        if not target.exists():
            self._copy(source, f"libexec/{kept}")
            self._note_libraries(source)
        if kept != base:
            (self.home / "libexec" / base).symlink_to(kept)
        link.symlink_to(os.path.relpath(self.home / "libexec" / launcher, link.parent))
        (self.home / "libexec/as" / base).symlink_to(f"../../lib/{LOADER}")

    def _add_folder(self, inside: str, source: Path, without: Sequence[str]) -> None:
        if not source.is_dir():
            raise self._wrong(f"folder {inside}", "must be in the packages", source)
        for path in sorted(source.rglob("*")):
            target = self.home / inside / path.relative_to(source)
            if any(target.is_relative_to(self.home / one) for one in without):
                continue
            real = self._real(path)
            if path.is_dir() and not path.is_symlink():
                target.mkdir(parents=True, exist_ok=True)
            elif real.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                self._copy(real, str(target.relative_to(self.home)))
                if _is_elf(real):
                    self._note_libraries(real)

    def add_libraries(self) -> None:
        """Loader and libraries of all parts that were put in."""
        for name in ALWAYS:
            self._libraries[name] = self._library(name)
        self._libraries[LOADER] = self._loader
        before = self._bytes()
        for name, path in sorted(self._libraries.items()):
            self._copy(self._real(path), f"lib/{name}")
        self.sizes["libraries"] = self._bytes() - before

    def add_licences(self, packages: Iterable[str]) -> None:
        """What each package says of its licence, and the texts that those refer to."""
        before = self._bytes()
        for package in packages:
            copyright_ = self._real(self.root / "usr/share/doc" / package / "copyright")
            if not copyright_.is_file():
                raise self._wrong(f"licence of {package}", "must be in the package", copyright_)
            self._copy(copyright_, f"share/licences/{package}")
        texts = self.root / "usr/share/common-licenses"
        for path in sorted(texts.iterdir()) if texts.is_dir() else ():
            if path.is_file():
                self._copy(path, f"share/licences/{path.name}")
        self.sizes["licences"] = self._bytes() - before

    def compile_python(self, at: str) -> None:
        """Bytecode of the standard library, which no node has to make: under emulation that takes seconds.

        at: where the kit will lie, for what tracebacks say.
        """
        before = self._bytes()
        library = self.home / "lib/python3.11"
        self._run(
            [str(self.home / "bin/python3"), "-B", "-I", "-S", "-m", "compileall", "-q", "-f", "-s", str(self.home), "-p", at,
             "--invalidation-mode", "unchecked-hash", str(library)],
            PYTHONHASHSEED="0",
        )  # fmt: skip
        self.sizes["python"] += self._bytes() - before

    def _copy(self, source: Path, inside: str) -> None:
        """Copy a file to where nothing is, in the kit: root must not write over what it happens to name."""
        target = self.home / inside
        if not target.resolve().is_relative_to(self.home.resolve()):
            raise ValueError(f"{inside} is not in the kit")
        with source.open("rb") as content, target.open("xb") as made:
            shutil.copyfileobj(content, made, 1 << 20)
        target.chmod(0o755 if _is_started(target, self.home) else 0o644)

    def _note_libraries(self, program: Path) -> None:
        told = self._run([*self._loaded(None), "--list", str(program)], may_fail=True)
        for line in told.splitlines():
            needed, _, where = line.strip().partition(" => ")
            # The loader is named by its path, which is this machine's as well.
            name = needed.rpartition("/")[2]
            if not where:
                continue  # the kernel's own (vdso(7)), or a program without libraries
            found = Path(where.split(" (")[0])
            # The loader also looks where this machine has its libraries: those are not locked.
            if not found.is_relative_to(self.root):
                raise self._wrong(
                    f"library {name}", f"must be in the packages: {program.name} needs it", where
                )
            self._libraries[name] = found

    def _loaded(self, program: Path | None) -> list[str]:
        """The argv that runs a program of the packages with their own loader and libraries."""
        loader = [str(self._loader), "--inhibit-cache", "--library-path", self._search]
        return [*loader, str(program)] if program else loader

    def _program(self, name: str, path: str | None) -> Path:
        tried = [path] if path else [f"{folder}/{name}" for folder in PROGRAMS]
        for one in tried:
            found = self._real(self.root / one)
            if found.is_file():
                return found
        raise self._wrong(f"program {name}", "must be in the packages", ", ".join(tried))

    def _library(self, name: str) -> Path:
        for folder in LIBRARIES:
            found = self._real(self.root / folder / name)
            if found.is_file():
                return found
        raise self._wrong(f"library {name}", "must be in the packages", self.root)

    def _real(self, path: Path) -> Path:
        """Where links lead, taken as links below the root."""
        for _ in range(20):
            if not path.is_symlink():
                return path
            target = path.readlink()
            path = self.root / target.relative_to("/") if target.is_absolute() else path.parent / target
            path = Path(os.path.normpath(path))
        return path

    def _run(self, argv: list[str], may_fail: bool = False, **environment: str) -> str:
        done = subprocess.run(
            argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", **environment},
        )  # fmt: skip
        if done.returncode and not may_fail:
            raise self._wrong(
                f"kit:build, {Path(argv[-1]).name}",
                "must succeed",
                (done.stderr or done.stdout).strip()[-500:],
            )
        return done.stdout

    def _bytes(self) -> int:
        return sum(
            path.stat().st_size for path in self.home.rglob("*") if path.is_file() and not path.is_symlink()
        )

    @staticmethod
    def _wrong(where: str, rule: str, seen: object) -> UserError:
        return UserError(where, rule, seen=seen, fix="Correct packer/kit/kit.yml: its packages or paths")


def pack(home: Path, target: SupportsWrite) -> str:
    """Write the tree as a tar whose bytes depend on content alone; SHA-256 in hex of it."""
    digest = hashlib.sha256()

    class Both:
        def write(self, data: bytes) -> int:
            digest.update(data)
            return target.write(data)

    with tarfile.open(fileobj=Both(), mode="w|", format=tarfile.GNU_FORMAT) as tar:  # type: ignore[call-overload]
        for path in _sorted(home):
            member = tar.gettarinfo(str(path), arcname=str(path.relative_to(home)))
            member.mtime, member.uid, member.gid, member.uname, member.gname = MOMENT, 0, 0, "", ""
            if member.isdir() or _is_started(path, home):
                member.mode = 0o755
            elif not member.issym():
                member.mode = 0o644
            else:
                member.mode = 0o777
            # A second name of a file would be a link to the first, or not, by how the file was copied.
            if member.islnk():
                raise ValueError(f"{path} has several names")
            if member.isreg():
                with path.open("rb") as content:
                    tar.addfile(member, content)
            else:
                tar.addfile(member)
    return digest.hexdigest()


def _sorted(home: Path) -> Iterator[Path]:
    return iter(sorted(home.rglob("*"), key=lambda path: str(path.relative_to(home))))


def _is_started(path: Path, home: Path) -> bool:
    inside = path.relative_to(home)
    return inside.parts[0] == "libexec" or inside == Path("lib") / LOADER


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def unpack(tar: Path, root: Path) -> None:
    """Unpack what packages hold, without owners and devices; what apt downloaded stays out."""
    with tarfile.open(tar) as archive:
        members = [
            member for member in archive
            if (member.isreg() or member.isdir() or member.issym() or member.islnk())
            and not re.match(r"(\./)?(var/cache|var/lib/apt|dev)(/|$)", member.name)
        ]  # fmt: skip
        for member in members:
            member.mode |= 0o700 if member.isdir() else 0o400
            member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
        archive.extractall(root, members)


def version(folder: Path, argv: Sequence[str]) -> str:
    """The first line with a digit that a program of the kit prints of itself. UserError where it prints none."""
    done = subprocess.run(
        [str(folder / argv[0]), *argv[1:]], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
        env={"PATH": str(folder), "LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    for line in (done.stdout + done.stderr).splitlines():
        if any(letter.isdigit() for letter in line) and done.returncode != 127:
            return line.strip()
    raise UserError(
        f"kit:build, {argv[0]}",
        "must run and print its version",
        seen=f"exit code {done.returncode}: {(done.stdout + done.stderr).strip()[-300:]}",
        fix="Correct packer/kit/kit.yml: its packages, paths or versions",
    )
