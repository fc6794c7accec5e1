"""The order of an experiment: blocks that hold every variant once, each block in an order of its own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import groupby

from overlaylab.inventory import Inventory
from overlaylab.model import PlannedTrial, Variant
from overlaylab.suite import Suite

HOST = "host"
"""The overlay that is the baseline: it is in every block."""


def with_host(variants: Sequence[Variant], host: Variant) -> tuple[Variant, ...]:
    """The variants with the host network first, each once."""
    return tuple(dict.fromkeys((host, *variants)))


def plan_trials(
    suite: Suite, variants: Sequence[Variant], blocks: int, seed: int, inventory: Inventory
) -> tuple[PlannedTrial, ...]:
    """Randomised complete blocks: `blocks` blocks, every variant once in each, in random order.

    The order comes from `seed` alone, so that a run can be planned again exactly. Within a variant the
    suite's benchmarks keep their order: they share what entering the variant cost.
    Source: R. A. Fisher's randomised blocks; drift of the machine over a run then hits all variants alike.
    """
    chance = random.Random(seed)
    client, server = inventory.nodes[0].name, inventory.nodes[1].name
    trials = []
    for block in range(1, blocks + 1):
        order = list(variants)
        chance.shuffle(order)
        position = 0
        for variant in order:
            for benchmark in suite.benchmarks:
                for repetition in range(1, benchmark.warmups + benchmark.repetitions + 1):
                    trials.append(
                        PlannedTrial(
                            block=block,
                            position=position,
                            variant=variant,
                            benchmark=benchmark.name,
                            tool=benchmark.tool,
                            parameters=benchmark.parameters,
                            repetition=repetition,
                            warmup=repetition <= benchmark.warmups,
                            placement=benchmark.placement,
                            client_node=client,
                            server_node=server,
                            direction=benchmark.direction,
                        )
                    )
                    position += 1
    return tuple(trials)


def cells(trials: Sequence[tuple[str, PlannedTrial]]) -> list[list[tuple[str, PlannedTrial]]]:
    """Consecutive trials of one variant within one block: what one entering of the variant serves."""
    ordered = sorted(trials, key=lambda pair: (pair[1].block, pair[1].position))
    return [list(group) for _, group in groupby(ordered, key=lambda pair: (pair[1].block, pair[1].variant))]
