"""Whether a drill says what it has, names what there is, and gives nothing away. Raises UserError."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from overlaylab.core import documents
from overlaylab.core.documents import Document, unknown
from overlaylab.core.documents_limits import Field
from overlaylab.core.measures import MEASURES
from overlaylab.core.metrics import HIGHER
from overlaylab.core.paths import PROFILES
from overlaylab.machine import features as host_features
from overlaylab.specs import overlays
from overlaylab.specs.overlay_checks import files_below

# Those that every drill can name; its own are files in guards/.
GUARDS = ("overlay", "policy", "firewall", "daemons", "restart")
# Written by drill:prove; no part of the drill, but of what is known about it.
PROOF = "proof.json"
# In a debrief: ``{broken.goodput}``, ``{ratio.server.connect}``; the client's where no role is named.
PLACEHOLDER = re.compile(r"\{(\w+)\.(?:(client|server)\.)?(\w+)\}")
KINDS = ("healthy", "broken", "ratio")

# Words of topics that a ticket may have: they give no cause away.
_EVERYDAY = frozenset(
    re.findall(
        r"\w+",
        "a an and at between client connection connections daemon file for from host in is name names network node nodes "
        "of on path resolution server service set size table that the time to two with",
    )
)


def check(document: Document, folder: Path) -> None:
    _check_overlays(document)
    _check_needs(document)
    _check_probes(document)
    _check_files(document, folder)
    _check_refusals(document)
    _check_debrief(document)
    _check_spoilers(document, folder.name)


def _unknown(document: Document, at: tuple[Field, ...], rule: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        wrong = unknown("", rule, name, known)
        raise document.error(*at, rule=wrong.rule, seen=wrong.seen, fix=wrong.fix)


def _check_overlays(document: Document) -> None:
    for name, keys in document.data["overlays"].items():
        _unknown(document, ("overlays", name), "must be an overlay that has a role", name, overlays.names())
        modes = overlays.load(name).modes
        for index, key in enumerate(keys):
            _unknown(document, ("overlays", name, index), f"must be a mode of {name}", key, modes)


def _check_needs(document: Document) -> None:
    needs = document.data.get("needs", {})
    for index, feature in enumerate(needs.get("features", ())):
        if host_features.command(feature) is None:
            rule = "must be something that can be tried on a kernel"
            _unknown(document, ("needs", "features", index), rule, feature, host_features.KNOWN)
    if "profile" in needs:
        known = documents.names_in(PROFILES)
        _unknown(document, ("needs", "profile"), "must be a profile in profiles/", needs["profile"], known)


def _check_probes(document: Document) -> None:
    probes: list[dict[str, Any]] = document.data["probes"]
    seen: set[tuple[str, str]] = set()
    for index, probe in enumerate(probes):
        measure = MEASURES[probe["measure"]]
        right, wrong = ("at_least", "at_most") if measure.better == HIGHER else ("at_most", "at_least")
        if wrong in probe:
            raise document.error(
                "probes",
                index,
                wrong,
                rule=f"does not apply to {measure.name}, of which {measure.better} is better",
                seen=f"{probe[wrong]}",
                fix=f"Write {right}.",
            )
        if right not in probe:
            raise document.error(
                *("probes", index, right),
                rule="is missing",
                fix="Add it: what the service must reach, over the healthy baseline.",
            )
        one = (measure.name, probe.get("from", "client"))
        if one in seen:
            raise document.error(
                "probes",
                index,
                rule="must be the only one of its measure and node",
                seen=f"{measure.name} from the {one[1]} a second time",
                fix="Remove one of the two.",
            )
        seen.add(one)
    if not any(probe.get("symptom") for probe in probes):
        raise document.error(
            "probes",
            rule="must have one that the ticket speaks of",
            seen="no symptom: true",
            fix="Mark those that the fault makes fail.",
        )


def own_guards(document: Document) -> tuple[str, ...]:
    return tuple(name for name in document.data["guards"] if name not in GUARDS)


def _check_files(document: Document, folder: Path) -> None:
    data = document.data
    named: dict[str, tuple[Field, ...]] = {"inject.sh": ()}
    named |= {f"guards/{name}.sh": ("guards", data["guards"].index(name)) for name in own_guards(document)}
    named |= {f"{kind}/{name}.sh": (kind, name) for kind in ("solutions", "wrong") for name in data[kind]}
    found = files_below(folder)
    for file, at in named.items():
        if file not in found:
            raise document.error(
                *at,
                rule="must have its script",
                seen=f"no {file} beside it",
                fix="Write it (POSIX sh), or correct the name.",
            )
    rest = sorted({*found} - {*named, "drill.yml", PROOF})
    if rest:
        kind = rest[0].partition("/")[0]
        at = (kind,) if kind in ("guards", "solutions", "wrong") else ()
        raise document.error(
            *at,
            rule="must name every file of the drill's folder",
            seen=f"{rest[0]}, which it does not",
            fix="Name it here, or remove the file.",
        )


def _check_refusals(document: Document) -> None:
    data = document.data
    known = [*data["guards"], *(probe["measure"] for probe in data["probes"])]
    for name, wrong in data["wrong"].items():
        at = ("wrong", name, "refused_by")
        rule = "must be a guard of this drill, or the measure of one of its probes"
        _unknown(document, at, rule, wrong["refused_by"], known)


def _check_debrief(document: Document) -> None:
    for found in PLACEHOLDER.finditer(document.data["debrief"]):
        kind, _, measure = found.groups()
        if kind not in KINDS or measure not in MEASURES:
            raise document.error(
                "debrief",
                rule=f"must take its values by {', '.join(KINDS)}, a dot and a measure",
                seen=found[0],
                fix="Write {broken.goodput}, for example, or {broken.server.goodput}.",
            )


def _words(text: str) -> list[str]:
    return re.findall(r"[\w.]*\w", text.lower())


def _check_spoilers(document: Document, name: str) -> None:
    topics = {word: topic for topic in document.data["topics"] for word in _words(topic)}
    for field in ("title", "ticket"):
        for word in _words(document.data[field]):
            if word in topics and word not in _EVERYDAY:
                raise document.error(
                    field,
                    rule="must not give the cause away",
                    seen=f'"{word}", a word of the topic "{topics[word]}"',
                    fix="Say what was seen, in the words of one who does not know why.",
                )
    told = [word for word in name.split("-") if word in topics and word not in _EVERYDAY]
    if told:
        raise document.error(
            "topics",
            rule="must have no word of the drill's name, which is its symptom",
            seen=f'"{told[0]}" in {name}',
            fix="Name the folder for what is seen.",
        )
