"""Errors that a user can act on."""


class UserError(Exception):
    """Somebody's input or machine stands in the way; printed as one paragraph, exit code 2.

    where: file and field, command or machine part, e.g. ``profiles/x.yml: rate``.
    rule: what has to hold, e.g. ``must be at least 8000 bit/s``.
    seen: the value found, already readable; None where there is none to show.
    fix: what to do next, a sentence.
    """

    def __init__(self, where: str, rule: str, *, seen: object = None, fix: str) -> None:
        self.where, self.rule, self.seen, self.fix = where, rule, seen, fix
        found = "" if seen is None else f" (found: {seen})"
        super().__init__(f"{where}: {rule}{found}. {fix}")


class NodeError(Exception):
    """A node could not be reached, or a command that had to succeed on it did not; exit code 1."""
