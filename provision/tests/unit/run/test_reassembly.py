"""Fragments that a flood left behind: seen in every namespace of both nodes, waited for, and not for ever."""

import pytest
from lab_builders import inventory
from lab_fakes import FakeNodes
from lab_run import HOST

from overlaylab.core.errors import NodeError
from overlaylab.core.model import PlannedTrial
from overlaylab.run import reassembly
from overlaylab.run.proof import Ends
from overlaylab.run.reassembly import Waited
from overlaylab.specs.profile import load_profile

# /proc/net/sockstat of a node with a 6.1 kernel.
IDLE = """sockets: used 85
TCP: inuse 4 orphan 0 tw 2 alloc 6 mem 1
UDP: inuse 1 mem 0
UDPLITE: inuse 0
RAW: inuse 0
FRAG: inuse {inuse} memory {memory}
"""


def sockstat(*memory: int) -> str:
    return "".join(IDLE.format(inuse=bytes_ // 10_000, memory=bytes_) for bytes_ in memory)


def ends(server: list[str]) -> Ends:
    """Two nodes; the server answers with these, one after the other, the last for good."""
    nodes = FakeNodes(inventory("a", "a"), {"sockstat": sockstat(0)})
    nodes["node2"].answers["sockstat"] = lambda _: server.pop(0) if len(server) > 1 else server[0]
    return Ends(HOST, nodes["node1"], nodes["node2"], "192.168.77.11", "192.168.77.12", 1500)


TCP = PlannedTrial(1, 0, HOST, "tcp", "iperf3", {"protocol": "tcp", "duration": 5, "omit": 1, "streams": 1})


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(reassembly, "_PAUSE", 0.0)


def test_the_fullest_namespace_counts() -> None:
    assert reassembly.held(sockstat(0, 4_190_208)) == 4_190_208
    with pytest.raises(NodeError, match="no line FRAG"):
        reassembly.held("sockets: used 85\n")


def udp(offered: float, datagram: int | str) -> PlannedTrial:
    parameters = {"protocol": "udp", "duration": 10, "omit": 0, "streams": 1}
    return PlannedTrial(1, 0, HOST, "udp", "iperf3", parameters | {"offered": offered, "datagram": datagram})


def test_only_a_flood_in_fragments_keeps_the_next_waiting() -> None:
    tier = load_profile("azure-a1")
    flood, small, below, tcp = udp(1e9, 8192), udp(1e9, "path"), udp(9e7, 8192), TCP
    assert reassembly.expected([flood, small], tier) == 30
    assert reassembly.expected([flood], tier) == 0
    assert reassembly.expected([small, small, below, small, flood], tier) == 0
    assert reassembly.expected([flood, flood, small], tier) == 60
    assert reassembly.expected([flood, tcp, small], tier) == 30 - 6


def test_without_a_cap_a_flood_is_more_than_a_gigabit() -> None:
    none = load_profile("none")
    assert reassembly.expected([udp(1e9, 8192), udp(1e6, "path")], none) == 0
    assert reassembly.expected([udp(3e9, 8192), udp(1e6, "path")], none) == 30


async def test_where_nothing_is_left_nobody_waits() -> None:
    nobody = ends([sockstat(0, 200_000)])
    assert await reassembly.emptied(nobody) == Waited(0.0, 200_000)
    assert [len(node.log) for node in nobody.nodes] == [1, 1]


async def test_a_trial_waits_until_the_servers_store_has_emptied() -> None:
    full = ends([sockstat(0, 4_190_208), sockstat(0, 3_000_000), sockstat(0, 0)])
    waited = await reassembly.emptied(full)
    assert (waited.seconds > 0, waited.left) == (True, 0)
    assert [len(node.log) for node in full.nodes] == [3, 3]


async def test_but_not_for_ever() -> None:
    waited = await reassembly.emptied(ends([sockstat(4_190_208)]), patience=0.05)
    assert (waited.seconds >= 0.05, waited.left) == (True, 4_190_208)
