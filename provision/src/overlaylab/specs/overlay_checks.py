"""Whether what a role says about itself in meta/overlay.yml names things that there are. Raises UserError."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from overlaylab.core.documents import Document, unknown
from overlaylab.core.documents_limits import Field
from overlaylab.machine import features as host_features


def check_features(document: Document) -> None:
    """Whether each feature is one that can be tried on a host."""
    places: list[tuple[Field, ...]] = [("needs", "features")]
    places += [
        ("modes", key, "features") for key, mode in document.data["modes"].items() if "features" in mode
    ]
    for place in places:
        node: Any = document.data
        for part in place:
            node = node[part]
        for index, feature in enumerate(node):
            if host_features.command(feature) is None:
                rule = "must be something that can be tried on a kernel"
                wrong = unknown("", rule, feature, host_features.KNOWN)
                raise document.error(*place, index, rule=wrong.rule, seen=wrong.seen, fix=wrong.fix)


def check_names(document: Document, key: str, rule: str, known: Collection[str]) -> None:
    for index, name in enumerate(document.data.get(key, ())):
        if name not in known:
            wrong = unknown("", rule, name, known)
            raise document.error(key, index, rule=wrong.rule, seen=wrong.seen, fix=wrong.fix)


def check_takes(document: Document, role: Callable[[str], Path]) -> None:
    """Whether what a role takes of others is there: else a node would learn of it."""
    data = document.data
    places: list[tuple[Field, ...]] = [("takes",)] if "takes" in data else []
    places += [("modes", key, "takes") for key, mode in data["modes"].items() if "takes" in mode]
    for place in places:
        taken: Any = data
        for part in place:
            taken = taken[part]
        for name, parts in taken.items():
            below = data.get("builds_on", ())
            if name not in below:
                wrong = unknown("", "must be an overlay of builds_on", name, below)
                raise document.error(*place, name, rule=wrong.rule, seen=wrong.seen, fix=wrong.fix)
            for kind in ("files", "templates"):
                known = files_below(role(name) / kind)
                for index, file in enumerate(parts.get(kind, ())):
                    if file not in known:
                        wrong = unknown("", f"must be one of {name}'s {kind}", file, known)
                        raise document.error(
                            *place, name, kind, index, rule=wrong.rule, seen=wrong.seen, fix=wrong.fix
                        )


def files_below(folder: Path) -> list[str]:
    """Every file that decides something, sorted, as it is named from the folder."""
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and not _ignored(path)
    )


def _ignored(path: Path) -> bool:
    """What an editor or an interpreter leaves behind is no input, nor is the page for people."""
    left = path.suffix == ".pyc" or path.name.endswith(("~", ".swp"))
    return left or "__pycache__" in path.parts or path.name == "README.md"
