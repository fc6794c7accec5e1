"""Cycles of the prober: as many as are asked for, and none where nothing can be used."""

from contextlib import aclosing

import pytest
from lab_drills import BROKEN, HEALTHY, PLACES, ProbedNodes

from overlaylab.core.errors import NodeError
from overlaylab.drills import probing
from overlaylab.drills.on_node.prober import ANEW
from overlaylab.nodes.ssh import Ended


@pytest.fixture
def nodes() -> ProbedNodes:
    return ProbedNodes({})


async def test_a_window_is_so_many_cycles_of_each_end(nodes) -> None:
    nodes["node2"].printed = (BROKEN,) * 3
    seen = await probing.window(nodes, PLACES, 3, {"client": 15.0, "server": 3.5})
    assert [one.cycle.values["fetched"] for one in seen if one.role == "client"] == [1, 1, 1]
    assert [one.cycle.values["fetched"] for one in seen if one.role == "server"] == [0, 0, 0]
    assert [one.at for one in seen] == sorted(one.at for one in seen)
    assert nodes["node1"].log == ["ip netns exec endpoint python3 -u - 10.244.2.2 10.244.2.2 15 1"]
    assert nodes["node2"].log == ["ip netns exec endpoint python3 -u - 10.244.1.2 10.244.2.2 3.5 1"]


async def test_it_is_started_anew_where_its_namespace_was_replaced(nodes) -> None:
    node = nodes["node1"]
    node.printed, node.after = (HEALTHY,), Ended("node1", ANEW, "")
    seen = await probing.window(nodes, PLACES, 3, {"client": 15.0})
    assert len(seen) == 3 and len(node.log) == 3


async def test_an_endpoint_that_is_gone_is_a_cycle_without_values(nodes, monkeypatch) -> None:
    monkeypatch.setattr(probing, "EVERY", 0)
    node = nodes["node1"]
    node.printed, node.after = (), Ended("node1", 1, 'Cannot open network namespace "endpoint"\n')
    (seen,) = await probing.window(nodes, PLACES, 1, {"client": 15.0})
    assert set(seen.cycle.values.values()) == {None}
    assert seen.cycle.reasons["goodput"] == 'Cannot open network namespace "endpoint"'


async def test_a_node_that_does_not_answer_is_told(nodes) -> None:
    nodes["node1"].printed, nodes["node1"].after = (), NodeError("node1: no SSH")
    running = probing.cycles(nodes["node1"], PLACES[0], "10.244.2.2", 3)
    async with aclosing(running):
        with pytest.raises(NodeError, match="no SSH"):
            await anext(running)
