"""What scripts are told, and in which order they run."""

import subprocess
from dataclasses import replace

import pytest
from lab_builders import inventory
from lab_drills import FLANNEL, NODES, PLACES
from lab_fakes import FakeNodes, failed

from overlaylab.core.errors import NodeError
from overlaylab.drills import scripts


def test_each_node_has_its_role_and_its_other_end() -> None:
    three = inventory("a", "a", "a")
    places = scripts.places(three, {"node1": "10.0.0.1", "node2": "10.0.0.2", "node3": "10.0.0.3"})
    assert [(p.node, p.role, p.peer_address, p.endpoint, p.peer_endpoint) for p in places] == [
        ("node1", "client", "192.168.77.12", "10.0.0.1", "10.0.0.2"),
        ("node2", "server", "192.168.77.11", "10.0.0.2", "10.0.0.1"),
        ("node3", "other", "192.168.77.12", "10.0.0.3", "10.0.0.2"),
    ]


def test_a_script_has_its_variables() -> None:
    text = 'echo "$NODE $ROLE $UNDERLAY $ADDRESS $PEER_ADDRESS $ENDPOINT $PEER_ENDPOINT $OVERLAY $MODE"'
    place = replace(scripts.at(PLACES, "server"), underlay="eth 1;")
    done = subprocess.run(
        ["sh", "-c", scripts.with_variables(place, FLANNEL, text)], capture_output=True, text=True
    )
    assert done.stdout == (
        "node2 server eth 1; 192.168.77.12 192.168.77.11 10.244.2.2 10.244.1.2 flannel vxlan\n"
    )


async def test_they_run_one_after_the_other_through_the_open_shell() -> None:
    nodes = FakeNodes(NODES, {"break it": ""})
    await scripts.run(nodes, PLACES, FLANNEL, "break it", "the injection")
    # With input, they would have a session of their own, whose command sudo writes into the journal.
    assert [node.stdin for node in nodes.values()] == [[None], [None]]


async def test_the_first_that_fails_is_the_last() -> None:
    nodes = FakeNodes(NODES, {"break it": failed(3, "no route\nto replace")})
    with pytest.raises(NodeError, match="node1: the injection ended with 3: no route / to replace"):
        await scripts.run(nodes, PLACES, FLANNEL, "break it", "the injection")
    assert nodes["node2"].log == []
