"""Drills (provision/drills): a ticket, the fault behind it, and how a repair is told from a wrong one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from overlaylab.core.documents import Document, load_document, unknown
from overlaylab.core.model import Variant
from overlaylab.core.paths import DRILLS
from overlaylab.specs import drill_checks, overlays
from overlaylab.specs.drill_checks import GUARDS, PROOF
from overlaylab.specs.overlay_checks import files_below

# Where drills are sought, the first folder first.
FOLDERS = [DRILLS]
SCHEMA = DRILLS / "schema.json"
CLIENT, SERVER = "client", "server"


@dataclass(frozen=True)
class Probe:
    """A threshold on a measure, as a ratio to the healthy baseline; one of at_least and at_most is None."""

    measure: str
    at_least: float | None = None
    at_most: float | None = None
    # The node it is measured on: CLIENT or SERVER.
    role: str = CLIENT
    # The ticket speaks of it: the fault makes it fail.
    symptom: bool = False


@dataclass(frozen=True)
class Hint:
    """cost: points. condition: sh that succeeds on the node of that role while the hint applies."""

    cost: int
    role: str
    condition: str
    text: str


@dataclass(frozen=True)
class Solution:
    """does: in one sentence; script: sh."""

    name: str
    does: str
    script: str


@dataclass(frozen=True)
class Wrong:
    """A repair that must be refused. refused_by: a guard, or the measure of a probe."""

    name: str
    does: str
    refused_by: str
    script: str


@dataclass(frozen=True)
class Needs:
    """What the fault needs beyond the overlay. profile: a tier that has to be in force; None: any."""

    features: tuple[str, ...] = ()
    own_kernel: bool = False
    profile: str | None = None


@dataclass(frozen=True)
class Drill:
    """One drill. digest: SHA-256 in hex over all of its files; what was proven of it is not among them."""

    name: str
    title: str
    level: int
    # What a trained engineer needs.
    minutes: int
    courses: tuple[str, ...]
    # Shown after an attempt alone, like debrief and references.
    topics: tuple[str, ...]
    # {overlay: keys of its modes}; the first one is the default.
    overlays: Mapping[str, tuple[str, ...]]
    needs: Needs
    ticket: str
    may_touch: str
    # Of a window.
    cycles: int
    # s after the injection within which the symptom has to show.
    shows_within: float
    probes: tuple[Probe, ...]
    # Those of GUARDS that it names.
    guards: tuple[str, ...]
    # {name: sh} of its own.
    own_guards: Mapping[str, str]
    hints: tuple[Hint, ...]
    inject: str
    solutions: tuple[Solution, ...]
    wrong: tuple[Wrong, ...]
    debrief: str
    references: tuple[str, ...]
    digest: str
    folder: Path
    source: Document = field(repr=False, compare=False)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Those it applies to, the default first."""
        return tuple(overlays.load(name).variant(key) for name, keys in self.overlays.items() for key in keys)


def names() -> tuple[str, ...]:
    """Every drill that has a folder, sorted."""
    return tuple(sorted({path.parent.name for folder in FOLDERS for path in folder.glob("*/drill.yml")}))


def load(name: str) -> Drill:
    """The drill of a folder. Raises UserError."""
    if name not in names():
        raise unknown("DRILL", "must be a drill in provision/drills/", name, names())
    return read_drill(next(folder / name for folder in FOLDERS if (folder / name).is_dir()))


def read_drill(folder: Path, document: Path | None = None) -> Drill:
    """A drill from any folder, schema and cross-checks applied. document: instead of its own. Raises UserError."""
    source = load_document(document or folder / "drill.yml", SCHEMA)
    drill_checks.check(source, folder)
    data = source.data

    def script(path: str) -> str:
        return (folder / path).read_text(encoding="utf-8")

    needs = data.get("needs", {})
    return Drill(
        name=folder.name,
        title=data["title"],
        level=data["level"],
        minutes=data["minutes"],
        courses=tuple(data["courses"]),
        topics=tuple(data["topics"]),
        overlays={overlay: tuple(keys) for overlay, keys in data["overlays"].items()},
        needs=Needs(
            tuple(needs.get("features", ())), needs.get("own_kernel", False), needs.get("profile")
        ),
        ticket=data["ticket"],
        may_touch=data["may_touch"],
        cycles=data["cycles"],
        shows_within=float(data["shows_within"]),
        probes=tuple(
            Probe(
                one["measure"], one.get("at_least"), one.get("at_most"), one.get("from", CLIENT),
                one.get("symptom", False),
            )
            for one in data["probes"]
        ),
        guards=tuple(name for name in data["guards"] if name in GUARDS),
        own_guards={name: script(f"guards/{name}.sh") for name in drill_checks.own_guards(source)},
        hints=tuple(Hint(one["cost"], one["on"], one["while"], one["text"]) for one in data["hints"]),
        inject=script("inject.sh"),
        solutions=tuple(
            Solution(name, does, script(f"solutions/{name}.sh")) for name, does in data["solutions"].items()
        ),
        wrong=tuple(
            Wrong(name, one["does"], one["refused_by"], script(f"wrong/{name}.sh"))
            for name, one in data["wrong"].items()
        ),
        debrief=data["debrief"],
        references=tuple(data["references"]),
        digest=digest(folder),
        folder=folder,
        source=source,
    )  # fmt: skip


def digest(folder: Path) -> str:
    """SHA-256 in hex over every file that decides what the drill does."""
    found = hashlib.sha256()
    for name in files_below(folder):
        if name != PROOF:
            content = hashlib.sha256((folder / name).read_bytes()).hexdigest()
            found.update(f"{name} {content}\n".encode())
    return found.hexdigest()
