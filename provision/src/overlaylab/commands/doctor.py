"""``lab doctor``: what this machine can do, as a table or JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click

from overlaylab import host, host_access, host_checks

_STYLES = {host_checks.OK: "green", host_checks.WARNING: "yellow", host_checks.PROBLEM: "bold red"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
def command(as_json: bool) -> None:
    """Say what this machine can do and what to do about the rest. Changes nothing.

    Exit codes: 0 the lab can run, 1 a problem stands in its way.
    """
    # A group joined by ./task setup counts at once.
    host_access.enter_groups()
    checks = host_checks.all_checks()
    fit = host_checks.can_run(checks)
    if as_json:
        report = {
            "can_run": fit,
            "machine": host.machine(),
            "accelerator": host.accelerator(),
            "accelerator_reason": host.accelerator_reason(),
            "checks": [asdict(check) for check in checks],
        }
        click.echo(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        _print_table(checks, fit)
    sys.exit(0 if fit else 1)


def _print_table(checks: list[host_checks.Check], fit: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"This machine: {host.machine()}", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("check", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("found → what to do about it", overflow="fold")
    for check in checks:
        # Text: what was found may hold brackets, which are markup otherwise.
        words = Text(check.found)
        if check.advice:
            words.append(f"\n→ {check.advice}", style=_STYLES[check.state])
        table.add_row(check.name, Text(check.state, style=_STYLES[check.state]), words)
    console = Console()
    console.print(table)
    warned = any(check.state == host_checks.WARNING for check in checks)
    if not fit:
        console.print("The lab cannot run yet: see the problems above.")
    else:
        console.print("The lab can run here" + (", with the drawbacks above." if warned else "."))
