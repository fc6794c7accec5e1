"""Loads the YAML documents that people write: parsed, checked against a JSON Schema, errors with lines."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

from overlaylab.core import documents_limits
from overlaylab.core.documents_limits import Field, shown
from overlaylab.core.errors import UserError
from overlaylab.core.schema_errors import best_error, in_words


@dataclass(frozen=True)
class Document:
    """One document: plain data, and where in the file each field stands.

    data: dict, list, str, int, float, bool, None only.
    digest: SHA-256 of the data, in hex: a comment or another layout changes nothing.
    """

    path: Path
    data: dict[str, Any]
    digest: str
    _lines: dict[tuple[Field, ...], int] = field(default_factory=dict, repr=False, compare=False)

    def where(self, *fields: Field) -> str:
        """``profiles/x.yml:7: latency.within_zone``, relative to the checkout where it lies in it."""
        known = fields
        while known and known not in self._lines:
            known = known[:-1]
        line = self._lines.get(known, 1)
        name = dotted(fields)
        return f"{shown(self.path)}:{line}" + (f": {name}" if name else "")

    def error(self, *fields: Field, rule: str, seen: object = None, fix: str) -> UserError:
        """A UserError that points to one field of this document."""
        return UserError(self.where(*fields), rule, seen=seen, fix=fix)


def load_document(path: Path, schema: Path) -> Document:
    """Read ``path`` and check it against ``schema``. Raises UserError that names line and field."""
    document = parse_document(path)
    validate(document, schema)
    return document


def parse_document(path: Path) -> Document:
    """Read one YAML 1.2 mapping; duplicate keys, wrong syntax and an unreadable file raise UserError."""
    # Imported late: start-up counts, and most commands read no document.
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    text = documents_limits.text(path)
    yaml = YAML(typ="rt", pure=True)
    yaml.Scanner, yaml.Constructor = documents_limits.scanner(), documents_limits.constructor()
    try:
        tree = yaml.load(StringIO(text))
    except RecursionError:
        raise documents_limits.too_deep(path) from None
    except DuplicateKeyError as wrong:
        key = str(wrong.problem).split('"')[1]
        raise UserError(
            f"{shown(path)}:{_line(wrong)}: {key}",
            "a key may stand only once in a mapping",
            seen=f'"{key}" a second time',
            fix="Remove one of the two.",
        ) from None
    except MarkedYAMLError as wrong:
        raise UserError(
            f"{shown(path)}:{_line(wrong)}",
            "must be valid YAML",
            seen=" ".join(str(wrong.problem or wrong.context).split()),
            fix="Look at this line and the one above it: indentation, quotes and colons.",
        ) from None
    except YAMLError as wrong:
        raise UserError(
            shown(path), "must be valid YAML", seen=" ".join(str(wrong).split()), fix="Correct the file."
        ) from None
    except Exception:  # whatever ruamel does not foresee
        raise UserError(f"{shown(path)}:1", "must be valid YAML", fix=_SIMPLER) from None
    documents_limits.check_size(path, tree)
    if not isinstance(tree, dict):
        raise UserError(
            f"{shown(path)}:1",
            "must be a mapping of fields",
            seen=f"a {'list' if isinstance(tree, list) else 'value'}" if tree is not None else "nothing",
            fix="Compare it with a file of the same kind in the same folder.",
        )
    return _document(path, tree)


_SIMPLER = "Write it more simply, as in a file of the same kind in the same folder."


def _document(path: Path, tree: Any) -> Document:
    lines: dict[tuple[Field, ...], int] = {}
    try:
        _collect_lines(tree, (), lines)
        data = _plain(tree)
    except (
        Exception
    ):  # what ruamel makes of odd keys and merges is not always a mapping that can be gone through
        raise UserError(f"{shown(path)}:1", "must have plain keys and values", fix=_SIMPLER) from None
    document = Document(path, data, "", lines)
    for fields, rule, seen, fix in documents_limits.wrong_values(data):
        raise document.error(*fields, rule=rule, seen=seen, fix=fix)
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"), default=str)
    return replace(document, digest=hashlib.sha256(canonical.encode()).hexdigest())


def validate(document: Document, schema: Path) -> None:
    """Check a document against a JSON Schema file; the most helpful violation becomes a UserError."""
    error = best_error(document.data, _schema(schema))
    if error is not None:
        violation = in_words(error)
        raise document.error(*violation.fields, rule=violation.rule, seen=violation.seen, fix=violation.fix)


@cache
def _schema(path: Path) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def named(kind: str, name: str, folder: Path, argument: str) -> Path:
    """The file ``folder/name.yml``; UserError with the known names and the closest one if there is none.

    kind: ``profile``; argument: how the user gave it, ``PROFILE``.
    """
    known = names_in(folder)
    if name not in known:
        raise unknown(argument, f"must be a {kind} in {shown(folder)}/", name, known)
    return folder / f"{name}.yml"


def names_in(folder: Path) -> tuple[str, ...]:
    """The names of the documents in a folder, sorted."""
    return tuple(sorted(p.stem for p in folder.glob("*.yml")))


def unknown(where: str, rule: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a name that does not exist: lists what does, closest match first."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    listed = f"Known: {', '.join(known)}." if known else "There is none yet."
    return UserError(
        where, rule, seen=json.dumps(name), fix=(f'Did you mean "{close[0]}"? ' if close else "") + listed
    )


def dotted(fields: Iterable[Field]) -> str:
    """``("nodes", 0, "zone")`` as ``nodes[0].zone``."""
    text = ""
    for part in fields:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else str(part))
    return text


def _line(wrong: Any) -> int:
    mark = wrong.problem_mark or wrong.context_mark
    return (mark.line if mark else 0) + 1


def _collect_lines(node: Any, at: tuple[Field, ...], lines: dict[tuple[Field, ...], int]) -> None:
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    if isinstance(node, CommentedMap):
        for key, value in node.items():
            # A key that came through a merge (<<) has no position of its own: its parent's is used.
            if key in (node.lc.data or {}):
                lines[(*at, key)] = node.lc.key(key)[0] + 1
            _collect_lines(value, (*at, key), lines)
    elif isinstance(node, CommentedSeq):
        for index, value in enumerate(node):
            if index in (node.lc.data or {}):
                lines[(*at, index)] = node.lc.item(index)[0] + 1
            _collect_lines(value, (*at, index), lines)


def _plain(node: Any) -> Any:
    """ruamel's round-trip types as plain ones; what JSON does not know (dates) as its text."""
    if isinstance(node, dict):
        return {str(key): _plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_plain(value) for value in node]
    if node is None or isinstance(node, bool):
        return node
    for kind in (int, float):
        if isinstance(node, kind):
            return kind(node)
    return str(node)
