"""``bench fuzz``: damaged outputs of real tools against every parser."""

from __future__ import annotations

import time

import click

from overlaylab.bench import parser_fuzz
from overlaylab.core import paths

SHOWN = 5
"""Findings that are printed in full."""


@click.command("fuzz")
@click.option(
    "--inputs",
    envvar="INPUTS",
    type=click.IntRange(1),
    default=200_000,
    show_default=True,
    help="Damaged outputs.",
)
@click.option("--seed", envvar="SEED", type=int, default=1, show_default=True, help="Seed of the damage.")
def command(inputs: int, seed: int) -> None:
    """Samples or ParseError, and never a zero that was not measured: whatever a tool prints.

    The same inputs for the same seed. Exit code 1 where a parser did anything else.
    """
    began = time.monotonic()
    outcome = parser_fuzz.fuzz(parser_fuzz.recorded(paths.ROOT), inputs, seed)
    for tool in sorted({*outcome.accepted, *outcome.refused}):
        print(f"{tool:10} samples {outcome.accepted[tool]:7}   ParseError {outcome.refused[tool]:7}")
    seconds = time.monotonic() - began
    print(f"{inputs} inputs from seed {seed} in {seconds:.0f} s: {len(outcome.findings)} broke the rule")
    for finding in outcome.findings[:SHOWN]:
        mutant = finding.mutant
        print(f"\n{mutant.origin.name}, input {finding.number} ({mutant.how}): {finding.rule}")
        print(f"parameters {dict(mutant.parameters)}, exit code {mutant.exit_code}")
        print(mutant.stdout[-2000:].encode("unicode_escape").decode())
    raise SystemExit(1 if outcome.findings else 0)
