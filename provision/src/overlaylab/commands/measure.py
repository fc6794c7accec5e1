"""``measure OVERLAY``: bring up, converge, shape, measure, store, and print the table."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

import click
from rich.console import Console

from overlaylab import experiment, host, lock, paths
from overlaylab.errors import NodeError, UserError
from overlaylab.plan import cells
from overlaylab.progress import readable, say
from overlaylab.providers import named
from overlaylab.runner import Clock, Runner, RunStopped, variant_name
from overlaylab.shaper import Shaper
from overlaylab.store import Store

Result = TypeVar("Result")


@click.command()
@click.argument("overlay")
@click.option("--modes", envvar="MODES", help="Modes, comma-separated; default: the overlay's own choice.")
@click.option(
    "--arguments", envvar="ARGUMENTS", help="Arguments of the overlay's role: overlay_weave_mtu=1410."
)
@click.option("--profile", envvar="PROFILE", help="Tier to emulate (default azure-a1; none on SSH hosts).")
@click.option("--cluster", envvar="CLUSTER", default="pair", show_default=True, help="Cluster of VMs.")
@click.option(
    "--provider",
    envvar="PROVIDER",
    help="What the nodes are: libvirt or virtualbox (VMs), lxc (system containers); default: what fits here.",
)
@click.option("--inventory", envvar="INVENTORY", help="Measure on these SSH hosts instead of VMs.")
@click.option("--suite", envvar="SUITE", default="quick", show_default=True, help="What is measured.")
@click.option("--blocks", envvar="BLOCKS", type=int, help="Repetitions of the whole (default: the suite's).")
@click.option(
    "--scale", envvar="SCALE", type=float, default=1.0, show_default=True, help="Stretch durations."
)
@click.option("--seed", envvar="SEED", type=int, help="Seed of the random order (default: a new one).")
@click.option(
    "--dry-run", envvar="DRY_RUN", is_flag=True, help="Print the plan and what it takes; start nothing."
)
def command(overlay: str, profile: str | None, dry_run: bool, **typed) -> None:
    """Measure OVERLAY in its modes against the host network of the same nodes.

    Every block holds the host and every mode once, in random order. The table shows the ratio to the
    host of the same block, so that drift of the machine does not look like a difference.
    """
    asked = experiment.request(overlay, profile_name=profile, **typed)
    if dry_run:
        print_plan(asked)
        return
    carry_out(asked)


def print_plan(asked: experiment.Request) -> None:
    """Trials, order, and what they will take."""
    out = Console(highlight=False, soft_wrap=True)
    trials = experiment.plan(asked, experiment.planning_inventory(asked))
    accelerator = _accelerator(asked)
    needs = experiment.estimate(asked, trials, accelerator)
    out.print(f"{experiment.command_line(asked)}", markup=False)
    out.print(
        f"{len(trials)} trials in {asked.blocks} block{'' if asked.blocks == 1 else 's'}, seed {asked.seed}, accelerator {accelerator}"
    )
    for cell in cells([(n, t) for n, t in enumerate(trials)]):
        first = cell[0][1]
        names = ", ".join(trial.benchmark for _, trial in cell)
        out.print(f"  block {first.block}: {variant_name(first.variant)}: {names}")
    out.print(f"time: about {readable(needs.seconds)} with nodes up and converged")
    if not asked.inventory:
        new = "the first time, image and nodes take some 5 minutes more"
        out.print(
            f"memory: {needs.memory / 2**30:.1f} GiB for nodes; disk: about {needs.disk / 1e9:.1f} GB; {new}"
        )


def provider_for(asked: experiment.Request):
    """The provider that the request asks for."""
    how = {"underlay_mtu": asked.profile.mtu, "role_arguments": asked.role_arguments}
    if asked.inventory:
        from overlaylab.providers.hosts import Hosts

        return Hosts(asked.inventory, say, **how)
    from overlaylab import provider_choice

    host.ensure(asked.provider or "libvirt")
    name, sentence = provider_choice.choose(asked.provider, asked.variants, asked.profile)
    say(sentence)
    if name == "lxc":
        # The machine's own modules, so they come before the nodes; a node's limits are given when it is made.
        provider_choice.load(asked.variants, asked.profile)
        how |= {"vcpus": asked.profile.vcpus, "quota": asked.profile.quota}
    return named.make(name, asked.cluster, say, **how)


def _accelerator(asked: experiment.Request) -> str:
    """How the nodes' CPUs would run."""
    from overlaylab import provider_choice

    if asked.inventory:
        return "bare"
    name, _ = provider_choice.choose(asked.provider, asked.variants, asked.profile)
    return "shared-kernel" if name == "lxc" else host.accelerator()


def carry_out(asked: experiment.Request, resume: str | None = None) -> Clock:
    """Run the request, or what is left of the stored run `resume`; returns where the time went."""
    with Store.open(paths.database()) as store:
        provider = provider_for(asked)
        with lock.cluster_lock(provider.cluster, f"measuring {asked.overlay}"):
            try:
                return interruptible(_run(asked, provider, store, resume))
            except RunStopped as stopped:
                raise UserError(
                    "run",
                    f"stopped: {stopped}",
                    fix="What is finished is stored; ./task lab:resume carries on",
                ) from stopped


def interruptible(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the coroutine; SIGTERM ends it as Ctrl-C does, so that it can clean up."""

    async def main() -> Result:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _run(asked: experiment.Request, provider, store: Store, resume: str | None) -> Clock:
    from overlaylab import results_table

    await provider.prepare(asked.variants, say)
    now = experiment.record(asked, provider)
    if resume:
        stored = store.run(resume).record
        changed = experiment.changes(stored, now)
        if changed:
            raise UserError(
                f"run {resume}",
                "can only be resumed with what it was begun with",
                seen="; ".join(changed),
                fix="Begin a new run; what this one measured stays in the database",
            )
        run_id = resume
    else:
        run_id = store.begin_run(now, experiment.plan(asked, provider.inventory))
    trials = [trial for _, trial in store.pending_trials(run_id)]
    needs = experiment.estimate(asked, trials, provider.accelerator)
    say(f"run {run_id}: {len(trials)} trials, about {readable(needs.seconds)}; seed {asked.seed}")
    out = Console(highlight=False)

    def show(block: int) -> None:
        unfinished = block < asked.blocks
        results_table.show(store, run_id, out, provisional=unfinished, brief=unfinished)

    runner = Runner(store, run_id, provider, Shaper(provider.nodes, asked.profile), say, show)
    try:
        await runner.run()
    except (Exception, asyncio.CancelledError):
        store.set_run_state(run_id, "interrupted")
        say(f"run {run_id} is interrupted; ./task lab:resume carries on")
        raise
    finally:
        try:
            await asyncio.shield(provider.leave())
        except NodeError as error:  # a dead node is often why we leave: that is what the user has to read
            say(f"could not tidy up: {error}")
    clock = runner.clock
    say(
        f"where the time went: {readable(clock.trials)} in trials, {readable(clock.harness)} around them, "
        f"{readable(clock.setup)} reverting and setting up"
    )
    return clock
