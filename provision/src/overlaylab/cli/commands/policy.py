"""``policy OVERLAY``: show that its network policy stops and passes traffic, and measure what rules cost."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import click

from overlaylab.cli.commands.measure import RESUME, begin, interruptible, provider_for
from overlaylab.cli.options import Own, run_options
from overlaylab.core import lock, paths
from overlaylab.core.errors import UserError
from overlaylab.core.model import HOST, Variant
from overlaylab.core.progress import output, readable, say
from overlaylab.live import policy_lab
from overlaylab.providers import Provider
from overlaylab.providers.shaped import on_nodes
from overlaylab.run import experiment
from overlaylab.run.options import Options
from overlaylab.run.runner import Runner, RunStopped
from overlaylab.store.store import Store


@click.command()
@click.argument("overlay")
@run_options(
    "scale", "seed",
    modes=Own("Modes, comma-separated; default: the first of the overlay's own."),
    cluster=Own("Cluster of VMs.", "pair"),
    provider=Own("What the nodes are: libvirt, virtualbox or lxc."),
    inventory=Own("Try it on these SSH hosts instead of VMs."),
    profile=Own("Tier to emulate (default none: rules cost CPU, not bytes)."),
    blocks=Own("Repetitions of the whole (default: the suite's 6)."),
)  # fmt: skip
@click.option("--rules", envvar="RULES", type=click.IntRange(1, 10000), default=100, show_default=True,
              help="How many rules a packet has to pass.")  # fmt: skip
def command(overlay: str, rules: int, typed: Options) -> None:
    """Deny and allow traffic to OVERLAY's endpoint and see that it stops and passes, then measure N rules.

    Half of the trials run under no policy, half behind RULES rules that match nothing of their traffic, in blocks
    that hold both. All of it is stored as a run, what was seen of the policy as its evidence.
    """
    policy_lab.check(overlay)
    modes, profile = typed.modes or _first_mode(overlay), typed.profile or "none"
    typed = replace(typed, modes=modes, profile=profile, suite=policy_lab.SUITE)
    carry_out(experiment.request(overlay, typed), rules)


def carry_out(request: experiment.Request, rules: int, resume: str | None = None) -> None:
    """Try and measure the policy, or what is left of it in the stored run `resume`."""
    with Store.open(paths.database()) as store:
        provider = provider_for(request)
        with lock.cluster_lock(provider.cluster, f"trying the policy of {request.overlay}"):
            try:
                interruptible(_run(request, provider, store, rules, resume))
            except RunStopped as stopped:
                raise UserError("run", f"stopped: {stopped}", fix=RESUME) from stopped


def _first_mode(overlay: str) -> str:
    from overlaylab.specs import overlays

    return overlays.load(overlay).default_modes[0]


async def _run(
    request: experiment.Request, provider: Provider, store: Store, rules: int, resume: str | None
) -> None:
    from overlaylab.live import policy_table
    from overlaylab.report import comparison

    # The profile is proven on the host network; that is not measured.
    await provider.prepare(request.variants, say)
    variants: tuple[Variant, ...] = tuple(v for v in request.variants if v.overlay != HOST)
    request = replace(request, variants=variants)
    planned = policy_lab.plan(
        request.suite, variants, request.blocks, rules, request.seed, provider.inventory
    )
    run_id = begin(store, experiment.record(request, provider), planned, resume)
    trials = [trial for _, trial in store.pending_trials(run_id)]
    policy = policy_lab.Policy(store, run_id, provider, say)
    runner = Runner(store, run_id, provider, on_nodes(provider, request.profile), say, hooks=policy)
    needs = experiment.estimate(request, trials, provider.accelerator)
    say(f"run {run_id}: {len(trials)} trials, about {readable(needs.seconds)}; seed {request.seed}")
    try:
        # Of a run that is carried on too: the nodes may be others by now.
        left = {trial.variant for trial in trials}
        for variant in variants:
            if variant in left:
                await policy.show(variant)
        await runner.run()
    except policy_lab.Disobeyed:
        store.set_run_state(run_id, "failed")
        raise
    except (Exception, asyncio.CancelledError):
        store.set_run_state(run_id, "interrupted")
        say(f"run {run_id} is interrupted; ./task lab:resume carries on")
        raise
    finally:
        await asyncio.shield(_leave(policy, provider))
    comparison.refresh(store, [run_id])
    policy_table.show(store, run_id, rules, output())


async def _leave(policy: policy_lab.Policy, provider: Provider) -> None:
    from overlaylab.core.errors import NodeError

    # A dead node is often why we leave: that is what the user has to read.
    for tidy in (policy.clear, provider.leave):
        try:
            await tidy()
        except NodeError as error:
            say(f"could not tidy up: {error}")
