"""Downloads the disk of a system from its publisher and verifies it: the only place that needs the network for it.

The publisher's key is known by its fingerprint, what the key signed by gpgv(1), and the disk by that: either its own
signature, or a list of checksums that is signed.
"""

from __future__ import annotations

import base64
import bz2
import gzip
import hashlib
import lzma
import re
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from overlaylab.core import disk_full
from overlaylab.core.errors import UserError
from overlaylab.core.progress import say, step
from overlaylab.image import foreign_disk, process, systems
from overlaylab.image.systems import Source, System

CHUNK = 1 << 20
# Seconds without a byte.
PATIENCE = 60
UNPACK: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}
HASHES = {64: "sha256", 128: "sha512"}


def fetch(name: str) -> Path:
    """Have the disk of a system, verified and chosen; where it lies. Raises UserError."""
    system = systems.load(name)
    if system.disk is None or system.disk.source is None:
        raise UserError(
            f"SYSTEM={name}",
            "must be one whose publisher's disk is pinned",
            seen=f"{system.title}, {'made from packages' if system.packages else 'without a pinned disk'}",
            fix="Leave it out, or download the disk yourself and name it in IMAGE=",
        )
    source = system.disk.source
    target = foreign_disk.fetched(system)
    disk = target / _unpacked(_name(source.url))
    if disk.exists() and (before := foreign_disk.chosen(system)) and before.origin == source.url:
        say(f"{disk} is there")
        return disk
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix=".fetching-", dir=target.parent) as folder,
        process.interruptible(),
    ):
        try:
            made = _fetch_in(Path(folder), system, source)
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            made.rename(disk)
        except OSError as wrong:
            if not disk_full.is_about(wrong):
                raise
            raise disk_full.error("image:fetch", wrong.strerror) from None
    foreign_disk.choose(system, disk, source.url)
    say(f"{system.title}: {disk}")
    return disk


def _fetch_in(folder: Path, system: System, source: Source) -> Path:
    keyring = folder / "keyring.gpg"
    keyring.write_bytes(_binary_keys(_key(source, folder)))
    packed = folder / _name(source.url)
    signature = _download(source.signature, folder / "signature")
    if source.checksums is None:
        _download(source.url, packed, system.title)
        _verify(keyring, source, signature, packed)
    else:
        signed = source.checksums == source.signature
        listed = signature if signed else _download(source.checksums, folder / "checksums")
        text = _verify(keyring, source, signature, None if signed else listed)
        _compare(
            _download(source.url, packed, system.title), checksum(text or listed.read_text(), packed.name)
        )
    unpack = UNPACK.get(packed.suffix)
    if unpack is None:
        return packed
    plain = folder / _unpacked(packed.name)
    with (
        step("disk-unpack", f"unpacking {packed.name}", 30),
        unpack(packed) as read,
        plain.open("wb") as write,
    ):
        try:
            shutil.copyfileobj(read, write, CHUNK)
        except (EOFError, lzma.LZMAError, ValueError) as wrong:
            raise _wrong(packed.name, "must be whole", wrong) from wrong
    packed.unlink()
    return plain


def checksum(text: str, name: str) -> str:
    """The digest of a file in a publisher's list, as sha256sum(1) or BSD's write it; the longest that is known.

    Raises UserError where none stands there.
    """
    found = re.findall(rf"^([0-9a-f]{{64,128}}) [ *]{re.escape(name)}$", text, re.MULTILINE)
    found += re.findall(rf"^SHA\d+ \({re.escape(name)}\) = ([0-9a-f]{{64,128}})$", text, re.MULTILINE)
    known = [digest for digest in found if len(digest) in HASHES]
    if not known:
        raise _wrong(name, "must stand in the publisher's list of checksums", "it does not")
    return str(max(known, key=len))


def _compare(path: Path, wanted: str) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, HASHES[len(wanted)]).hexdigest()
    if found != wanted:
        raise _wrong(
            path.name,
            f"must have the {HASHES[len(wanted)].upper()} that its publisher signed, {wanted}",
            found,
        )


def _verify(keyring: Path, source: Source, signature: Path, data: Path | None) -> str:
    """Have gpgv say that the pinned key signed it; the signed text where the signature holds it (data: None)."""
    words = [str(signature), *([str(data)] if data else [])]
    output = ["--output", "-"] if data is None else []
    done = subprocess.run(
        ["gpgv", "--status-fd", "2", "--keyring", str(keyring), *output, *words],
        text=True, capture_output=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    # The last word is the primary key's fingerprint, the first that of the subkey that signed.
    valid = [line.split() for line in done.stderr.splitlines() if " VALIDSIG " in line]
    if done.returncode or not any(source.fingerprint in (words[2], words[-1]) for words in valid):
        raise _wrong(
            _name(source.signature),
            f"must be signed with the key {source.fingerprint} ({source.cited})",
            next(
                (line for line in done.stderr.splitlines() if not line.startswith("[GNUPG:]")), "no signature"
            ),
        )
    return done.stdout


def _key(source: Source, folder: Path) -> Path:
    if not source.key.startswith("/"):
        return _download(source.key, folder / "key")
    if not Path(source.key).exists():
        package = f"{Path(source.key).name.split('-')[0]}-keyring"
        raise UserError(
            "image:fetch",
            f"needs the publisher's key: {source.key}",
            fix=f"Install the package that has it: `sudo apt-get install {package}`",
        )
    return Path(source.key)


def _binary_keys(path: Path) -> bytes:
    """Keys as gpgv takes them, out of a file that may have them as text (RFC 9580, ASCII armor)."""
    raw = path.read_bytes()
    blocks = re.findall(rb"-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n(.*?)\r?\n-----END", raw, re.DOTALL)
    if not blocks:
        return raw
    # Headers end with an empty line; a line that begins with = is a checksum.
    bodies = (re.split(rb"\r?\n\r?\n", block, maxsplit=1)[-1] for block in blocks)
    return b"".join(base64.b64decode(re.sub(rb"^=.*$", b"", body, flags=re.MULTILINE)) for body in bodies)


def _download(url: str, to: Path, shown: str | None = None) -> Path:
    """Download a file, with percents where `shown` says what it is. Raises UserError."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer, to.open("wb") as file:
            size, told, got = int(answer.headers.get("Content-Length") or 0), 0, 0
            if shown:
                say(f"{shown}: {url}" + (f", {size / 1e6:.0f} MB" if size else ""))
            while part := answer.read(CHUNK):
                got += file.write(part)
                if shown and size and got * 10 // size > told:
                    told = got * 10 // size
                    say(f"  {100 * got // size} % of {size / 1e6:.0f} MB")
            if size and got != size:
                raise _wrong(_name(url), f"must be {size} bytes, as the server said", f"{got} bytes")
    except (OSError, ValueError) as wrong:
        if isinstance(wrong, OSError) and disk_full.is_about(wrong):
            raise
        raise UserError(
            "image:fetch",
            f"must reach {url}",
            seen=wrong,
            fix="Check the network; or download it elsewhere, verify it, and name it in IMAGE=",
        ) from wrong
    return to


def _wrong(name: str, rule: str, seen: object) -> UserError:
    return UserError(
        f"image:fetch, {name}",
        rule,
        seen=seen,
        fix="Nothing was kept; type the command again, it may be the network's fault",
    )


def _name(url: str) -> str:
    return url.rpartition("/")[2]


def _unpacked(name: str) -> str:
    return name.removesuffix(Path(name).suffix) if Path(name).suffix in UNPACK else name
