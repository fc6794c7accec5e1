"""``bench profiles``: prove every profile by sending and counting, store it, and print the proof."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import replace

import click

from overlaylab.bench import profiles_run, profiles_table
from overlaylab.bench.profiles_plan import KINDS, Step, plan
from overlaylab.bench.profiles_run import SUITE, ProfileBench
from overlaylab.cli.commands.measure import interruptible, provider_for
from overlaylab.cli.options import Own, run_options
from overlaylab.core import lock, paths
from overlaylab.core.documents import names_in, unknown
from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import HOST, ProfileCheck, RunRecord, Variant
from overlaylab.core.progress import PlainConsole, output, readable, say
from overlaylab.providers import Provider, choice, registry
from overlaylab.providers.shaped import on_nodes
from overlaylab.run import experiment
from overlaylab.run.options import Options
from overlaylab.shaping.shaper import Shaper
from overlaylab.specs import cluster as clusters
from overlaylab.specs.profile import Profile, load_profile
from overlaylab.store.store import Store

# (cluster, provider, limits that nodes have for life): what steps have to share to run on the same nodes.
NodesOf = tuple[str, str, tuple[float, float]]


@click.command("profiles")
@run_options(
    profiles=Own("Only these tiers, comma-separated (default: all)."),
    provider=Own("What the nodes are (default: what fits this machine)."),
    dry_run=Own("List what would be checked; start nothing."),
)
@click.option(
    "--clusters",
    "names",
    envvar="CLUSTERS",
    default="pair,three-zones",
    show_default=True,
    help="Where, comma-separated; everything on pair, on others goodput, RTTs and all nodes at once.",
)
@click.option(
    "--kinds", envvar="KINDS", help=f"Only these kinds of checks, comma-separated: {', '.join(KINDS)}."
)
def command(names: str, kinds: str | None, typed: Options) -> None:
    """What each profile does against what it says: goodput, RTT, loss, bursts, jitter, on an idle machine.

    On pair each capped tier is checked at 1500 and at 9001 bytes of MTU, the two-rate ones with a scaled bucket, and
    azure-a1 with loss and jitter. Exit code 1 where a check failed.
    """
    tiers = [load_profile(name) for name in chosen(typed.profiles, names_in(paths.PROFILES), "PROFILES")]
    where = chosen(names, names_in(paths.CLUSTERS), "CLUSTERS")
    lab = Lab(tiers, where, typed.provider)
    wanted = chosen(kinds, tuple(KINDS), "KINDS", "must be kinds of checks")
    steps = plan(sorted(tiers, key=lab.order), where, wanted)
    if typed.dry_run:
        _list(steps, lab)
        return
    with Store.open(paths.database()) as store:
        bench = ProfileBench(store, lab, say)
        try:
            with contextlib.ExitStack() as held:
                for name in where:
                    held.enter_context(lock.cluster_lock(name, SUITE))
                interruptible(bench.run(steps))
        finally:
            proved = read(store, bench.runs)
            profiles_table.show(proved, output(PlainConsole))
    for line in bench.trouble:
        click.echo(f"not to its end: {line}")
    if bench.trouble or any(check.verdict == "fail" for one in proved for check in one.checks):
        sys.exit(1)


def chosen(
    typed: str | None, known: Sequence[str], variable: str, rule: str = "must name files of the checkout"
) -> list[str]:
    """The names in a comma-separated list, each once; all where none are typed. UserError for an unknown one."""
    if not typed:
        return list(known)
    found = list(dict.fromkeys(name.strip() for name in typed.split(",") if name.strip()))
    for name in found:
        if name not in known:
            raise unknown(variable, rule, name, known)
    return found


def read(store: Store, runs: Sequence[tuple[Step, str]]) -> list[profiles_table.Proved]:
    """What the database holds of the runs."""
    found = []
    fields = ProfileCheck.__dataclass_fields__
    for step, run_id in runs:
        rows = store.db.execute("SELECT * FROM profile_check WHERE run_id = ? ORDER BY check_id", (run_id,))
        checks = tuple(ProfileCheck(**{name: row[name] for name in fields}) for row in rows)
        state = store.run(run_id).state
        found.append(profiles_table.Proved(step.cluster, step.profile, run_id, state, checks))
    return found


def _list(steps: Sequence[Step], lab: Lab) -> None:
    total = 0.0
    for step in steps:
        total += step.seconds()
        name, _ = lab.chosen[step.tier.name]
        click.echo(
            f"{step.cluster}: {step.profile.name} ({step.kind}, {name}): about {readable(step.seconds())}"
        )
    click.echo(f"{len(steps)} runs, about {readable(total)} with nodes up")


class Lab:
    """Nodes for step after step: entered anew only where another tier takes other nodes. Raises UserError."""

    def __init__(self, tiers: Sequence[Profile], where: Sequence[str], provider: str | None) -> None:
        self.requests = {
            # The host's own network is the same whatever MTU is set later: one converged state serves all.
            (cluster, tier.name): replace(request, profile=replace(request.profile, mtu=None))
            for cluster in where
            for tier in tiers
            for request in [
                experiment.request(
                    HOST, Options(cluster=cluster, provider=provider, profile=tier.name, seed=0)
                )
            ]
        }
        for name in where:
            clusters.load_cluster(name)
        self.chosen = {tier.name: choice.choose(provider, [Variant(HOST)], tier) for tier in tiers}
        self.provider: Provider | None = None
        self.nodes_of: NodesOf | None = None
        self.entered = False

    def _limits(self, tier: Profile) -> tuple[float, float]:
        """vCPUs and quota that the tier's nodes have for life; zeros: they can be told at any time."""
        for_life = registry.capabilities(self.chosen[tier.name][0]).limits_at_creation
        return (tier.vcpus or 0, tier.quota or 0) if for_life else (0, 0)

    def order(self, tier: Profile) -> tuple[str, float, float]:
        """Sorts tiers so that those of the same nodes follow each other."""
        return self.chosen[tier.name][0], *self._limits(tier)

    async def enter(self, step: Step) -> Shaper:
        request, tier = self.requests[step.cluster, step.tier.name], step.tier
        chosen = self.chosen[tier.name]
        nodes_of = (step.cluster, chosen[0], self._limits(tier))
        if nodes_of != self.nodes_of:
            await self._give_up(nodes_of)
            say(chosen[1])
            registry.make_ready(chosen[0])
            self.provider = provider_for(request, chosen)
            await self.provider.prepare([Variant(HOST)], say)
            self.nodes_of = nodes_of
        assert self.provider is not None
        if not self.entered:
            await self.provider.enter(Variant(HOST))
            self.entered = True
        await self.provider.renew()
        return on_nodes(self.provider, step.profile)

    async def _give_up(self, following: NodesOf) -> None:
        """Nodes that run beside those that are measured take a share of the CPU."""
        provider, before = self.provider, self.nodes_of
        if provider is None or before is None:
            return
        await self.leave()
        self.provider = self.nodes_of = None
        if before[:2] != following[:2]:
            await provider.down()

    def record(self, step: Step) -> RunRecord:
        assert self.provider is not None
        request = replace(self.requests[step.cluster, step.tier.name], profile=step.profile)
        return replace(
            experiment.record(request, self.provider),
            suite=SUITE,
            suite_digest=profiles_run.digest(),
            blocks=1,
            seed=0,
            arguments={
                "suite": SUITE,
                "cluster": step.cluster,
                "provider": request.provider,
                "profile": step.profile.name,
                "varies": step.tier.name,
                "kind": step.kind,
            },
        )

    async def leave(self) -> None:
        self.entered = False
        if self.provider is not None:
            try:
                await self.provider.leave()
            except (NodeError, UserError) as error:
                say(f"could not tidy up: {error}")
