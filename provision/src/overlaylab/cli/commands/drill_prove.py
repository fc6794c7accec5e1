"""``drill prove``: that drills do what they say."""

from __future__ import annotations

import sys

import click

from overlaylab.cli import drill_start, drill_text
from overlaylab.cli.commands.cluster import cluster_option, provider_option
from overlaylab.cli.commands.measure import interruptible
from overlaylab.core import lock
from overlaylab.core.errors import UserError
from overlaylab.core.progress import output, say
from overlaylab.drills import attempt, proofs, prove
from overlaylab.drills.prove import Prover
from overlaylab.specs import drill as drills
from overlaylab.specs.drill import Drill

drill_option = click.option(
    "--drill", "name", envvar="DRILL", help="Which drill: a folder of provision/drills."
)
overlay_option = click.option(
    "--overlay",
    envvar="OVERLAY",
    help="Over which overlay, flannel or flannel/vxlan (default: the drill's first that runs).",
)
profile_option = click.option(
    "--profile", envvar="PROFILE", help="Tier in force meanwhile (default: none, or the drill's)."
)


@click.command("prove")
@drill_option
@overlay_option
@profile_option
@cluster_option
@provider_option
@click.option(
    "--sample",
    envvar="SAMPLE",
    type=click.IntRange(0),
    help="Try one wrong fix or solution alone, another one with each number: a minute, and no proof.",
)
def prove_(
    name: str | None,
    overlay: str | None,
    profile: str | None,
    cluster: str,
    provider_name: str | None,
    sample: int | None,
) -> None:
    """Prove DRILL, or all that run here: healthy passes, broken fails, wrong fixes are refused, solutions pass.

    What holds is kept, so that proving carries on after an interruption. Exit code 1 where a drill does not do what it
    says. A drill's proof.json is written once all of it holds.
    """
    failed = []
    for one in [name] if name else drills.names():
        drill = drills.load(one)
        try:
            _prove(drill, overlay, profile, cluster, provider_name, sample)
        except prove.Unproven as wrong:
            if name:
                raise
            say(str(wrong))
            failed.append(one)
        except UserError as wrong:
            if name:
                raise
            say(f"passed over: {wrong}")
    if failed:
        say(f"not proven: {', '.join(failed)}")
        sys.exit(1)


def _prove(
    drill: Drill,
    overlay: str | None,
    profile: str | None,
    cluster: str,
    provider_name: str | None,
    sample: int | None,
) -> None:
    attempt.settle(cluster, say)
    variant, provider, wanted = drill_start.nodes_for(drill, overlay, profile, cluster, provider_name, None)
    prover = Prover(drill, variant, wanted.profile, provider, say)
    with lock.cluster_lock(provider.cluster, f"proving the drill {drill.name}"):
        if sample is not None:
            interruptible(prover.sample(sample))
            return
        proof = interruptible(prover.prove())
    proofs.keep(drill, proof)
    drill_text.proof(proof.values, output())
    say(f"{drill.name} is proven over {variant} with provider {provider.name}: {drill.folder / 'proof.json'}")
