"""The order of an experiment: blocks that hold every variant once, each block in an order of its own."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from overlaylab.core.model import PlannedTrial, Variant
from overlaylab.specs.cluster import ClusterSpec
from overlaylab.specs.inventory import Inventory
from overlaylab.specs.suite import BenchmarkSpec, Suite

T = TypeVar("T")
# Placements: client and server on two nodes, or in two endpoints of one.
REMOTE, LOCAL = "remote", "local"


def with_host(variants: Sequence[Variant], host: Variant) -> tuple[Variant, ...]:
    """The variants with the host network first, each once."""
    return tuple(dict.fromkeys((host, *variants)))


def plan_trials(
    suite: Suite, variants: Sequence[Variant], blocks: int, seed: int, inventory: Inventory
) -> tuple[PlannedTrial, ...]:
    """Randomised complete blocks: `blocks` blocks, every variant once in each, in random order.

    The order comes from `seed` alone, so that a run can be planned again exactly. Within a variant the
    suite's benchmarks keep their order, between one pair of `endpoints` after the other, and then within the first
    node: they share what entering the variant cost.
    Source: R. A. Fisher's randomised blocks; drift of the machine over a run then hits all variants alike.
    """
    chance = random.Random(seed)
    first = inventory.nodes[0].name
    between = [*((REMOTE, pair) for pair in endpoints(inventory)), (LOCAL, (first, first))]
    trials = []
    for block in range(1, blocks + 1):
        order = list(variants)
        chance.shuffle(order)
        position = 0
        for variant in order:
            for (placement, (client, server)), benchmark in itertools.product(between, suite.benchmarks):
                if benchmark.placement != placement:
                    continue
                for repetition in range(1, benchmark.warmups + benchmark.repetitions + 1):
                    planned = planned_trial(benchmark, variant, block, position, (client, server))
                    warmup = repetition <= benchmark.warmups
                    trials.append(replace(planned, repetition=repetition, warmup=warmup))
                    position += 1
    return tuple(trials)


def planned_trial(
    benchmark: BenchmarkSpec, variant: Variant, block: int, position: int, nodes: tuple[str, str]
) -> PlannedTrial:
    """A suite's benchmark at one place of the plan, its first repetition. nodes: the client's and the server's."""
    return PlannedTrial(
        block=block,
        position=position,
        variant=variant,
        benchmark=benchmark.name,
        tool=benchmark.tool,
        parameters=benchmark.parameters,
        repetition=1,
        placement=benchmark.placement,
        client_node=nodes[0],
        server_node=nodes[1],
        direction=benchmark.direction,
    )


def endpoints(inventory: Inventory | ClusterSpec) -> tuple[tuple[str, str], ...]:
    """(client's node, server's node) of every pair between which a benchmark runs.

    In up to two zones the first two nodes. In more, every pair of zones once, or the delays between the others
    would never be seen: from the first node of the one to the first node of the other, zones in the order of
    their first nodes.
    """
    first: dict[str, str] = {}
    for node in inventory.nodes:
        first.setdefault(node.zone, node.name)
    if len(first) <= 2:
        return ((inventory.nodes[0].name, inventory.nodes[1].name),)
    return tuple(itertools.combinations(first.values(), 2))


def cells(trials: Sequence[tuple[T, PlannedTrial]]) -> list[list[tuple[T, PlannedTrial]]]:
    """Consecutive trials of one variant within one block: what one entering of the variant serves."""
    ordered = sorted(trials, key=lambda pair: (pair[1].block, pair[1].position))
    return [
        list(group)
        for _, group in itertools.groupby(ordered, key=lambda pair: (pair[1].block, pair[1].variant))
    ]


def pairs(
    cell: Sequence[tuple[T, PlannedTrial]],
) -> list[tuple[tuple[str, str], list[tuple[T, PlannedTrial]]]]:
    """((client's node, server's node), trials) of a cell, in its order: what one start of the servers serves."""
    return [
        (nodes, list(group))
        for nodes, group in itertools.groupby(
            cell, key=lambda pair: (pair[1].client_node, pair[1].server_node)
        )
    ]


def is_fresh(block: int, every: int) -> bool:
    """Whether a block's nodes are booted for each variant: every so many-th is, none where that is 0."""
    return every > 0 and block % every == 0


def overhead_key(variant: Variant, accelerator: str, between: int) -> str:
    """Under which `progress` remembers what a cell takes around its trials, with `between` pairs of endpoints."""
    key = f"cell-overhead-{variant.overlay}-{accelerator}"
    return key if between == 1 else f"{key}-{between}-pairs"
