"""Transfers that accuracy is judged by: what both ends counted, read from recorded reports."""

import json
from pathlib import Path

import pytest
from lab_builders import inventory
from lab_fakes import FIXTURES, FakeNodes

from overlaylab.bench.profiles_judge import Second, Udp
from overlaylab.bench.profiles_probe import Probe, read_series, read_udp
from overlaylab.core.errors import NodeError


def report(name: str) -> dict:
    return json.loads((Path(FIXTURES) / "iperf3" / f"{name}.out").read_text())


def test_udp_counts_what_both_ends_saw() -> None:
    assert read_udp(report("3.12-udp-overload")) == Udp(20_716, 16_721, 1448, 1.999938, 0)
    # What came to the node and found the receiver's socket full was carried by the network.
    assert read_udp(report("3.12-udp-overload"), 3000).received == 19_721
    assert read_udp(report("3.12-udp-overload"), 9000).received == 20_716
    jumbled = report("3.12-udp")
    jumbled["server_output_json"]["end"]["streams"][0]["udp"]["out_of_order"] = 3
    assert read_udp(jumbled).overtaken == 3


def test_a_series_is_the_receivers_without_slivers() -> None:
    series = read_series(report("3.12-tcp-parallel"))
    assert series == [
        Second(0, 1.000116, 12_028_200),
        Second(6.1e-05, 1.000013, 11_964_824),
        Second(1.000013, 2.000018, 11_957_584),
    ]


async def test_a_transfer_names_port_interval_and_streams() -> None:
    nodes = FakeNodes(inventory("a", "a"), {"iperf3": json.dumps(report("3.12-tcp"))})
    await Probe(nodes).series("node1", "node2", seconds=2, interval=0.25, server_number=1)
    (script,) = nodes["node1"].log
    assert "--client 192.168.77.12 --port 5202" in script
    assert "--time 2 --omit 0 --interval 0.25 --parallel 1" in script


async def test_a_tool_that_fails_is_the_nodes_failure() -> None:
    nodes = FakeNodes(inventory("a", "a"), {"iperf3": "{}"})
    with pytest.raises(NodeError, match=r"iperf3 from node1 to node2: iperf3's report has no end"):
        await Probe(nodes).tcp("node1", "node2", seconds=4, omit=1)
