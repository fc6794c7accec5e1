"""A run between more than two nodes: whose server is started, whose client runs, and how it is told."""

import lab_run
import pytest
from lab_builders import inventory
from lab_run import FASTDP, HOST, PROBE, Bench

from overlaylab.core.errors import NodeError

PAIRS = [("node1", "node2"), ("node1", "node3"), ("node2", "node3")]


@pytest.fixture
def bench(lab_store, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A plan over three zones."""
    monkeypatch.setattr(lab_run, "LAB", inventory("a", "b", "c"))
    return Bench(lab_store, variants=(HOST, FASTDP), blocks=1)


def test_the_plan_has_every_pair(bench) -> None:
    assert [(t.client_node, t.server_node) for t in bench.plan[::2]] == PAIRS * 2


async def test_each_variant_is_entered_once_for_all_pairs(bench) -> None:
    await bench.run()
    assert bench.outcomes() == [("ok", None)] * 12
    assert bench.lab.entered == [HOST, bench.plan[0].variant, bench.plan[6].variant]
    assert bench.rows("SELECT DISTINCT client_node, server_node FROM result ORDER BY 1, 2") == PAIRS


async def test_endpoints_are_told_to_the_profile_where_nothing_encapsulates(bench) -> None:
    told = {}

    async def apply() -> dict[str, list[str]]:
        told[bench.lab.current] = bench.shaper.endpoints
        return bench.shaper.problems

    bench.shaper.apply_and_read_back = apply
    await bench.run()
    assert told == {HOST: dict.fromkeys(("node1", "node2", "node3"), "10.32.0.2"), FASTDP: {}}


async def test_servers_are_started_for_each_pair_on_its_own_server(bench) -> None:
    await bench.run()
    started = {n.name: sum("systemd-run" in script for script in n.log) for n in bench.lab.nodes.values()}
    assert started == {"node1": 0, "node2": 2, "node3": 4}
    clients = {n.name: sum("iperf3 --client" in script for script in n.log) for n in bench.lab.nodes.values()}
    assert clients == {"node1": 4, "node2": 2, "node3": 0}


async def test_the_proof_of_a_trial_is_of_its_own_pair(bench) -> None:
    await bench.run()
    rows = bench.rows(
        "SELECT client_node, node, count(*) FROM _evidence JOIN _trial USING (trial_id)"
        " WHERE kind = 'wire' GROUP BY 1, 2"
    )
    assert rows == [("node1", "node1", 16), ("node2", "node2", 8)]  # before and after each trial


async def test_progress_names_the_pair_where_there_are_several(bench) -> None:
    await bench.run()
    lines = [line for line in bench.said if "] host tcp-goodput" in line]
    assert [line.split("] ")[1] for line in lines] == [
        f"host tcp-goodput, {client} to {server}: goodput 95.00 Mbit/s, retransmits 0"
        for client, server in PAIRS
    ]


async def test_a_cell_that_is_entered_again_goes_on_with_the_pair_that_broke(bench) -> None:
    fails = iter([False, False, False, True])  # the first pair takes three proofs

    def answer(script: str):
        if next(fails, False):
            return NodeError("node1: gone")
        return lab_run.probe(bench.lab.current)

    bench.lab.nodes.answers[PROBE] = answer
    await bench.run()
    assert bench.outcomes() == [("ok", None)] * 12
    first, second = bench.plan[0].variant, bench.plan[6].variant
    assert bench.lab.entered == [HOST, first, first, second]
    started = {n.name: sum("systemd-run" in script for script in n.log) for n in bench.lab.nodes.values()}
    assert started["node2"] == 2  # the pair that was finished is not begun again
