"""The order of an experiment."""

from collections import Counter
from dataclasses import replace

import pytest
from lab_builders import inventory

from overlaylab.core.model import Variant
from overlaylab.run.plan import cells, endpoints, overhead_key, pairs, plan_trials, with_host
from overlaylab.specs import overlays
from overlaylab.specs.suite import load_suite

HOST = Variant("host")
WEAVE = tuple(overlays.select("weave", "fastdp,fastdp-encrypted,sleeve,sleeve-encrypted"))
VARIANTS = with_host(WEAVE, HOST)
QUICK = load_suite("quick")
PAIR = inventory("a", "a")


def plan(seed: int = 7, blocks: int = 6, suite=QUICK, variants=VARIANTS):
    return plan_trials(suite, variants, blocks, seed, PAIR)


def order(trials, block: int) -> list[Variant]:
    """The variants of a block as they come."""
    return list(dict.fromkeys(t.variant for t in trials if t.block == block))


def test_the_host_is_in_every_plan_once_and_first_in_its_list() -> None:
    assert with_host(WEAVE, HOST) == (HOST, *WEAVE)
    assert with_host((HOST,), HOST) == (HOST,)
    assert with_host((WEAVE[0], HOST, WEAVE[0]), HOST) == (HOST, WEAVE[0])


def test_every_block_holds_every_variant_once_with_every_benchmark() -> None:
    trials = plan()
    assert Counter((t.block, t.variant, t.benchmark) for t in trials) == {
        (block, variant, benchmark): 1
        for block in range(1, 7)
        for variant in VARIANTS
        for benchmark in ("tcp-goodput", "tcp-latency")
    }
    for block in range(1, 7):
        assert [t.position for t in trials if t.block == block] == list(range(10))


def test_the_order_comes_from_the_seed_alone() -> None:
    assert plan(seed=7) == plan(seed=7)
    assert plan(seed=7) != plan(seed=8)
    # Kept over versions, or an interrupted run could not be planned again.
    assert [[v.key for v in order(plan(seed=7), b)] for b in (1, 2)] == [
        ["sleeve-encrypted", "host", "sleeve", "fastdp", "fastdp-encrypted"],
        ["fastdp-encrypted", "sleeve", "fastdp", "sleeve-encrypted", "host"],
    ]


def test_each_block_has_an_order_of_its_own_and_no_place_is_anybodys() -> None:
    trials = plan(blocks=200)
    first = Counter(order(trials, block)[0] for block in range(1, 201))
    assert set(first) == set(VARIANTS)
    assert all(20 <= count <= 65 for count in first.values())  # 40 are expected


def test_more_blocks_begin_as_fewer_do() -> None:
    assert plan(blocks=6)[: len(plan(blocks=2))] == plan(blocks=2)


def test_warmups_come_first_and_are_marked() -> None:
    (goodput, latency) = QUICK.benchmarks
    suite = replace(QUICK, benchmarks=(replace(goodput, warmups=1, repetitions=2), latency))
    trials = plan(suite=suite, blocks=1, variants=(HOST,))
    assert [(t.benchmark, t.repetition, t.warmup) for t in trials] == [
        ("tcp-goodput", 1, True),
        ("tcp-goodput", 2, False),
        ("tcp-goodput", 3, False),
        ("tcp-latency", 1, False),
    ]


def test_a_trial_says_all_that_it_takes() -> None:
    trial = next(t for t in plan() if t.variant == WEAVE[0] and t.block == 3)
    assert (trial.tool, trial.benchmark, trial.parameters) == (
        "iperf3",
        "tcp-goodput",
        QUICK.benchmarks[0].parameters,
    )
    assert (trial.client_node, trial.server_node) == ("node1", "node2")
    assert (trial.placement, trial.direction) == ("remote", "client-to-server")


def test_a_cell_is_what_one_entering_of_a_variant_serves() -> None:
    trials = list(enumerate(plan(blocks=2), 100))
    found = cells(trials)
    assert [len(cell) for cell in found] == [2] * 10
    assert [(cell[0][1].block, cell[0][1].variant) for cell in found] == [
        (block, variant) for block in (1, 2) for variant in order(plan(blocks=2), block)
    ]
    assert [trial_id for cell in found for trial_id, _ in cell] == list(range(100, 120))


def test_cells_of_what_is_left_are_whole_or_part_of_what_they_were() -> None:
    left = list(enumerate(plan(blocks=2), 100))[3:]
    assert [len(cell) for cell in cells(left)] == [1, *[2] * 8]
    assert cells(list(reversed(left))) == cells(left)
    assert cells([]) == []


def test_the_same_variant_at_the_seam_of_two_blocks_is_two_cells() -> None:
    trials = list(enumerate(plan(blocks=3, variants=(HOST,))))
    assert [cell[0][1].block for cell in cells(trials)] == [1, 2, 3]


# -- between whom -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zones", "between"),
    [
        ("aa", ["12"]),
        ("ab", ["12"]),
        ("aab", ["12"]),  # two zones at most: the first two nodes
        ("abc", ["12", "13", "23"]),
        ("cba", ["12", "13", "23"]),
        ("aabc", ["13", "14", "34"]),
        ("abcd", ["12", "13", "14", "23", "24", "34"]),
    ],
)
def test_with_more_than_two_zones_every_pair_of_zones_is_measured_once(zones, between) -> None:
    expected = tuple((f"node{a}", f"node{b}") for a, b in between)
    assert endpoints(inventory(*zones)) == expected


def test_all_pairs_share_one_entering_of_a_variant() -> None:
    trials = plan_trials(QUICK, VARIANTS, 2, 7, inventory("a", "b", "c"))
    assert [t.variant for t in trials[::6]] == [t.variant for t in plan(blocks=2)[::2]]  # the same order
    found = cells(list(enumerate(trials)))
    assert [len(cell) for cell in found] == [6] * 10
    goodput, latency = "tcp-goodput", "tcp-latency"
    assert [(nodes, [t.benchmark for _, t in own]) for nodes, own in pairs(found[0])] == [
        (("node1", "node2"), [goodput, latency]),
        (("node1", "node3"), [goodput, latency]),
        (("node2", "node3"), [goodput, latency]),
    ]
    assert [t.position for _, t in found[0]] == [0, 1, 2, 3, 4, 5]


def test_what_is_left_of_a_cell_keeps_its_pairs() -> None:
    trials = list(enumerate(plan_trials(QUICK, (HOST,), 1, 7, inventory("a", "b", "c"))))
    (left,) = cells(trials[3:])
    assert [(nodes, [n for n, _ in own]) for nodes, own in pairs(left)] == [
        (("node1", "node3"), [3]),
        (("node2", "node3"), [4, 5]),
    ]


def test_what_is_measured_within_a_node_comes_last_and_on_the_first_one() -> None:
    goodput, latency = QUICK.benchmarks
    suite = replace(QUICK, benchmarks=(replace(goodput, placement="local"), latency))
    trials = plan(suite=suite, blocks=1, variants=(HOST,))
    assert [(t.benchmark, t.placement, t.client_node, t.server_node) for t in trials] == [
        ("tcp-latency", "remote", "node1", "node2"),
        ("tcp-goodput", "local", "node1", "node1"),
    ]
    wide = plan_trials(suite, (HOST,), 1, 7, inventory("a", "b", "c"))
    (cell,) = cells(list(enumerate(wide)))
    assert [nodes for nodes, _ in pairs(cell)] == [
        ("node1", "node2"),
        ("node1", "node3"),
        ("node2", "node3"),
        ("node1", "node1"),
    ]


def test_what_a_cell_takes_is_remembered_by_its_number_of_pairs() -> None:
    assert overhead_key(WEAVE[0], "tcg", 1) == "cell-overhead-weave-tcg"
    assert overhead_key(HOST, "kvm", 3) == "cell-overhead-host-kvm-3-pairs"
