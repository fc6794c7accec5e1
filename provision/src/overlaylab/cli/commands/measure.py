"""``measure OVERLAY``: bring up, converge, shape, measure, store, and print the table."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import click

from overlaylab.cli.options import run_options
from overlaylab.core import lock, paths
from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import PlannedTrial, RunRecord
from overlaylab.core.progress import output, readable, say
from overlaylab.image import daemons
from overlaylab.machine import ready
from overlaylab.providers import Provider, registry
from overlaylab.providers.shaped import on_nodes
from overlaylab.report import blocks_needed
from overlaylab.results import tiers
from overlaylab.run import experiment
from overlaylab.run.options import Options
from overlaylab.run.plan import cells, is_fresh, pairs
from overlaylab.run.runner import Clock, Runner, RunStopped
from overlaylab.specs import overlays
from overlaylab.store.store import Store

Result = TypeVar("Result")
RESUME = "What is finished is stored; ./task lab:resume carries on"


@click.command()
@click.argument("overlay")
@run_options()
def command(overlay: str, typed: Options) -> None:
    """Measure OVERLAY in its modes against the host network of the same nodes; `all`: every one in every mode.

    Every block holds the host and every mode once, in random order. The table shows the ratio to the
    host of the same block, so that drift of the machine does not look like a difference.
    """
    if typed.profiles:
        if typed.profile:
            raise UserError(
                "PROFILES", "cannot be combined with PROFILE: it names all tiers",
                seen=f"PROFILES={typed.profiles} and PROFILE={typed.profile}", fix="Leave one of the two out",
            )  # fmt: skip
        group = tiers.requests(typed.profiles, overlay, typed)
        if typed.dry_run:
            print_plan(*group)
        else:
            carry_out_group([(request, None) for request in group])
        return
    request = experiment.request(overlay, typed)
    if typed.dry_run:
        print_plan(request)
        return
    carry_out(request)


def print_plan(request: experiment.Request, *others: experiment.Request) -> None:
    """Trials, order, and what they will take; others: the further tiers, which have the same plan."""
    out = output(soft_wrap=True)
    every = (request, *others)
    trials = experiment.plan(request, experiment.planning_inventory(request))
    accelerator = accelerator_for(every)
    needs = [experiment.estimate(one, trials, accelerator) for one in every]
    out.print(f"{experiment.command_line(request)}", markup=False)
    each = " on each tier" if others else ""
    out.print(
        f"{len(trials)} trials in {request.blocks} block{'' if request.blocks == 1 else 's'}{each}, seed {request.seed}, accelerator {accelerator}"
    )
    for cell in cells([(n, t) for n, t in enumerate(trials)]):
        first = cell[0][1]
        booted = " (nodes booted for it)" if is_fresh(first.block, request.fresh) else ""
        out.print(f"  block {first.block}: {first.variant}{booted}: {_in_words(cell)}")
    if others:
        for number, (one, need) in enumerate(zip(every, needs, strict=True), 1):
            tier = f"{number}. {one.profile.name}: {one.profile.description}"
            out.print(f"  tier {tier}: about {readable(need.seconds)}", markup=False)
    for line in _left_out(request):
        out.print(line, markup=False)
    for line in blocks_needed.lines(every, accelerator):
        out.print(line, markup=False)
    total = f", {len(every)} tiers together" if others else ""
    seconds = sum(need.seconds for need in needs)
    out.print(f"time: about {readable(seconds)} with nodes up and converged{total}")
    if not request.inventory:
        new = "the first time, image and nodes take some 5 minutes more"
        # Each underlay MTU has snapshots of its own.
        disk = needs[0].disk * len({one.profile.mtu for one in every})
        out.print(
            f"memory: {needs[0].memory / 2**30:.1f} GiB for nodes; disk: about {disk / 1e9:.1f} GB; {new}"
        )


def _left_out(request: experiment.Request) -> list[str]:
    return [f"left out: {variant}: {why}" for variant, why in request.left_out.items()]


def _in_words(cell: list[tuple[int, PlannedTrial]]) -> str:
    """A cell's benchmarks, with the nodes where there are several pairs of them."""
    between = pairs(cell)
    told = []
    for (client, server), trials in between:
        where = "" if len(between) == 1 else f"{client} to {server} "
        told.append(where + ", ".join(trial.benchmark for _, trial in trials))
    return "; ".join(told)


def provider_for(request: experiment.Request, chosen: tuple[str, str] | None = None) -> Provider:
    """The provider that the request asks for; chosen: the one of all tiers of its group, else what fits it."""
    mtu, arguments = request.profile.mtu, request.role_arguments
    if request.inventory:
        registry.make_ready(registry.of_inventory())
        _begin_builds(request)
        return registry.hosts(request.inventory, say, underlay_mtu=mtu, role_arguments=arguments)
    from overlaylab.providers import choice

    name, _ = chosen or choose_provider([request])
    _begin_builds(request)
    # The machine's own modules, so they come before the nodes.
    choice.load(name, request.variants, request.profile)
    return registry.make(
        name, request.cluster, say, underlay_mtu=mtu, role_arguments=arguments,
        vcpus=request.profile.vcpus, quota=request.profile.quota, system=request.system,
    )  # fmt: skip


def _begin_builds(request: experiment.Request) -> None:
    """Compile what the nodes will run while the image and the nodes are made, which do not need it yet."""
    daemons.begin(recipe for variant in request.variants for recipe in overlays.recipes(variant.overlay))


def choose_provider(group: Sequence[experiment.Request]) -> tuple[str, str]:
    """(provider, why) for all tiers, on a machine that is made ready for it; says it."""
    registry.make_ready(group[0].provider or registry.fallback())
    chosen = tiers.choose_provider(group)
    say(chosen[1])
    return chosen


def accelerator_for(group: Sequence[experiment.Request]) -> str:
    """How the nodes' CPUs would run."""
    name = registry.of_inventory() if group[0].inventory else tiers.choose_provider(group)[0]
    return registry.capabilities(name).accelerator or ready.accelerator()


def carry_out(request: experiment.Request, resume: str | None = None) -> Clock:
    """Run the request, or what is left of the stored run `resume`; returns where the time went."""
    try:
        return _carry_out(request, resume, None)
    except RunStopped as stopped:
        raise UserError("run", f"stopped: {stopped}", fix=RESUME) from stopped


def carry_out_group(todo: Sequence[tuple[experiment.Request, str | None]]) -> None:
    """Run tier after tier, then print the table of all; (request, run to carry on or None) for each.

    A tier whose run stops does not keep the others from being measured: it is told of at the end.
    """
    from overlaylab.report import grid_table

    group = todo[0][0].group
    assert group is not None
    chosen = None if todo[0][0].inventory else choose_provider([request for request, _ in todo])
    stopped = []
    for number, (request, resume) in enumerate(todo):
        tier = request.profile.name
        say(f"tier {tier}, {number + 1} of {len(todo)}")
        try:
            _carry_out(request, resume, chosen)
        except RunStopped as why:
            stopped.append(f"{tier}: {why}")
            say(f"tier {tier} stopped: {why}")
        except BaseException:
            _say_what_is_left(group)
            raise
    with Store.open(paths.database()) as store:
        out = output()
        out.print()
        grid_table.show(store, tiers.find_group(store, group), out)
    if stopped:
        raise UserError(f"group {group}", f"stopped: {'; '.join(stopped)}", fix=RESUME)


def _say_what_is_left(group: str) -> None:
    """After Ctrl-C and errors: nothing where no tier was begun, as then there is nothing to carry on."""
    with Store.open(paths.database()) as store:
        found = next((g for g in tiers.groups(store) if g.group == group), None)
    if found and found.left:
        names = ", ".join(name for name, _ in found.left)
        say(f"not measured to the end: {names}; ./task lab:resume carries on with all of them")


def _carry_out(request: experiment.Request, resume: str | None, chosen: tuple[str, str] | None) -> Clock:
    with Store.open(paths.database()) as store:
        provider = provider_for(request, chosen)
        with lock.cluster_lock(provider.cluster, f"measuring {request.overlay}"):
            return interruptible(_run(request, provider, store, resume))


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


def begin(store: Store, now: RunRecord, trials: Sequence[PlannedTrial], resume: str | None) -> str:
    """The id of a new run of these trials, or of `resume`. UserError where that was begun with anything else."""
    if resume is None:
        return store.begin_run(now, trials)
    if changed := experiment.changes(store.run(resume).record, now):
        raise UserError(
            f"run {resume}",
            "can only be resumed with what it was begun with",
            seen="; ".join(changed),
            fix="Begin a new run; what this one measured stays in the database",
        )
    return resume


async def _run(request: experiment.Request, provider: Provider, store: Store, resume: str | None) -> Clock:
    from overlaylab.report import comparison, table, verdicts_table
    from overlaylab.results import results, verdicts

    for line in _left_out(request):
        say(line)
    await provider.prepare(request.variants, say)
    run_id = begin(
        store, experiment.record(request, provider), experiment.plan(request, provider.inventory), resume
    )
    trials = [trial for _, trial in store.pending_trials(run_id)]
    needs = experiment.estimate(request, trials, provider.accelerator)
    most = "at most " if request.rules.looks else ""
    say(f"run {run_id}: {most}{len(trials)} trials, about {readable(needs.seconds)}; seed {request.seed}")
    out = output()

    def enough(block: int) -> bool:
        """Looks at the intervals where the plan has a look, and says what it saw."""
        rules = request.rules
        if block not in rules.looks[:-1]:
            return False
        tables = results.report(store, run_id).tables
        found = verdicts.enough(tables, rules, block)
        words = verdicts_table.precision_words(tables, rules, found)
        say(f"after {block} blocks {words}: {'enough' if found else 'going on'}")
        return found

    def show(block: int) -> None:
        whole, unfinished = results.report(store, run_id), not runner.ended
        comparison.write(store, whole)
        table.show_report(whole, out, provisional=unfinished, brief=unfinished)

    shaper = on_nodes(provider, request.profile)
    runner = Runner(
        store, run_id, provider, shaper, say, show, request.suite.fills_bucket, request.fresh, enough
    )
    try:
        await runner.run()
    except (Exception, asyncio.CancelledError):
        store.set_run_state(run_id, "interrupted")
        with contextlib.suppress(UserError):  # of the database: why the run ended is what has to be read
            comparison.write(store, results.report(store, run_id))
        say(f"run {run_id} is interrupted; ./task lab:resume carries on")
        raise
    finally:
        try:
            await asyncio.shield(provider.leave())
        except NodeError as error:  # a dead node is often why we leave: that is what the user has to read
            say(f"could not tidy up: {error}")
    clock = runner.clock
    waiting = f", {readable(clock.fragments)} until floods' fragments were gone" if clock.fragments else ""
    say(
        f"where the time went: {readable(clock.trials)} in trials, {readable(clock.harness)} around them, "
        f"{readable(clock.setup)} reverting and setting up{waiting}"
    )
    return clock
