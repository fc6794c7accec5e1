"""``lab doctor``: what this machine can do, and what runs on which provider, as tables or JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from overlaylab.desktop import checks as viewer_checks
from overlaylab.image import checks as image_checks
from overlaylab.machine import access, ready
from overlaylab.machine import checks as host_checks
from overlaylab.providers import choice, registry, requirements

if TYPE_CHECKING:  # drawing takes time to import, and JSON needs none of it
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_STYLES = {host_checks.OK: "green", host_checks.WARNING: "yellow", host_checks.PROBLEM: "bold red"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the tables.")
def command(as_json: bool) -> None:
    """Say what this machine can do and what to do about the rest. Changes nothing.

    Exit codes: 0 the lab can run, 1 a problem stands in its way.
    """
    # A group joined by ./task setup counts at once.
    access.enter_groups()
    checks = [*host_checks.all_checks(), *image_checks.all_checks(), *viewer_checks.all_checks()]
    fit = host_checks.can_run(checks)
    rows = requirements.survey()
    loaded = choice.loaded()
    if as_json:
        report = {
            "can_run": fit,
            "machine": ready.machine(),
            "accelerator": ready.accelerator(),
            "accelerator_reason": ready.accelerator_reason(),
            "checks": [asdict(check) for check in checks],
            "runs_on": [
                {"overlay": row.overlay, "mode": row.mode, "profile": row.profile, "providers": _plain(row)}
                for row in rows
            ],
            "loaded_modules": loaded,
        }
        click.echo(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        _print_checks(checks)
        _print_providers(rows, loaded)
        _print_closing(checks, fit)
    sys.exit(0 if fit else 1)


def _plain(row: requirements.Row) -> dict[str, dict[str, Any]]:
    """Verdicts for programs: {provider: fields}."""
    return {provider: asdict(verdict) for provider, verdict in row.verdicts.items()}


def _print_checks(checks: list[host_checks.Check]) -> None:
    from rich.text import Text

    table = _table(f"This machine: {ready.machine()}")
    table.add_column("check", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("found → what to do about it", overflow="fold")
    for check in checks:
        # Text: what was found may hold brackets, which are markup otherwise.
        words = Text(check.found)
        if check.advice:
            words.append(f"\n→ {check.advice}", style=_STYLES[check.state])
        table.add_row(check.name, Text(check.state, style=_STYLES[check.state]), words)
    _console().print(table)


def _print_providers(rows: list[requirements.Row], loaded: list[str]) -> None:
    """Overlay and mode, and each profile, against provider: a tick, or the reason."""
    table = _table("What runs on which provider (PROVIDER=…)")
    table.add_column("", no_wrap=True)
    for provider in registry.names():
        table.add_column(_heading(provider), overflow="fold")
    for number, row in enumerate(rows):
        last = number + 1 < len(rows) and row.profile is None and rows[number + 1].profile is not None
        cells = (_cell(row.verdicts[provider]) for provider in registry.names())
        table.add_row(row.title, *cells, end_section=last)
    out = _console()
    out.print(table)
    for provider in registry.names():
        if installs := dict.fromkeys(name for row in rows for name in row.verdicts[provider].installs):
            out.print(f"The first task with PROVIDER={provider} installs {requirements.listed(installs)}.")
    if loaded:
        out.print(
            f"Kernel modules that the lab has loaded here: {', '.join(loaded)}; ./task lab:destroy unloads them."
        )


def _heading(provider: str) -> str:
    can = registry.capabilities(provider)
    if can.accelerator is None:
        return f"{provider} ({ready.accelerator().upper()})"
    return f"{provider} (this kernel)" if can.shares_kernel else provider


def _cell(verdict: requirements.Verdict) -> Text:
    from rich.text import Text

    if not verdict.runs:
        return Text(str(verdict.reason), style="yellow")
    notes = []
    if verdict.soft:
        absent = requirements.titles(verdict.soft_lacks)
        notes.append(f"but no {requirements.listed(verdict.soft)}: lacks {requirements.listed(absent)}")
    if verdict.loads:
        notes.append(f"loads {', '.join(verdict.loads)}")
    return Text.assemble(("✓", "green"), " " if notes else "", ", ".join(notes))


def _print_closing(checks: list[host_checks.Check], fit: bool) -> None:
    warned = any(check.state == host_checks.WARNING for check in checks)
    if not fit:
        _console().print("The lab cannot run yet: see the problems above.")
    else:
        _console().print("The lab can run here" + (", with the drawbacks above." if warned else "."))


def _console() -> Console:
    from overlaylab.core.progress import output

    return output()


def _table(title: str) -> Table:
    from rich import box
    from rich.table import Table

    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
