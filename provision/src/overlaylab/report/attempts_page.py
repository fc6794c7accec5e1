"""Attempts at drills as one HTML file for the trainer: how each went, what was felt, asked and checked, and its debrief.

While a drill is at hand, nothing that attempts at it tell of its cause is written.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from overlaylab.core import progress
from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.errors import UserError
from overlaylab.report.attempt_plot import AttemptPlot, Felt, Mark, plot
from overlaylab.report.checks import MISSING
from overlaylab.report.page import Cells, environment, shortened
from overlaylab.results.rows import name_of
from overlaylab.store import attempts, database
from overlaylab.store.attempts import StoredAttempt
from overlaylab.store.database_errors import explained
from overlaylab.store.store import Store

# In place of a drill's name: every attempt.
ALL = "all"
# Characters of a ticket or a debrief that are shown.
LONGEST = 20_000
STATES = {attempts.RUNNING: "at hand", attempts.GIVEN_UP: "given up"}
WORDS = {
    "baseline": "the service measured while all is well",
    "injected": "the fault is in",
    "shown": "the symptom can be felt",
    "ticket": "the ticket",
    "hint": "hint",
    "check": "check",
    "solved-step": "step of the solution",
}
# Above the lines of the drawing: what lies within seconds of the ticket has none.
SHORT = {"ticket": "ticket", "hint": "H", "check": "C", "solved-step": "S"}


@dataclass(frozen=True)
class Section:
    """One attempt. debrief: None where it may not be told yet, or was not stored."""

    attempt_id: str
    title: str
    lines: tuple[str, ...]
    ticket: Markup
    plot: AttemptPlot | None
    events: Cells
    debrief: Markup | None
    told: tuple[tuple[str, str], ...]
    provenance: tuple[tuple[str, str], ...]


def write(store: Store, drill: str, out: TextIO) -> int:
    """The page of the attempts at one drill, or at ALL; how many they are. UserError where there is none."""
    every = attempts.attempts(store)
    found = [one for one in every if drill in (ALL, one.record.drill)]
    if not found:
        names = ", ".join(sorted({one.record.drill for one in every})) or "none"
        raise UserError(
            "DRILL", "must be a drill that was tried, or all", seen=f"{drill}; tried: {names}",
            fix="./task drill:history lists the attempts; ./task drill:start begins one",
        )  # fmt: skip
    at_hand = {one.record.drill for one in every if one.state == attempts.RUNNING}
    ended = [one for one in found if one.state != attempts.RUNNING]
    template = environment().get_template("attempts.html.j2")
    for part in template.generate(
        count=len(found),
        made=database.now().replace("T", " ")[:16] + " UTC",
        drills=_drills(found),
        attempts=_attempts(found),
        sections=(_section(store, one, one.record.drill in at_hand) for one in ended),
        at_hand=sorted(at_hand & {one.record.drill for one in found}),
    ):
        out.write(part)
    return len(found)


def clock(seconds: float | None) -> str:
    """``4:07``, ``1:02:03``, ``−0:12`` before the ticket."""
    if seconds is None:
        return MISSING
    minutes, rest = divmod(round(abs(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    told = f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
    return f"−{told}" if round(seconds) < 0 else told


def _drills(found: Sequence[StoredAttempt]) -> Cells:
    rows = []
    for drill in dict.fromkeys(one.record.drill for one in found):
        its = [one for one in found if one.record.drill == drill]
        repaired = [one for one in its if one.state == attempts.REPAIRED]
        rows.append(
            (
                shortened(its[-1].record.title),
                shortened(drill),
                str(its[-1].record.level),
                str(len(its)),
                str(len(repaired)),
                str(max((one.score for one in repaired if one.score is not None), default=MISSING)),
                clock(min((one.duration for one in repaired if one.duration is not None), default=None)),
            )
        )
    headers = ("drill", "name", "level", "tries", "repaired", "best score", "shortest")
    return Cells(headers, tuple(rows), frozenset({0, 1}))


def _attempts(found: Sequence[StoredAttempt]) -> Cells:
    rows = tuple(
        (
            _when(one),
            shortened(one.record.trainee or MISSING),
            shortened(one.record.drill),
            shortened(name_of(one.record.variant, False)),
            STATES.get(one.state, one.state),
            clock(one.duration),
            MISSING if one.score is None else str(one.score),
            str(one.hints),
            str(one.failed_checks),
        )
        for one in found
    )
    headers = (
        "ticket (UTC)",
        "trainee",
        "drill",
        "overlay mode",
        "state",
        "took",
        "score",
        "hints",
        "failed checks",
    )
    return Cells(headers, rows, frozenset(range(5)))


def _when(one: StoredAttempt) -> str:
    return one.started_at.replace("T", " ")[:16]


def _section(store: Store, one: StoredAttempt, secret: bool) -> Section:
    """secret: its drill is at hand, so that nothing may be told but the ticket and the values."""
    record = one.record
    rows = [(row["kind"], row["t"], _object(row["detail"])) for row in attempts.events(store, one.attempt_id)]
    ticket = next((detail for kind, _, detail in rows if kind == "ticket"), {})
    end = {} if secret else next((detail for kind, _, detail in rows if kind in attempts.ENDS), {})
    marks, cells = _events(rows, secret)
    who = f"{shortened(record.trainee)}: " if record.trainee else ""
    took = "" if one.duration is None else f" after {clock(one.duration)}"
    score = "" if one.score is None else f", {one.score} of 100 points"
    debrief = end.get("debrief")
    told = [
        ("the trainee's cause", [] if secret or not one.cause else [one.cause]),
        ("what it was about", _texts(end.get("topics"))),
        ("to read", _texts(end.get("references"))),
    ]
    return Section(
        attempt_id=one.attempt_id,
        title=f"{shortened(record.title)}, {_when(one)} UTC",
        lines=(
            f"{who}{STATES.get(one.state, one.state)}{took}{score}. A trained engineer needs {record.minutes} min.",
            *(["This drill is at hand: what tells of its cause is left out."] if secret else []),
        ),
        ticket=escape(progress.visible(_text(ticket.get("ticket")).strip()[:LONGEST])),
        plot=plot(list(_felt(store, one.attempt_id)), marks),
        events=cells,
        debrief=rendered(debrief) if isinstance(debrief, str) else None,
        told=tuple((name, ", ".join(words)) for name, words in told if words),
        provenance=tuple((name, value) for name, value in _provenance(one) if value),
    )


def _events(rows: Sequence[tuple[str, float, Mapping[str, Any]]], secret: bool) -> tuple[list[Mark], Cells]:
    """Hints, checks and steps are numbered, alike in the drawing and in the table."""
    counts: dict[str, int] = {}
    marks, cells = [], []
    for kind, t, detail in rows:
        number = counts[kind] = counts.get(kind, 0) + 1
        numbered = kind in ("hint", "check", "solved-step")
        words = WORDS.get(kind, STATES.get(kind, kind)) + (f" {number}" if numbered else "")
        short = SHORT.get(kind, kind if kind in attempts.ENDS else "")
        marks.append(Mark(t, short + (str(number) if numbered else ""), words))
        cells.append((clock(t), words, "" if secret else "\n".join(_said(kind, detail))))
    return marks, Cells(("since the ticket", "what", "said"), tuple(cells), frozenset({1, 2}))


def _said(kind: str, detail: Mapping[str, Any]) -> Iterator[str]:
    if kind == "hint":
        yield f"{_text(detail.get('text')).strip()} ({detail.get('cost', MISSING)} points)"
    elif kind == "check":
        yield "passes" if detail.get("passes") is True else "fails"
        for finding in _objects(detail.get("findings")):
            if finding.get("passes") is not True:
                where = f"{_text(finding.get('measure'))} from the {_text(finding.get('role'))}"
                yield f"{where}: {_text(finding.get('reason'))}"
        for refusal in _objects(detail.get("refusals")):
            yield f"guard {_text(refusal.get('guard'))}: {_text(refusal.get('reason'))}"
    elif kind == "solved-step":
        yield _text(detail.get("does"))
        changes = detail.get("changes")
        for node, lines in changes.items() if isinstance(changes, dict) else ():
            yield from (f"{node}: {line}" for line in _texts(lines))


def _felt(store: Store, attempt_id: str) -> Iterator[Felt]:
    with explained(store.path):
        rows = store.db.execute(
            "SELECT v.t, v.role, v.phase, v.measure, v.unit, v.value FROM attempt_value AS v"
            " JOIN measure AS m ON m.name = v.measure WHERE v.attempt_id = ?"
            " ORDER BY m.measure_id, v.role, v.t, v.ordinal",
            (attempt_id,),
        )
        for row in rows:
            yield Felt(*row)


def _provenance(one: StoredAttempt) -> Iterator[tuple[str, str | None]]:
    record = one.record
    yield "attempt", one.attempt_id
    yield "game day", record.gameday
    yield "drill", f"{record.drill} {record.drill_digest}"
    yield "machine", record.machine
    yield "provider", record.provider
    yield "accelerator", f"{record.accelerator}: {ACCELERATORS[record.accelerator].words}"
    yield "image", record.image
    yield "cluster", record.cluster
    yield "profile", f"{record.profile} {record.profile_digest}"
    yield "overlay", f"{name_of(record.variant, False)}, role {record.role_digest}"
    yield "overlaylab", record.lab_version


def rendered(markdown: str) -> Markup:
    """A debrief's Markdown as HTML without raw HTML in it, without links, its headings below those of the page."""
    reader = MarkdownIt("zero").enable(["list", "backticks", "emphasis", "heading", "fence", "link"])
    tokens = reader.parse(progress.visible(markdown[:LONGEST]))
    for token in tokens:
        if token.type.startswith("heading"):
            token.tag = "h4"
        token.info = ""  # the language of code: a class
        token.children = [one for one in token.children or () if not one.type.startswith("link")] or None
    return Markup(reader.renderer.render(tokens, reader.options, {}))


def _object(text: str) -> dict[str, Any]:
    """A detail; anybody may have written it."""
    found = json.loads(text)
    return found if isinstance(found, dict) else {}


def _objects(value: object) -> Collection[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else MISSING
