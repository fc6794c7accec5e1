"""Errors that a user can act on."""

# Characters of a value that an error repeats.
VALUE = 200
# Characters of a program's last words, which are worth more.
WORDS = 2000
# Characters of a place: a file with its folders, and a field.
WHERE = 300


class UserError(Exception):
    """Somebody's input or machine stands in the way; printed as one paragraph, exit code 2.

    where: ``profiles/x.yml: rate``; rule: ``must be at least 8000 bit/s``; seen: the value found, None: not shown.
    """

    def __init__(self, where: str, rule: str, *, seen: object = None, fix: str) -> None:
        self.where, self.rule, self.seen, self.fix = where, rule, seen, fix
        found = "" if seen is None else f" (found: {_short(str(seen))})"
        super().__init__(f"{_short(str(where), WHERE)}: {rule}{found}. {fix}")


def _short(seen: str, most: int | None = None) -> str:
    """What a terminal shows as it is, and no more than can be read. Several words without quotes are a program's."""
    most = most or (WORDS if " " in seen and seen[0] != '"' else VALUE)
    plain = "".join(
        each if each.isprintable() or each in "\n\t" else ascii(each)[1:-1] for each in seen[:most]
    )
    return plain if len(seen) <= most else f"{plain}… ({len(seen)} characters)"


class NodeError(Exception):
    """A node could not be reached, or a command that had to succeed on it did not; exit code 1."""
