"""The distribution's packages in a bundle: their closure for a system, and a repository that apt believes.

The closure is what apt would install on a system with nothing on it (an empty dpkg status), so that it serves any
machine of that release. Downloads are kept in the cache folder; nothing of this machine's apt is changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.image.bundle_systems import System
from overlaylab.machine import releases

# What ./task itself takes, before it can ask for the others.
BEGINNING = ("python3", "python3-venv", "sudo", "ca-certificates")

# When the repository, its key and signature say they were made, 2020: a machine whose clock is slow takes them too.
LONG_AGO = 1577836800


@dataclass(frozen=True)
class Apt:
    """An apt of its own for a system: lists, status and downloads in `folder`, the machine's own sources."""

    folder: Path
    system: System
    architecture: str

    def prepare(self) -> None:
        for name in ("lists/partial", "archives/partial", "none/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").write_text("")
        pins = [
            f"Package: *\nPin: release o={self.system.origin},{release}\nPin-Priority: 990\n"
            for release in self.system.releases
        ]
        # Behind them, as the first that fits counts: apt_preferences(5).
        pins.append("Package: *\nPin: release *\nPin-Priority: -1\n")
        (self.folder / "preferences").write_text("\n".join(pins))

    def argv(self, program: str, *words: str) -> list[str]:
        settings = {
            "Dir::State": self.folder,
            "Dir::State::lists": self.folder / "lists",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder,
            "Dir::Cache::archives": self.folder / "archives",
            "Dir::Etc::preferences": self.folder / "preferences",
            "Dir::Etc::preferencesparts": self.folder / "none",
            "APT::Architecture": self.architecture,
            "APT::Architectures": self.architecture,
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "root",  # the cache folder's parents may be closed to apt's own user
            "Acquire::Languages": "none",
            "Debug::NoLocking": "true",  # dpkg's lock is for installing, which is not done here
        }
        return [program, *(f"--option={name}={value}" for name, value in settings.items()), *words]

    def run(self, program: str, *words: str, rule: str, fix: str) -> str:
        """What it printed. Raises UserError with its last words."""
        done = subprocess.run(
            self.argv(program, *words), text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False
        )
        if done.returncode:
            told = [line for line in (done.stderr + done.stdout).splitlines() if line.startswith("E:")]
            raise UserError(
                f"packages of {self.system.name}",
                rule,
                seen=" / ".join(told[-3:]) or f"exit code {done.returncode}",
                fix=fix,
            )
        return done.stdout


def closure(system: System, architecture: str, names: Iterable[str]) -> list[dict[str, str]]:
    """Download what these packages and all that they depend on are; a stanza of each, with its file as ``File``.

    Raises UserError where this machine's package sources lack the system, a package, or cannot be reached.
    """
    release = releases.RELEASES[system.name]
    names = list(names)
    if absent := [name for name in names if name in release.absent]:
        raise UserError(
            f"packages of {system.name}",
            "must be there for all that WITH names",
            seen=", ".join(f"{name}: {release.absent[name]}" for name in absent),
            fix="Leave out of WITH what takes them: docs/hosts.md, Other systems, says what works there",
        )
    apt = Apt(paths.cache() / "bundle" / f"apt-{system.name}-{architecture}", system, architecture)
    apt.prepare()
    again = "Correct this machine's package sources or its network, then type the command again; downloads are kept"
    apt.run("apt-get", "update", "-qq", rule="must have lists that can be read", fix=again)
    check_sources(apt)
    wanted = list(dict.fromkeys([*BEGINNING, *names]))
    renamed = [release.renamed.get(name, name) for name in wanted]
    install = ("--assume-yes", "--quiet=2", "install", *renamed)
    printed = apt.run(
        "apt-get",
        "--print-uris",
        # It leaves out what it has downloaded before.
        f"--option=Dir::Cache::archives={apt.folder / 'none'}",
        *install,
        rule="must be in this machine's package sources, with all that they depend on",
        fix="Enable the component that has them (Debian: main; Ubuntu: main and universe)",
    )
    apt.run("apt-get", "--download-only", *install, rule="must be downloaded once", fix=again)
    files = {key(*file.split("_")): file for file in (line.split()[1] for line in printed.splitlines())}
    versions = [
        f"{name}={version.replace('%3a', ':')}" for name, version, _ in (f.split("_") for f in files.values())
    ]
    shown = apt.run(
        "apt-cache", "--no-all-versions", "show", *versions, rule="must be known to apt", fix=again
    )
    stanzas = parse_stanzas(shown)
    for stanza in stanzas:
        stanza["File"] = str(
            apt.folder / "archives" / files[key(stanza["Package"], stanza["Version"], stanza["Architecture"])]
        )
    if len(stanzas) != len(files):
        raise UserError(
            f"packages of {system.name}",
            "must be known to apt once each",
            seen=f"{len(files)} packages, {len(stanzas)} descriptions",
            fix=again,
        )
    _remove_others(apt.folder / "archives", {Path(stanza["File"]).name for stanza in stanzas})
    return sorted(stanzas, key=lambda stanza: stanza["Package"])


def key(name: str, version: str, architecture: str) -> tuple[str, str, str]:
    """What tells a package's file from others, from its name as apt writes it (%3a) or from its stanza."""
    return name, version.replace("%3a", ":"), architecture.removesuffix(".deb")


def check_sources(apt: Apt) -> None:
    """Raise UserError where this machine's sources have nothing of that system."""
    told = apt.run(
        "apt-get",
        "indextargets",
        "--format=$(ORIGIN) $(CODENAME)",
        "Identifier: Packages",
        rule="must have sources",
        fix="Look at /etc/apt/sources.list.d",
    )
    have = sorted(set(told.splitlines()))
    names = {release.partition("=")[2] for release in apt.system.releases}
    if not any(
        line.split()[0] == apt.system.origin and line.split()[-1] in names for line in have if line.strip()
    ):
        raise UserError(
            f"packages of {apt.system.name}",
            f"must be in this machine's package sources: {apt.system.origin} {sorted(names, key=len)[0]}",
            seen=", ".join(have) or "no source",
            fix=f"Make that bundle on a machine with {apt.system.name}, or add that release to the sources here",
        )


def _remove_others(folder: Path, kept: set[str]) -> None:
    for path in folder.glob("*.deb"):
        if path.name not in kept:
            path.unlink()


def parse_stanzas(text: str) -> list[dict[str, str]]:
    """Fields of deb822(5) stanzas; lines that go on keep their newline."""
    stanzas = []
    for block in text.split("\n\n"):
        fields: dict[str, str] = {}
        name = ""
        for line in block.splitlines():
            if line[:1] in " \t" and name:
                fields[name] += "\n" + line
            elif ":" in line:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
        if fields:
            stanzas.append(fields)
    return stanzas


def repository(stanzas: list[dict[str, str]], system: System, architecture: str) -> Path:
    """A folder with what makes a repository of these packages: index, Release, signature, public key. UserError.

    The packages themselves lie where the stanzas say and go below ``pool/``. The key is made for this repository and
    its private half thrown away.
    """
    index = packages_index(stanzas)
    release = release_file(index, system.name, architecture)
    digest = hashlib.sha256(release.encode()).hexdigest()
    done = paths.cache() / "bundle" / f"repository-{digest[:12]}"
    if (done / "InRelease").exists():
        return done
    done.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".repository-", dir=done.parent) as name:
        made = Path(name) / "made"
        made.mkdir()
        (made / "Packages").write_text(index)
        (made / "Release").write_text(release)
        sign(made)
        shutil.rmtree(done, ignore_errors=True)
        made.rename(done)
    return done


def packages_index(stanzas: list[dict[str, str]]) -> str:
    """The file Packages, after comparing each download with apt's own SHA-256. Raises UserError."""
    blocks = []
    for stanza in stanzas:
        path = Path(stanza["File"])
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != stanza["SHA256"]:
            path.unlink()
            raise UserError(
                f"package {path.name}",
                f"must have the SHA-256 {stanza['SHA256']}",
                seen=digest,
                fix="It was removed; type the command again",
            )
        written = {name: value for name, value in stanza.items() if name not in ("File", "MD5sum", "SHA1")}
        written["Filename"] = in_pool(stanza)
        blocks.append("".join(f"{name}: {value}\n" for name, value in written.items()))
    return "\n".join(blocks)


def in_pool(stanza: Mapping[str, str]) -> str:
    """Where a package lies in the repository: the name that it has on mirrors, which has no percent sign."""
    return f"pool/{stanza['Filename'].rpartition('/')[2]}"


def release_file(index: str, system: str, architecture: str) -> str:
    """The file Release. Without Valid-Until, so that a bundle does not expire; apt takes any Date of the past."""
    content = index.encode()
    return "".join(
        f"{line}\n"
        for line in (
            "Origin: overlaylab",
            "Label: overlaylab bundle",
            "Suite: bundle",
            f"Codename: {system}",
            f"Date: {formatdate(LONG_AGO, usegmt=True)}",
            f"Architectures: {architecture}",
            "SHA256:",
            f" {hashlib.sha256(content).hexdigest()} {len(content)} Packages",
        )
    )


def sign(folder: Path) -> None:
    """Write InRelease and key.asc beside Release, with a key that is made for it and thrown away. UserError."""
    # Short, as a socket lies in it (unix(7): 108 bytes).
    with tempfile.TemporaryDirectory(prefix="olab-") as home:
        gpg = [
            "gpg",
            "--homedir",
            home,
            "--batch",
            "--quiet",
            "--no-tty",
            "--pinentry-mode",
            "loopback",
            "--passphrase",
            "",
        ]
        gpg += ["--faked-system-time", f"{LONG_AGO}!"]
        try:
            for argv in (
                [*gpg, "--quick-generate-key", "overlaylab bundle", "ed25519", "sign", "never"],
                [*gpg, "--digest-algo", "SHA512", "--clearsign", "--output", str(folder / "InRelease"), str(folder / "Release")],
                [*gpg, "--armor", "--output", str(folder / "key.asc"), "--export", "overlaylab bundle"],
            ):  # fmt: skip
                done = subprocess.run(
                    argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
                )
                if done.returncode:
                    raise UserError(
                        "gpg",
                        "must make a key for the bundle's packages and sign with it",
                        seen=" / ".join(done.stderr.strip().splitlines()[-2:]),
                        fix="Look whether the packages gpg and gpg-agent are installed",
                    )
        except FileNotFoundError:
            raise UserError("gpg", "must be installed", fix="apt-get install gpg gpg-agent") from None
        finally:
            # It would wait for more for ever.
            environment = {**os.environ, "GNUPGHOME": home}
            subprocess.run(["gpgconf", "--kill", "all"], env=environment, capture_output=True, check=False)
    (folder / "Release").unlink()
