"""From what was typed to a stored plan, and from a stored plan to the same plan again."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from pathlib import Path

from overlaylab.core import paths, progress
from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.errors import UserError
from overlaylab.core.model import HOST, JSON, PlannedTrial, RunRecord, Variant
from overlaylab.image import systems
from overlaylab.machine import checkout, ready
from overlaylab.providers import Provider, registry, requirements
from overlaylab.run import design, expected_time, reassembly, selection
from overlaylab.run.options import Options, read
from overlaylab.run.plan import cells, endpoints, is_fresh, overhead_key, pairs, plan_trials, with_host
from overlaylab.specs import cluster as clusters
from overlaylab.specs import overlays, profile, routes
from overlaylab.specs.inventory import Inventory, InventoryNode, load_inventory
from overlaylab.specs.overlay_ranges import check_ranges
from overlaylab.specs.suite import Suite, load_suite
from overlaylab.stats.inference import MARGIN

# Part of a cell's overhead that each further pair of endpoints takes: servers and proof, but neither revert nor profile.
PAIR_OVERHEAD = 0.5
# Seconds that proving a profile takes between one pair of zones, and what each further pair adds.
PROOF, PROOF_PAIR = 25.0, 17.0
# Disk per node and snapshot, in bytes: its memory and what changed on its disk.
SNAPSHOT_BYTES = 500_000_000


@dataclass(frozen=True)
class Request:
    """What was typed, checked, before anything starts. inventory: the file of SSH hosts, else None.

    overlay: one overlay's name or ``all``; left_out: {variant that cannot run: why}.
    """

    overlay: str
    # What to type for the same run.
    options: Options
    cluster: str
    inventory: Path | None
    profile: profile.Profile
    suite: Suite
    blocks: int
    seed: int
    # Every so many-th block is measured on nodes that were booted for it; 0: none.
    fresh: int
    rules: design.Rules
    variants: tuple[Variant, ...]
    left_out: Mapping[Variant, str]
    role_arguments: JSON
    # The group of runs that it belongs to, and its tiers in their order (see ``tiers``); else None and ().
    group: str | None = None
    profiles: tuple[str, ...] = ()

    @property
    def provider(self) -> str | None:
        """As typed: libvirt, lxc or virtualbox; None for what fits this machine."""
        return self.options.provider

    @property
    def system(self) -> str:
        """Of the nodes that are made, as `packer/systems` has it."""
        return self.options.system or systems.DEFAULT

    def arguments(self) -> dict[str, object]:
        """What lab:resume needs to build the same plan."""
        group = {} if self.group is None else {"group": self.group, "profiles": list(self.profiles)}
        return {**group, "overlay": self.overlay, **self.options.stored(), **self.rules.arguments()}


def request(overlay: str, typed: Options = Options()) -> Request:
    """Check everything that was typed. Raises UserError; nothing has been started then."""
    wanted = load_suite(typed.suite)
    tier = profile.load_profile(typed.profile or ("none" if typed.inventory else "azure-a1"))
    carrier = registry.of_inventory() if typed.inventory else typed.provider
    chosen = selection.select(overlay, typed.modes, typed.overlays, tier, carrier)
    also = (
        tuple(v for v in selection.parse_modes(",".join(wanted.also)) if v not in chosen.variants)
        if wanted.also
        else ()
    )
    requirements.refuse_cards((*chosen.variants, *also), tier, carrier or registry.fallback())
    host_variant = overlays.select(HOST)[0]
    typed.check()
    if typed.fresh and typed.inventory:
        raise UserError(
            "FRESH", "cannot be combined with INVENTORY: SSH hosts are not the lab's to boot",
            seen=typed.fresh, fix="Leave it out",
        )  # fmt: skip
    cluster = typed.cluster or wanted.cluster
    spec = clusters.load_cluster(cluster)
    if typed.provider is not None:
        registry.check(typed.provider)
        if typed.inventory:
            raise UserError(
                "PROVIDER", "cannot be combined with INVENTORY: SSH hosts are there already",
                seen=typed.provider, fix="Leave one of the two out",
            )  # fmt: skip
    if typed.system is not None:
        systems.load(typed.system)
        if typed.inventory:
            raise UserError(
                "SYSTEM", "cannot be combined with INVENTORY: SSH hosts have one already",
                seen=typed.system, fix="Leave one of the two out",
            )  # fmt: skip
    path = paths.typed(typed.inventory) if typed.inventory else None
    where = load_inventory(path) if path else spec
    profile.check_zones(tier, where)
    if len(where.nodes) < 2:
        raise UserError(str(path), "must have at least two hosts", seen=len(where.nodes), fix="Add one")
    own_arguments = _own_arguments(overlay, typed.arguments)
    variants = with_host((*also, *chosen.variants), host_variant)
    comparisons = design.comparisons_of(variants, len(endpoints(where)))
    rules, blocks = design.settle(wanted, comparisons, typed.margin, typed.precision, typed.blocks)
    for name in dict.fromkeys(variant.overlay for variant in (*chosen.variants, *also)):
        _check_addresses(overlays.with_arguments(overlays.load(name), own_arguments), spec, path)
    seed = secrets.randbelow(2**31) if typed.seed is None else typed.seed
    fresh = 0 if path else wanted.fresh if typed.fresh is None else typed.fresh
    settled = replace(
        typed,
        profiles=None,
        overlays=typed.overlays or None,
        cluster=cluster,
        inventory=str(path.resolve()) if path else None,
        profile=tier.name,
        blocks=blocks,
        fresh=None if path or fresh == wanted.fresh else fresh,
        seed=seed,
        margin=None if rules.margin == MARGIN else rules.margin,
        dry_run=False,
    )
    return Request(
        overlay=overlay,
        options=settled,
        cluster=cluster,
        inventory=path,
        profile=tier,
        suite=wanted.scaled(typed.scale),
        blocks=blocks,
        seed=seed,
        fresh=fresh,
        rules=rules,
        variants=variants,
        left_out=chosen.left_out,
        role_arguments={overlay: own_arguments} if own_arguments else {},
    )


def again(arguments: JSON, provider: str, profile_name: str | None = None) -> Request:
    """The request that a run's arguments came from; with another tier of its group where one is named.

    provider: what the run was measured on. Raises UserError where files or machine do not allow it any more.
    """
    typed = read(arguments)
    typed = replace(
        typed,
        provider=None if typed.inventory else provider,
        profile=profile_name or typed.profile,
    )
    group, profiles = arguments.get("group"), tuple(arguments.get("profiles", ()))
    return replace(request(arguments["overlay"], typed), group=group, profiles=profiles)


def _own_arguments(overlay: str, written: str | None) -> JSON:
    if overlay != selection.ALL:
        return overlays.role_arguments(overlay, written)
    if written:
        raise UserError("ARGUMENTS", "are one overlay's: not with all of them", seen=written,
                        fix="Measure that overlay on its own, such as ./task lab:weave")  # fmt: skip
    return {}


def _check_addresses(overlay: overlays.Overlay, spec: clusters.ClusterSpec, inventory: Path | None) -> None:
    """Refuse addresses of the lab that the operator already uses for something else."""
    reached = routes.known()
    own = _bridges_of(spec.underlay, reached)
    if inventory is None:
        clusters.check_routes(spec, reached, own)
        check_ranges(overlay, spec, reached, own)
    else:
        for node in load_inventory(inventory).nodes:
            check_ranges(overlay, node.underlay_address.network, reached, own)


def _bridges_of(network: IPv4Network, routes: Sequence[JSON]) -> set[str]:
    """The devices that libvirt made for the lab: their route is exactly the underlay's or their name is virbr…"""
    return {r["dev"] for r in routes if r.get("dev", "").startswith("virbr") and r.get("dst") == str(network)}


def plan(request: Request, inventory: Inventory) -> tuple[PlannedTrial, ...]:
    """The trials in their order; the same request gives the same plan."""
    return plan_trials(request.suite, request.variants, request.blocks, request.seed, inventory)


def record(request: Request, provider: Provider) -> RunRecord:
    """What the run is about, with the digests that resuming compares."""
    return RunRecord(
        cluster=provider.cluster,
        provider=provider.name,
        accelerator=provider.accelerator,
        machine=ready.machine() if provider.capabilities.on_this_machine else _machines(provider),
        image=provider.image,
        profile=request.profile.name,
        profile_digest=request.profile.digest,
        stands_for=request.profile.stands_for,
        suite=request.suite.name,
        suite_digest=request.suite.digest,
        scale=request.options.scale,
        seed=request.seed,
        blocks=request.blocks,
        variants=request.variants,
        role_digests={
            name: overlays.role_digest(name) for name in sorted({v.overlay for v in request.variants})
        },
        zones={node.name: node.zone for node in provider.inventory.nodes},
        nodes=provider.describe(),
        arguments=request.arguments(),
        lab_version=str(checkout.described()),
        system=provider.system,
        kit=provider.kit,
    )


def _machines(provider: Provider) -> str:
    """The kinds of host, without their names."""
    kinds = {
        f"{d['cpus']} CPUs, {d['cpu'] or 'CPU unknown'}, {d['memory_mib']} MiB"
        for d in provider.describe().values()
    }
    return "; ".join(sorted(kinds))


def changes(stored: RunRecord, now: RunRecord) -> list[str]:
    """What differs between a run's record and today's files, in words: a run is not resumed over it."""
    found = []
    for name in ("profile", "suite"):
        if getattr(stored, f"{name}_digest") != getattr(now, f"{name}_digest"):
            found.append(f"the {name} {getattr(stored, name)} has changed")
    found += [
        f"the role of {name} has changed"
        for name, digest in stored.role_digests.items()
        if now.role_digests.get(name) != digest
    ]
    for name in ("accelerator", "image", "machine", "provider", "system", "kit"):
        if getattr(stored, name) != getattr(now, name):
            found.append(f"{name} was {getattr(stored, name)} and is {getattr(now, name)}")
    found += [
        f"{name} is another node: {dict(stored.nodes.get(name) or {})} before, {dict(now.nodes.get(name) or {})} now"
        for name in sorted({*stored.nodes, *now.nodes})
        if stored.nodes.get(name) != now.nodes.get(name)
    ]
    return found


@dataclass(frozen=True)
class Estimate:
    """What a run will take. seconds: without bringing the cluster up; disk, memory: bytes."""

    seconds: float
    memory: int
    disk: int


def estimate(request: Request, trials: Sequence[PlannedTrial], accelerator: str) -> Estimate:
    """From the trials' own durations and what a cell took around them on this machine before.

    trials: those that are still to come.
    """
    zones = {node.name: node.zone for node in planning_inventory(request).nodes}
    inside = expected_time.of_trials(trials, request.profile, zones, accelerator)
    between = len({(t.client_node, t.server_node) for t in trials}) or 1
    blocks = {t.block for t in trials}
    waiting = sum(
        reassembly.expected([trial for _, trial in between_two], request.profile)
        for cell in cells(list(enumerate(trials)))
        for _, between_two in pairs(cell)
    )
    around = (
        PROOF
        + PROOF_PAIR * (between - 1)
        + len(blocks) * sum(_overhead(v, accelerator, between) for v in request.variants)
    )
    anew = sum(is_fresh(block, request.fresh) for block in blocks)
    around += anew * sum(_boot_and_converge(v, accelerator) for v in request.variants)
    nodes = clusters.load_cluster(request.cluster).nodes if request.inventory is None else ()
    return Estimate(
        seconds=inside + waiting + around,
        memory=sum(node.memory_mib for node in nodes) * 2**20,
        disk=len(nodes) * (len(request.variants) + 1) * SNAPSHOT_BYTES,
    )


def _overhead(variant: Variant, accelerator: str, between: int) -> float:
    """Seconds around the trials of one cell with `between` pairs of endpoints."""
    if known := progress.estimate(overhead_key(variant, accelerator, between)):
        return known
    unmeasured = ACCELERATORS[accelerator].cell_overhead
    one = progress.estimate(overhead_key(variant, accelerator, 1), unmeasured) or 0.0
    return one * (1 + PAIR_OVERHEAD * (between - 1))


def _boot_and_converge(variant: Variant, accelerator: str) -> float:
    """Seconds more for a cell whose nodes are booted for it; containers always are."""
    if not ACCELERATORS[accelerator].has_own_kernel:
        return 0.0
    names = (f"boot-{accelerator}", 30.0), (f"converge-{variant.overlay}-{accelerator}", 40.0)
    return sum(progress.estimate(name, default) or 0.0 for name, default in names)


def planning_inventory(request: Request) -> Inventory:
    """An inventory to plan with, also where no node is up yet: only names and zones matter."""
    if request.inventory:
        return load_inventory(request.inventory)
    spec = clusters.load_cluster(request.cluster)
    return Inventory(
        spec.name,
        request.provider or registry.fallback(),
        tuple(
            InventoryNode(n.name, "unknown", 22, "lab", None, None, "eth1", n.underlay_address, n.zone)
            for n in spec.nodes
        ),
    )


def command_line(request: Request) -> str:
    """The task that asks for this again."""
    options = request.options
    if request.group:
        options = replace(options, profiles=",".join(request.profiles), profile=None)
    return " ".join([f"./task lab:{request.overlay}", *options.words()])
