"""Turns a JSON Schema violation into a rule in words, the value seen and a next step."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import ValidationError

_TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


@dataclass(frozen=True)
class Violation:
    """fields: where in the document; the rest as in UserError."""

    fields: tuple[str | int, ...]
    rule: str
    seen: str | None
    fix: str


def best_error(data: Any, schema: Mapping[str, Any]) -> ValidationError | None:
    """The violation that helps most, or None: the first in the order of the document.

    A wrong key comes before a missing one: a misspelt key causes both.
    """
    # Imported late: jsonschema takes longer to import than most commands to run.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    errors = list(Draft202012Validator(_to_the_end(schema)).iter_errors(data))
    if not errors:
        return None
    order = {"additionalProperties": 0, "required": 2}
    errors.sort(key=lambda e: (order.get(e.validator, 1), _position(data, e.absolute_path)))
    first: ValidationError | None = best_match(errors[:1])
    return first


def _to_the_end(schema: Any) -> Any:
    """The schema with patterns in Python's words: a ``$`` of JSON Schema (ECMA-262) admits no last line feed."""
    if isinstance(schema, list):
        return [_to_the_end(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    ended = {key: _to_the_end(value) for key, value in schema.items()}
    if isinstance(pattern := ended.get("pattern"), str):
        ended["pattern"] = pattern.replace("$", r"\Z")
    if isinstance(keys := ended.get("patternProperties"), Mapping):
        ended["patternProperties"] = {key.replace("$", r"\Z"): value for key, value in keys.items()}
    return ended


def _position(data: Any, path: Any) -> list[int]:
    """Where a path stands in the document, as indexes, so that errors sort from top to bottom."""
    indexes = []
    for part in path:
        indexes.append(part if isinstance(part, int) else list(data).index(part))
        data = data[part]
    return indexes


def in_words(error: ValidationError) -> Violation:
    """Rule, value and next step for one violation. A schema's ``description`` explains a pattern."""
    fields = tuple(error.absolute_path)
    schema: Mapping[str, Any] = error.schema if isinstance(error.schema, Mapping) else {}
    about = schema.get("description")
    value: Any = error.instance
    wanted: Any = error.validator_value
    fix = f"Expected: {about}." if about else "Correct the value."
    match error.validator:
        case "additionalProperties":
            known = sorted(schema.get("properties", {}))
            patterns = schema.get("patternProperties", {})
            key = next(k for k in value if k not in known and not any(re.search(p, k) for p in patterns))
            if "x-keys" in schema:  # our own annotation: what the keys have to be, in words
                return Violation((*fields, key), f"must be {schema['x-keys']}", show(key), "Rename it.")
            close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            fix = (f'Did you mean "{close[0]}"? ' if close else "") + f"Known keys: {', '.join(known)}."
            return Violation((*fields, key), "is no key of this mapping", None, fix)
        case "required":
            key = next(k for k in wanted if k not in value)
            missing = schema.get("properties", {}).get(key, {})
            hint = missing.get("description") if isinstance(missing, Mapping) else None
            return Violation((*fields, key), "is missing", None, f"Add it: {hint}." if hint else "Add it.")
        case "pattern" if about:
            return Violation(fields, f"must be {about}", show(value), "Write it in this form.")
        case "type":
            kinds = [wanted] if isinstance(wanted, str) else wanted
            return Violation(fields, f"must be {' or '.join(_TYPES[k] for k in kinds)}", show(value), fix)
        case "enum":
            choices = ", ".join(show(v) for v in wanted)
            close = difflib.get_close_matches(str(value), [str(v) for v in wanted], n=1, cutoff=0.5)
            fix = f'Did you mean "{close[0]}"?' if close else "Choose one of these."
            return Violation(fields, f"must be one of {choices}", show(value), fix)
        case "const":
            return Violation(fields, f"must be {show(wanted)}", show(value), fix)
        case "minimum":
            return Violation(fields, f"must be at least {wanted}", show(value), fix)
        case "maximum":
            return Violation(fields, f"must be at most {wanted}", show(value), fix)
        case "exclusiveMinimum":
            return Violation(fields, f"must be more than {wanted}", show(value), fix)
        case "exclusiveMaximum":
            return Violation(fields, f"must be less than {wanted}", show(value), fix)
        case "minItems" | "minProperties":
            entries = "entry" if wanted == 1 else "entries"
            return Violation(fields, f"must have at least {wanted} {entries}", f"{len(value)}", fix)
        case "minLength":
            return Violation(fields, "must not be empty", show(value), fix)
        case "uniqueItems":
            return Violation(fields, "must not hold the same entry twice", show(value), "Remove one of them.")
        case "not":  # a key that the value of another one rules out
            return Violation(fields, "does not apply here", show(value), "Remove it.")
        case "multipleOf":
            return Violation(fields, f"must be a multiple of {wanted}", show(value), fix)
        case "dependentRequired":
            key, needs = next((k, n) for k, ns in wanted.items() if k in value for n in ns if n not in value)
            return Violation((*fields, key), f'needs "{needs}" beside it', None, f'Add "{needs}".')
    return Violation(fields, f"breaks the rule {error.validator}: {error.message}", show(value), fix)


def show(value: Any) -> str:
    """A value as it may stand in an error: JSON, cut to one readable length."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
