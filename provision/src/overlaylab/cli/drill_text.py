"""What a drill's commands print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from overlaylab.core.measures import MEASURES
from overlaylab.core.progress import readable
from overlaylab.drills.judge import Finding
from overlaylab.drills.lifecycle import Solved, Verdict
from overlaylab.report.checks import MISSING, value
from overlaylab.specs.drill import Drill
from overlaylab.store.attempts import REPAIRED, StoredAttempt

NEXT = (
    ("drill:status", "the ticket again, and what users feel now"),
    ("drill:hint", "a hint, for points"),
    ("drill:check", 'is it repaired? CAUSE="…" says what it was'),
    ("drill:solve", "give up: it is explained and repaired"),
    ("drill:stop", "end it and put the nodes back"),
)


def ticket(drill: Drill, out: Console) -> None:
    out.print(f"\n[bold]{_plain(drill.title)}[/bold]   level {drill.level}, {drill.minutes} minutes\n")
    out.print(drill.ticket.strip(), markup=False)
    out.print(f"\nYou may touch: {drill.may_touch}", markup=False)
    if drill.hints:
        costs = ", ".join(str(hint.cost) for hint in drill.hints)
        out.print(
            f"Hints: up to {len(drill.hints)}, of {costs} points; which one you get follows from what is still wrong"
        )


def ways(client: str, server: str, out: Console) -> None:
    """How to get to the nodes, and what to type next."""
    out.print(f"\nThe client is {client}, the server {server}.")
    rows = [
        (f"lab:ssh -- {client}", "a shell on a node, as a user with sudo"),
        (f"lab:shell -- {client}", "one in its endpoint, as root"),
        *NEXT,
    ]
    for task, what in rows:
        out.print(f"  ./task {task:<20} {what}", markup=False, highlight=False)


def findings(found: Sequence[Finding], out: Console, title: str) -> None:
    table = Table(title=title, title_justify="left")
    for heading in ("measure", "from", "healthy", "now", "ratio", "must be", ""):
        table.add_column(heading)
    for one in found:
        unit = MEASURES[one.measure].unit
        table.add_row(
            one.measure, one.role, value(one.healthy, unit), value(one.seen, unit),
            MISSING if one.ratio is None else f"{one.ratio:.3g}", bound(one), "ok" if one.passes else f"NO: {one.reason}",
        )  # fmt: skip
    out.print(table)


def felt(rows: Sequence[tuple[str, str, float | None, float | None]], out: Console) -> None:
    """rows: measure, from which end, healthy, lately."""
    table = Table(title="what users feel", title_justify="left")
    for heading in ("measure", "from", "healthy", "lately"):
        table.add_column(heading)
    for measure, role, healthy, lately in rows:
        unit = MEASURES[measure].unit
        table.add_row(measure, role, value(healthy, unit), value(lately, unit))
    out.print(table)


def bound(finding: Finding) -> str:
    if finding.at_least is not None:
        return f"at least {finding.at_least:g}"
    return f"at most {finding.at_most:g}"


def verdict(drill: Drill, found: Verdict, cause: str | None, out: Console) -> None:
    findings(found.checked.findings, out, f"{drill.title}: what users feel, against the healthy baseline")
    for refusal in found.checked.refusals:
        out.print(f"refused by {refusal.guard}: {refusal.reason}", markup=False)
    if not found.checked.passes:
        felt = all(one.passes for one in found.checked.findings)
        out.print(
            "The service is back, but something else is not as it was." if felt else "Not repaired yet."
        )
        return
    out.print(f"\n[bold]Repaired[/bold] in {readable(found.duration)}: {found.score} of 100 points")
    debrief(drill, found.debrief or "", cause, out)


def debrief(drill: Drill, text: str, cause: str | None, out: Console) -> None:
    if cause:
        out.print(f"\nYour cause: {cause}", markup=False)
    out.print()
    # A pipe or a file gets the text as it was written.
    out.print(Markdown(text)) if out.is_terminal else out.print(text, markup=False)
    out.print(f"\nTopics: {', '.join(drill.topics)}", markup=False)
    if drill.references:
        out.print(f"Read on: {', '.join(drill.references)}", markup=False)


def solved(found: Solved, cause: str | None, out: Console) -> None:
    solution = found.drill.solutions[0]
    out.print(f"\n[bold]The solution[/bold] ({solution.name}): {_plain(solution.does)}\n")
    for line in solution.script.strip().splitlines():
        out.print(f"    {line}", markup=False, highlight=False)
    out.print()
    for node, changes in found.changes.items():
        out.print(f"On {node} it changed {'nothing of the network' if not changes else 'this:'}")
        for change in changes:
            out.print(f"  {change}", markup=False)
    if found.findings:
        findings(found.findings, out, "what users feel after it")
    if found.problem:
        out.print(f"It could not be carried out to its end: {found.problem}", markup=False)
    debrief(found.drill, found.debrief, cause, out)


def history(found: Sequence[StoredAttempt], out: Console) -> None:
    table = Table(title="attempts, the oldest first", title_justify="left")
    for heading in (
        "attempt",
        "drill",
        "trainee",
        "overlay",
        "state",
        "took",
        "hints",
        "failed checks",
        "score",
    ):
        table.add_column(heading)
    for one in found:
        record = one.record
        table.add_row(
            one.attempt_id, record.drill, record.trainee or MISSING, str(record.variant), one.state,
            MISSING if one.duration is None else readable(one.duration), str(one.hints), str(one.failed_checks),
            MISSING if one.score is None else str(one.score),
        )  # fmt: skip
    out.print(table)
    repaired = [one for one in found if one.state == REPAIRED]
    out.print(f"{len(repaired)} of {len(found)} repaired")


def listed(rows: Sequence[tuple[Drill, str, str, int | None, bool]], out: Console) -> None:
    """rows: drill, where it runs here, what its proof is worth, the best score, whether it was attempted."""
    table = Table(title="drills", title_justify="left")
    for heading in (
        "level",
        "drill",
        "what is seen",
        "minutes",
        "courses",
        "here",
        "proof",
        "best",
        "topics",
    ):
        table.add_column(heading)
    for drill, here, proof, best, attempted in rows:
        table.add_row(
            str(drill.level), drill.name, drill.title, str(drill.minutes), ", ".join(drill.courses) or MISSING,
            here, proof, MISSING if best is None else str(best),
            ", ".join(drill.topics) if attempted else "after an attempt",
        )  # fmt: skip
    out.print(table)


def proof(values: Mapping[str, Mapping[str, float | None]], out: Console) -> None:
    table = Table(title="healthy and broken", title_justify="left")
    for heading in ("measure", "healthy", "broken", "ratio"):
        table.add_column(heading)
    for name, one in values.items():
        unit = MEASURES[name.split()[0]].unit
        ratio = one["ratio"]
        table.add_row(
            name,
            value(one["healthy"], unit),
            value(one["broken"], unit),
            MISSING if ratio is None else f"{ratio:.3g}",
        )
    out.print(table)


def _plain(text: str) -> str:
    return text.replace("[", "\\[")
