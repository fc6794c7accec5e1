"""Files of other programs as finished runs of origin ``imported``: FORMATS.

A file becomes one run of one block. What the file does not say is not made up: the overlay is what the caller names,
else ``unknown``; how the CPUs ran, the caller has to say. Readers are pure (``imported_<program>``)
and raise ParseError.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.errors import UserError
from overlaylab.core.model import HOST, JSON, PlannedTrial, RunRecord, TrialResult, Variant
from overlaylab.store import (
    imported_flent,
    imported_iperf3,
    imported_k8s_netperf,
    imported_knb,
    imported_other,
    imported_pkb,
)
from overlaylab.store.imported_base import Measured, words
from overlaylab.store.store import Store
from overlaylab.tools.parsers import ParseError, checked, no_json

# Bytes of one file, unpacked: a gzip file of a few kB may unpack to anything.
LARGEST = 256 * 1024 * 1024
FORMATS = "an iperf3 client (JSON), flent, knb (JSON), k8s-netperf (JSON) or PerfKit Benchmarker (JSON lines)"
CLIENT, SERVER = "client", "server"
UNKNOWN = "unknown"
NAME = "[a-z0-9][a-z0-9-]{0,40}"


@dataclass(frozen=True)
class File:
    """A file that was read: what it holds, and how to know it again. sha256: of its bytes, in hex."""

    path: Path
    sha256: str
    measured: Measured


@dataclass(frozen=True)
class About:
    """What the caller says of all the files, because they do not."""

    variant: Variant
    accelerator: str
    machine: str | None = None


def variant(overlay: str | None, encrypted: bool) -> Variant:
    """What OVERLAY= names: ``host``, ``weave/sleeve``; ``unknown`` for None. Raises UserError."""
    name, _, mode = (overlay or UNKNOWN).partition("/")
    if not re.fullmatch(NAME, name) or (mode and not re.fullmatch(NAME, mode)) or (name == HOST and mode):
        raise UserError(
            "OVERLAY",
            "must be host, or an overlay and its mode as in weave/sleeve",
            seen=words(overlay),
            fix="./task lab:all DRY_RUN=1 MODES=all prints all names.",
        )
    return Variant(name, mode or None, encrypted)


def accelerator(name: str | None) -> str:
    """What ACCELERATOR= names. UserError for none: no file says it, and every result carries it."""
    if name not in ACCELERATORS:
        raise UserError(
            "ACCELERATOR",
            "must say how the CPUs of the hosts that were measured ran, because no file says it",
            seen=words(name),
            fix="ACCELERATOR=bare is the hosts' own CPUs, kvm VMs that use them, tcg emulated ones, shared-kernel"
            " containers on one machine.",
        )
    return name


def read(path: Path) -> File:
    """Raises UserError, naming the file, for one that is neither, broken, or too large."""
    try:
        packed = _bytes(path)
        content = _unpacked(packed)
        measured = _measured(content)
    except OSError as error:
        raise _refused(path, "must be a file that can be read", error.strerror or str(error)) from None
    except ParseError as error:
        raise _refused(path, f"must be a whole file of {FORMATS}", error) from None
    return File(path, hashlib.sha256(packed).hexdigest(), measured)


def store_all(store: Store, files: Sequence[File], about: About) -> list[str]:
    """One run for each file, all or none of them; their ids. UserError for a file that is in the database."""
    seen: dict[str, Path] = {}
    for file in files:
        known = _known(store, file.sha256)
        if known or file.sha256 in seen:
            raise UserError(
                f"FILE {file.path.name}",
                "must not be imported twice",
                seen=f"run {known}" if known else f"the same as {seen[file.sha256].name}",
                fix="Leave it out.",
            )
        seen[file.sha256] = file.path
    return store.add_finished_runs([_run(file, about) for file in files])


def _bytes(path: Path) -> bytes:
    if not path.is_file():
        raise OSError(None, "no such file" if not path.exists() else "no regular file")
    with path.open("rb") as stream:
        packed = stream.read(LARGEST + 1)
    if len(packed) > LARGEST:
        raise ParseError(f"it is larger than {LARGEST >> 20} MiB")
    return packed


def _unpacked(packed: bytes) -> bytes:
    if not packed.startswith(b"\x1f\x8b"):
        return packed
    unpacked = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        content = unpacked.decompress(packed, LARGEST + 1)
    except (zlib.error, gzip.BadGzipFile) as error:
        raise ParseError(f"its gzip data are damaged: {error}") from None
    if len(content) > LARGEST:
        raise ParseError(f"unpacked it is larger than {LARGEST >> 20} MiB")
    if not unpacked.eof:
        raise ParseError("its gzip data are cut short")
    return content


def _measured(content: bytes) -> Measured:
    text = _text(content)
    report = _parsed(text)
    every = report if isinstance(report, list) else [report]
    rows: list[JSON] = [row for row in every if isinstance(row, dict)]
    if not rows or len(rows) < len(every):
        raise ParseError("its JSON is no object")
    try:
        json.dumps(report, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ParseError("it has text that is no Unicode") from None
    for reader in (imported_pkb, imported_k8s_netperf):
        if all(row.keys() >= reader.KEYS for row in rows):
            return _checked(reader.read(rows))
    for reader in (imported_flent, imported_iperf3, imported_knb):
        if len(rows) == 1 and report is rows[0] and rows[0].keys() >= reader.KEYS:
            return _checked(reader.read(rows[0]))
    keys = ", ".join(repr(key[:40]) for key in list(rows[0])[:5])
    raise ParseError(f"its JSON has the keys {keys or 'of no report'}")


def _parsed(text: str) -> object:
    """One JSON value, or a list of those that stand one a line. Raises ParseError."""
    try:
        return _loads(text)
    except (ValueError, RecursionError) as error:
        if len(lines := [line for line in text.split("\n") if line.strip()]) > 1:
            try:
                return [_loads(line) for line in lines]
            except (ValueError, RecursionError):
                pass
        if other := imported_other.of_text(text):
            raise ParseError(f"it is {other}") from None
        raise ParseError(f"it {no_json(text, error)}") from None


def _loads(text: str) -> object:
    return json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)


def _text(content: bytes) -> str:
    """UTF-8, with a byte order mark or without: Windows' shells write one."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ParseError("it is text in UTF-16, not in UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ParseError(
            f"its line {line} has the byte 0x{content[error.start]:02x}, which is no UTF-8"
        ) from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object in which no key stands for two values: JSON's readers keep one, and not all the same one.

    iperf3 writes some keys twice with one value.
    """
    found: dict[str, object] = {}
    for key, value in pairs:
        if found.setdefault(key, value) != value:
            raise ParseError(
                f"its JSON has the key {key[:40]!r} twice in one object, as iperf3 3.7 to 3.10 write of a test in both "
                "directions at once"
            )
    return found


def _checked(measured: Measured) -> Measured:
    """What a table would refuse is the file's fault, and said so before anything is stored."""
    for trial in measured.trials:
        checked(trial.benchmark, list(trial.samples))
        if trial.duration is not None and not 0 <= trial.duration < math.inf:
            raise ParseError(f"{trial.benchmark} has a duration that cannot be")
    return measured


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _refused(path: Path, rule: str, seen: object) -> UserError:
    return UserError(f"FILE {path}", rule, seen=seen, fix="Nothing was imported; name other files.")


def _known(store: Store, sha256: str) -> str | None:
    """The run that the file was imported as; None where it was not, or was withdrawn whole."""
    row = store.db.execute(
        "SELECT run_id FROM run WHERE origin = 'imported' AND trials_ok > 0"
        " AND json_extract(arguments, '$.sha256') = ?",
        (sha256,),
    ).fetchone()
    return str(row["run_id"]) if row else None


def _run(file: File, about: About) -> tuple[RunRecord, list[tuple[PlannedTrial, TrialResult]]]:
    measured = file.measured
    arguments: Mapping[str, object] = {"file": file.path.name, "sha256": file.sha256, **measured.about}
    record = RunRecord(
        cluster="imported",
        provider="imported",
        accelerator=about.accelerator,
        machine=words(about.machine) or measured.machine or UNKNOWN,
        image=None,
        profile=UNKNOWN,
        profile_digest="",
        stands_for=None,
        suite="imported",
        suite_digest=file.sha256,
        scale=1.0,
        seed=0,
        blocks=1,
        variants=(about.variant,),
        role_digests={},
        zones={},
        nodes={},
        arguments=arguments,
        origin="imported",
    )
    trials = [
        (
            PlannedTrial(
                block=1, position=position, variant=about.variant, benchmark=one.benchmark, tool=measured.tool,
                parameters=one.parameters, repetition=1, client_node=CLIENT, server_node=SERVER,
                direction=one.direction,
            ),
            TrialResult(
                status="ok", reason=None, started_at=measured.started_at, duration=one.duration, argv=(),
                exit_code=None, stdout=one.raw, stderr="", tool_version=measured.tool_version,
                samples=one.samples,
            ),
        )
        for position, one in enumerate(measured.trials)
    ]  # fmt: skip
    return record, trials
