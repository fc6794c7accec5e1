"""``drill``: a fault to be found and repaired, on nodes that were healthy a minute before."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from overlaylab.cli import drill_shell, drill_start, drill_text
from overlaylab.cli.commands import drill_prove
from overlaylab.cli.commands.cluster import (
    cluster_option,
    inventory_option,
    provider_of,
    provider_option,
    ssh_argv,
)
from overlaylab.cli.commands.drill_prove import drill_option, overlay_option, profile_option
from overlaylab.cli.commands.measure import interruptible
from overlaylab.core import lock, paths
from overlaylab.core.errors import UserError
from overlaylab.core.progress import output, readable, say
from overlaylab.drills import attempt, gameday, lifecycle, proofs, watch, where
from overlaylab.drills.attempt import AtHand
from overlaylab.providers import registry
from overlaylab.run.plan import endpoints
from overlaylab.specs import drill as drills
from overlaylab.specs.drill import Drill
from overlaylab.specs.inventory import load_inventory
from overlaylab.store import attempts
from overlaylab.store.store import Store

level_option = click.option("--level", envvar="LEVEL", type=click.IntRange(1, 3), help="One of this level.")
course_option = click.option("--course", envvar="COURSE", help="The next one of this learning path.")
trainee_option = click.option(
    "--trainee", envvar="TRAINEE", help="Who tries, as is to stand in the history; may be left out."
)
cause_option = click.option(
    "--cause", envvar="CAUSE", help="What it was, in a sentence; the debrief sets it beside the true one."
)
record_option = click.option(
    "--record", envvar="RECORD", is_flag=True, help="Keep what the shell shows, beside the database."
)
destructive_option = click.option(
    "--destructive", envvar="DESTRUCTIVE", type=click.Choice(["yes", "no"]), default="no",
    help="yes: also on hosts of an INVENTORY, which it breaks.",
)  # fmt: skip


@click.group()
def command() -> None:
    """Faults to be found and repaired, on nodes that were healthy a minute before."""


@command.command("list")
@provider_option
def list_(provider_name: str | None) -> None:
    """Drills with their level, whether they run here, and your best score; topics of those that were attempted."""
    every = [drills.load(name) for name in drills.names()]
    known = [drill for drill in every if proofs.read(drill)]
    best: dict[str, int] = {}
    tried: set[str] = set()
    if paths.database().exists():
        with Store.open(paths.database(), create=False) as store:
            best = attempts.best(store)
            tried = {one.record.drill for one in attempts.attempts(store) if one.state != attempts.RUNNING}
    rows = []
    for drill in sorted(known, key=lambda one: (one.level, one.minutes, one.name)):
        proof = {proofs.HOLDS: "holds", proofs.STALE: "stale"}[proofs.state(drill)]
        rows.append((drill, _here(drill, provider_name), proof, best.get(drill.name), drill.name in tried))
    out = output()
    drill_text.listed(rows, out)
    unproven = [drill.name for drill in every if drill not in known]
    if unproven:
        out.print(f"not listed, as nobody has proven them yet: {', '.join(unproven)}", markup=False)


def _here(drill: Drill, provider_name: str | None) -> str:
    """``libvirt, lxc (flannel host-gw)``, or why it does not run."""
    tier = where.tier(drill, None)
    told, why = [], ""
    for name in (provider_name,) if provider_name else registry.names():
        registry.check(name)
        reasons = {variant: where.reason(drill, variant, tier, name) for variant in drill.variants}
        runs = [str(variant) for variant, reason in reasons.items() if reason is None]
        if runs:
            told.append(f"{name} ({', '.join(runs)})" if len(runs) < len(reasons) else name)
        elif not registry.capabilities(name).product:
            why = why or f"not with {name}: {next(iter(reasons.values()))}"
    return ", ".join(told) or why


@command.command()
@drill_option
@level_option
@course_option
@click.option("--random", "by_chance", envvar="RANDOM", is_flag=True, help="Any of them, by chance.")
@overlay_option
@profile_option
@cluster_option
@provider_option
@inventory_option
@trainee_option
@record_option
@destructive_option
def start(
    name: str | None,
    level: int | None,
    course: str | None,
    by_chance: bool,
    overlay: str | None,
    profile: str | None,
    cluster: str,
    provider_name: str | None,
    inventory: str | None,
    trainee: str | None,
    record: bool,
    destructive: str,
) -> None:
    """Break healthy nodes, and give a ticket of what users see. With a terminal, a shell on the client opens.

    Nodes are converged, a healthy baseline is measured, the fault is injected, and only when it can be felt the ticket
    is printed and the clock starts.
    """
    drill_start.refuse_hosts(inventory, destructive)
    with Store.open(paths.database()) as store:
        tried = [one.record.drill for one in attempts.attempts(store)]
    drill = drill_start.pick(name, level, course, by_chance, tried, profile, provider_name)
    hand = _begin(drill, overlay, profile, cluster, provider_name, inventory, trainee, None)
    _give(drill, hand, record)


def _begin(
    drill: Drill,
    overlay: str | None,
    profile: str | None,
    cluster: str,
    provider_name: str | None,
    inventory: str | None,
    trainee: str | None,
    series: str | None,
) -> AtHand:
    """Up to the ticket."""
    if hand := attempt.settle(cluster, say):
        raise lifecycle.one_at_a_time(hand)
    _, provider, wanted = drill_start.nodes_for(drill, overlay, profile, cluster, provider_name, inventory)
    if hand := attempt.settle(provider.cluster, say):  # of an inventory, it has the inventory's name
        raise lifecycle.one_at_a_time(hand)
    if provider.capabilities.shares_kernel:
        say(
            "the nodes are containers: root in them is root on this machine, and what you break there may be its own"
        )
    wanted = replace(wanted, trainee=trainee or None, gameday=series)
    with (
        Store.open(paths.database()) as store,
        lock.cluster_lock(provider.cluster, f"beginning the drill {drill.name}") as locked,
    ):
        return interruptible(lifecycle.begin(wanted, provider, store, locked, say))


def _give(drill: Drill, hand: AtHand, record: bool) -> None:
    """The ticket, and a shell where there is somebody to use it."""
    out = output()
    drill_text.ticket(drill, out)
    drill_text.ways(*endpoints(load_inventory(hand.inventory))[0], out)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        if record:
            say("nothing is recorded: there is no terminal")
        return
    recording = None
    if record:
        recording = hand.database.parent / "recordings" / f"{hand.attempt_id}.cast"
        say(f"what the shell shows is recorded in {recording}")
    say("a shell on the client opens; leaving it does not end the drill")
    sys.stdout.flush()
    drill_shell.open_shell(_shell(hand), recording)
    say("the drill goes on: ./task drill:check says whether it is repaired")


def _shell(hand: AtHand) -> list[str]:
    found = load_inventory(hand.inventory)
    client = endpoints(found)[0][0]
    return ssh_argv(next(node for node in found.nodes if node.name == client), hand.inventory.parent)


def _at_hand(cluster: str) -> AtHand:
    hand = attempt.settle(cluster, say)
    if hand is None:
        raise lifecycle.no_drill(cluster)
    return hand


@command.command()
@cluster_option
def status(cluster: str) -> None:
    """The ticket again, how long it is since, and what users feel now."""
    hand = _at_hand(cluster)
    drill = drills.load(hand.drill)
    out = output()
    drill_text.ticket(drill, out)
    drill_text.ways(*endpoints(load_inventory(hand.inventory))[0], out)
    with Store.open(hand.database) as store:
        stored = attempts.attempt(store, hand.attempt_id)
        felt = lifecycle.felt(store, hand)
    out.print(
        f"\n{readable(hand.since)} since the ticket, {stored.hints} hints, {stored.failed_checks} failed checks"
    )
    drill_text.felt(felt, out)


@command.command()
@cluster_option
def hint(cluster: str) -> None:
    """A hint that fits what is still wrong. It costs points, which are said before in a terminal."""
    hand = _at_hand(cluster)
    costs = [one.cost for n, one in enumerate(drills.load(hand.drill).hints) if n not in hand.hints]
    if costs and sys.stdin.isatty():
        least, most = min(costs), max(costs)
        told = f"{least}" if least == most else f"{least} to {most}"
        click.confirm(f"It costs {told} points. Take it?", abort=True, err=True)

    async def ask() -> None:
        async with lifecycle.at_hand(cluster, say) as hand:
            with Store.open(hand.database) as store:
                found = await lifecycle.hint(hand, store)
        out = output()
        if found is None:
            out.print("There is no hint left that fits what is still wrong.")
        else:
            out.print(f"{found.text.strip()}\n({found.cost} points)", markup=False)

    interruptible(ask())


@command.command()
@cause_option
@cluster_option
def check(cause: str | None, cluster: str) -> None:
    """Whether the service is back and nothing else was broken on the way. Exit code 1 where it is not.

    Any repair counts that passes: probes are measured again and held against the healthy baseline, guards look for
    what a repair may have broken. Where all pass, the drill ends with its debrief.
    """

    async def judge() -> lifecycle.Verdict:
        async with lifecycle.at_hand(cluster, say) as hand:
            with Store.open(hand.database) as store:
                found = await lifecycle.check(hand, store, cause, say)
            drill_text.verdict(drills.load(hand.drill), found, cause, output())
            if found.checked.passes:
                await _clean_hosts(hand)
            return found

    if not interruptible(judge()).checked.passes:
        sys.exit(1)


@command.command()
@cause_option
@cluster_option
def solve(cause: str | None, cluster: str) -> None:
    """Give up: what it was, how it is repaired, and what each node looked like before and after."""

    async def give_up() -> None:
        async with lifecycle.at_hand(cluster, say) as hand:
            with Store.open(hand.database) as store:
                found = await lifecycle.solve(hand, store, cause, say)
            drill_text.solved(found, cause, output())
            await _clean_hosts(hand)

    interruptible(give_up())


async def _clean_hosts(hand: AtHand) -> None:
    """Somebody's hosts get back at once what is theirs; nodes of the lab stay to be looked at."""
    if registry.capabilities(hand.provider).makes_nodes:
        say("the nodes stay as they are; ./task lab:up puts them back")
        return
    await lifecycle.leave_hosts(hand, say)


@command.command()
@cluster_option
@provider_option
def stop(cluster: str, provider_name: str | None) -> None:
    """End the drill, whatever it is at, and put the nodes back."""
    hand = attempt.read(cluster)
    provider = hand.made_by(say) if hand else provider_of(cluster, provider_name)
    ended = interruptible(lifecycle.stop(cluster, provider, say))
    say(
        f"the drill {ended} is ended, and the nodes are put back"
        if ended
        else "no drill was at hand; the nodes are put back"
    )


@command.command()
@drill_option
def history(name: str | None) -> None:
    """Attempts at drills: when, by whom, how long it took, how many points."""
    if name:
        drills.load(name)
    for cluster in attempt.clusters():
        attempt.settle(cluster, say)
    found = []
    if paths.database().exists():
        with Store.open(paths.database(), create=False) as store:
            found = attempts.attempts(store, name or None)
    if not found:
        say("nobody has tried a drill yet; ./task drill:list shows them")
        return
    drill_text.history(found, output())


@command.command("gameday")
@click.option("--count", envvar="COUNT", type=click.IntRange(1, 25), help="Begin a series of so many drills.")
@level_option
@course_option
@profile_option
@cluster_option
@provider_option
@trainee_option
@record_option
def gameday_(
    count: int | None,
    level: int | None,
    course: str | None,
    profile: str | None,
    cluster: str,
    provider_name: str | None,
    trainee: str | None,
    record: bool,
) -> None:
    """A series of drills with one score, for a team. Typed again it gives the next ticket, and at last the score."""
    if hand := attempt.settle(cluster, say):
        raise lifecycle.one_at_a_time(hand)
    series = gameday.read(cluster)
    if count is not None:
        chosen = gameday.choose(
            [drill.name for drill in drill_start.among(level, course, profile, provider_name)], count
        )
        series = gameday.Series(chosen, (), trainee or None, profile or None, provider_name or None)
        say(f"a game day of {count} drills")
    if series is None:
        raise UserError(
            "COUNT", "must say how many drills", fix="./task drill:gameday COUNT=5 LEVEL=2 begins a series"
        )
    if not series.left:
        with Store.open(paths.database()) as store:
            found = [attempts.attempt(store, one) for one in series.attempts]
        drill_text.history(found, output())
        output().print(
            f"[bold]the score of the day: {gameday.score([one.score for one in found])} of 100[/bold]"
        )
        gameday.forget(cluster)
        return
    drill = drills.load(series.left[0])
    say(f"drill {len(series.attempts) + 1} of {len(series.drills)}")
    first = series.attempts[0] if series.attempts else None
    hand = _begin(drill, None, series.profile, cluster, series.provider, None, series.trainee, first)
    gameday.write(cluster, series.after(hand.attempt_id))
    _give(drill, hand, record)


@command.command("watch", hidden=True)
@click.argument("cluster")
@click.argument("locked", type=int)
def watch_(cluster: str, locked: int) -> None:
    """Write what is felt while a drill is at hand; started by `start` alone."""
    interruptible(watch.watch(cluster, locked))


command.add_command(drill_prove.prove_)
