"""What a document that people write may be at most: a file of text, its size, its depth, its numbers and characters."""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from overlaylab.core.errors import UserError
from overlaylab.core.paths import ROOT

# A key of a mapping or an index of a list.
Field = str | int

# The largest file here has 6000; ruamel reads so many of the worst kind within a second.
BYTES = 200_000
# So many fields and items, each alias counted with all that it stands for.
VALUES = 2500
DEPTH = 40
# No count or quantity of a network is larger, and a float holds every whole number up to it.
NUMBER = 10**15

_COMPARE = "Compare it with a file of the same kind in the same folder."


def shown(path: Path) -> str:
    """A path as a user sees it: relative to the checkout where it lies in it."""
    path = path.absolute()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def text(path: Path) -> str:
    """What the file holds. Raises UserError; does not wait for what comes out of a pipe or a device."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UserError(
                    shown(path), "must be a regular file", fix="Name a file, not a folder, pipe or device."
                )
            raw = file.read(BYTES + 1)
        if raw is None:  # such as /proc/kmsg: as if it were regular, and nothing there yet
            raise UserError(shown(path), "must be a file whose text lies there", fix="Name another file.")
        if len(raw) > BYTES:
            raise UserError(shown(path), f"must be at most {BYTES // 1000} kB long", fix=_COMPARE)
        return raw.decode()
    except (OSError, UnicodeDecodeError) as wrong:
        rule = f"must be a readable text file in UTF-8 ({getattr(wrong, 'strerror', None) or wrong})"
        raise UserError(shown(path), rule, fix="Check the name and the file's permissions.") from None


@cache
def constructor() -> type:
    """ruamel's, whose error names the line of a value that Python cannot make: ``2020-13-45``, a mapping of itself."""
    from ruamel.yaml.constructor import ConstructorError, RoundTripConstructor
    from ruamel.yaml.error import YAMLError

    class Marked(RoundTripConstructor):
        def construct_object(self, node: Any, deep: bool = False) -> Any:
            return self.marked(node, super().construct_object, node, deep)

        def construct_mapping(self, node: Any, *arguments: Any, **named: Any) -> Any:
            return self.marked(node, super().construct_mapping, node, *arguments, **named)

        def marked(self, node: Any, make: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
            try:
                return make(*arguments, **named)
            except (YAMLError, RecursionError):
                raise
            except Exception:
                written, kind = node.value, str(node.tag).rpartition(":")[2]
                seen = (
                    f'"{written[:60]}" is no {kind}'
                    if isinstance(written, str)
                    else f"a {kind} that holds itself"
                )
                raise ConstructorError(None, None, seen, node.start_mark) from None

    return Marked


@cache
def scanner() -> type:
    """ruamel's, which stops where it would read for seconds, at deep nesting or too many words, and at tags.

    A tag makes another kind of value than what is written; a directive makes it another YAML, where no is false.
    """
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.scanner import RoundTripScanner, ScannerError

    class Short(RoundTripScanner):
        fetched = 0

        def fetch_more_tokens(self) -> None:
            self.fetched += 1
            if self.fetched > 5 * VALUES:  # a key, its colon, a value, and what holds them
                self.refuse(f"more than {VALUES} values")
            try:
                super().fetch_more_tokens()
            except (YAMLError, RecursionError):
                raise
            except Exception:
                self.refuse("an escape that stands for no character")

        def fetch_tag(self) -> None:
            self.refuse("a tag (!), which no file here needs; a text that begins with ! stands in quotes")

        def fetch_directive(self) -> None:
            self.refuse("a directive (%), which no file here needs")

        def add_indent(self, column: int) -> bool:
            self.check_depth()
            return super().add_indent(column)

        def fetch_flow_collection_start(self, *arguments: Any, **named: Any) -> None:
            self.check_depth()
            super().fetch_flow_collection_start(*arguments, **named)

        def check_depth(self) -> None:
            if len(self.indents) + self.flow_level > DEPTH:
                self.refuse(f"nested more than {DEPTH} levels deep")

        def refuse(self, seen: str) -> None:
            raise ScannerError(None, None, seen, self.reader.get_mark())

    return Short


def too_deep(path: Path) -> UserError:
    """For brackets, or an alias of what it stands in."""
    return UserError(shown(path), f"must be nested at most {DEPTH} levels deep", fix=_COMPARE)


def check_size(path: Path, tree: Any) -> None:
    """Count before anything is expanded: an alias costs a word and may stand for millions. Raises UserError."""
    left, waiting = VALUES, [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        held = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        left -= len(held)
        if left < 0:
            rule = f"must have at most {VALUES} values, with those that its aliases stand for"
            raise UserError(shown(path), rule, fix=_COMPARE)
        if depth > DEPTH:
            raise too_deep(path)
        waiting += [(value, depth + 1) for value in held]


def wrong_values(node: Any, at: tuple[Field, ...] = ()) -> Iterator[tuple[tuple[Field, ...], str, str, str]]:
    """(fields, rule, value seen, fix) of every number and text in plain data that is never meant."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from wrong_values(key, at)
            yield from wrong_values(value, (*at, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from wrong_values(value, (*at, index))
    elif isinstance(node, str):
        if strange := next((each for each in node if _is_unseen(each)), None):
            rule = f"must not hold characters that nobody sees, such as U+{ord(strange):04X}"
            yield at, rule, ascii(node[:60]), "Remove it: it would change what a terminal shows."
    elif isinstance(node, int | float) and not abs(node) < NUMBER:  # nan is not less than anything
        rule = "must be a finite number below 10¹⁵: no number of a network is larger"
        # Python writes no number of more than 4300 digits in decimal.
        seen = hex(node) if isinstance(node, int) and node.bit_length() > 10_000 else str(node)
        yield at, rule, seen[:40], "Write the number that is meant."


def _is_unseen(character: str) -> bool:
    """Control characters but for the end of a line and tabulators; what changes the order of reading, and the like."""
    return character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
