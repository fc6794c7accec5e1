"""An archive of packages as a distribution has one, signed and with a suite of its own: Debian's packages, and some that
only depend on one of them, under names that another distribution uses."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

SUITE = "stand-in"


class Archive:
    """What apt takes as an archive. sources: a file for ARCHIVE=."""

    def __init__(self, folder: Path, suite: str = SUITE) -> None:
        self.folder, self.suite, self.home = folder, suite, folder / "gnupg"
        self.pool = folder / "pool"
        for each in (self.pool, self.home, folder / "dists" / suite / "main/binary-amd64"):
            each.mkdir(parents=True)
        self.home.chmod(0o700)
        self.gpg("--quick-generate-key", "Stand-in <stand-in@example.org>", "ed25519", "sign", "0")
        (folder / "key.gpg").write_bytes(self.gpg("--export"))
        self.sources = folder / "archive.sources"
        # copy, not file: apt then keeps what it took where the builder takes digests.
        self.sources.write_text(
            f"Types: deb\nURIs: copy://{folder}\nSuites: {suite}\nComponents: main\nSigned-By: {folder}/key.gpg\n"
        )

    def gpg(self, *words: str) -> bytes:
        argv = ["gpg", "--batch", "--quiet", "--homedir", str(self.home), "--passphrase", "", *words]
        return subprocess.run(argv, check=True, capture_output=True).stdout

    def download(self, packages: Iterable[str]) -> None:
        """This machine's packages, as ``name`` or ``name=version``."""
        subprocess.run(
            ["apt-get", "download", "--quiet", *packages], cwd=self.pool, check=True, capture_output=True
        )

    def stand_in(self, names: Mapping[str, str]) -> None:
        """{name of an empty package: what it depends on}."""
        for name, needed in names.items():
            root = self.folder / "made" / name
            (root / "DEBIAN").mkdir(parents=True)
            (root / "DEBIAN/control").write_text(
                f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: a test <test@example.org>\n"
                f"Depends: {needed}\nDescription: stands in for a package of that name\n"
            )
            subprocess.run(
                ["dpkg-deb", "--build", "--root-owner-group", root, self.pool],
                check=True,
                capture_output=True,
            )

    def publish(self) -> None:
        """Write and sign the lists."""
        stanzas = []
        for deb in sorted(self.pool.glob("*.deb")):
            fields = subprocess.run(
                ["dpkg-deb", "--field", deb], check=True, text=True, capture_output=True
            ).stdout
            digest = hashlib.sha256(deb.read_bytes()).hexdigest()
            stanzas.append(
                f"{fields}Filename: pool/{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\n"
            )
        release = self.folder / "dists" / self.suite
        name = "main/binary-amd64/Packages"
        content = "\n".join(stanzas).encode()
        (release / name).write_bytes(content)
        (release / "Release").write_text(
            f"Suite: {self.suite}\nCodename: {self.suite}\nArchitectures: amd64\nComponents: main\n"
            f"Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n {hashlib.sha256(content).hexdigest()} {len(content)} {name}\n"
        )
        (release / "InRelease").unlink(missing_ok=True)
        self.gpg("--output", str(release / "InRelease"), "--clearsign", str(release / "Release"))
        for path in [self.folder, *self.folder.rglob("*")]:
            if self.home not in (
                path,
                *path.parents,
            ):  # root of an ordinary user's namespace is somebody else
                path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o644))
