"""Which overlay runs, as its nodes say, and what is told of it."""

import json

import pytest
from lab_builders import inventory
from lab_fakes import FakeNodes, failed

from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import Variant
from overlaylab.live import overlay_live
from overlaylab.live.running_overlay import find

FLOW = "InPortFlowKey{vport: 1} actions SetTunnelAction{ipv4dst: 192.168.77.12, ttl: 64} packets 4"


def status(node: int, **changes) -> dict:
    """What Weave says on node<number>, but for `changes`."""
    other = 3 - node
    right = {
        "overlay": "weave", "mode": "fastdp", "encrypted": False, "version": "2.6.5", "healthy": True, "reason": None,
        "endpoint_address": f"10.32.0.{node}", "endpoint_device": "ethwe", "endpoint_mtu": 1376, "overlay_mtu": 1376,
        "devices": ["weave", "datapath"],
        "peers": [{"address": f"192.168.77.1{other}", "state": "established", "mode": "fastdp", "encrypted": False}],
    }  # fmt: skip
    return right | changes


@pytest.fixture
def nodes() -> FakeNodes:
    found = FakeNodes(inventory("a", "a"), {})
    for number, node in enumerate(found.values(), 1):
        node.answers["overlay-status"] = json.dumps(status(number))
    return found


# -- which one --------------------------------------------------------------------------------------


async def test_what_all_nodes_observe_runs(nodes) -> None:
    running = await find(nodes)
    assert (running.overlay.name, running.variant) == ("weave", Variant("weave", "fastdp"))
    assert running.mode.header_bytes == 50
    assert [running.endpoint(node) for node in nodes] == ["10.32.0.1", "10.32.0.2"]


async def test_nodes_without_an_overlay_run_none(nodes) -> None:
    for node in nodes.values():
        node.answers["overlay-status"] = "\n"
    assert await find(nodes) is None


@pytest.mark.parametrize(
    ("changed", "seen"),
    [
        ("", "none on node2"),
        (json.dumps(status(2, mode="sleeve")), "node1: weave fastdp; node2: weave sleeve"),
        (
            json.dumps(status(2, mode=None, reason="no peers")),
            "node1: weave fastdp; node2: weave weave (no peers)",
        ),
    ],
)
async def test_nodes_that_differ_have_nothing_in_common(nodes, changed, seen) -> None:
    nodes["node2"].answers["overlay-status"] = changed
    with pytest.raises(UserError) as wrong:
        await find(nodes)
    assert wrong.value.seen == seen


async def test_a_mode_that_nobody_knows_is_told_with_its_reason(nodes) -> None:
    for number, node in enumerate(nodes.values(), 1):
        said = status(number, mode=None, reason="weaver does not answer on 127.0.0.1:6784")
        node.answers["overlay-status"] = json.dumps(said)
    with pytest.raises(UserError, match="weaver does not answer"):
        await find(nodes)


async def test_a_status_that_cannot_be_read_is_a_failing_node(nodes) -> None:
    nodes["node2"].answers["overlay-status"] = failed(2, "sh: 7: Bad substitution")
    with pytest.raises(
        NodeError, match="node2: the overlay's status cannot be read: 'sh: 7: Bad substitution'"
    ):
        await find(nodes)


async def test_a_status_that_is_no_object_is_a_failing_node(nodes) -> None:
    nodes["node2"].answers["overlay-status"] = "[]"
    with pytest.raises(NodeError, match=r"node2: the overlay's status cannot be read: '\[\]'"):
        await find(nodes)


# -- as it is ---------------------------------------------------------------------------------------

UNIT = """\
Id=overlaylab-weave.service
LoadState=loaded
ActiveState=active
SubState=running
MainPID=412
CPUUsageNSec=1250000000
ActiveEnterTimestamp=Sat 2026-11-21 13:00:00 UTC
"""
DEVICES = "lo 65536\neth1 1500\nweave 1376\n"


def printed(*paths: str, units: str = UNIT) -> str:
    return f"{overlay_live._CUT}\n".join([DEVICES, units, *paths])


def test_an_answer_holds_devices_units_and_a_path_for_each_peer() -> None:
    live = overlay_live.read(printed(f"{FLOW}\n\n", ""), ["node2", "node3"])
    assert live.mtus == {"lo": 65536, "eth1": 1500, "weave": 1376}
    assert live.units["overlaylab-weave.service"]["MainPID"] == "412"
    assert live.paths == {"node2": [FLOW], "node3": []}


def test_an_answer_that_stopped_early_is_an_error() -> None:
    with pytest.raises(ValueError, match="stopped early"):
        overlay_live.read(printed(), ["node2"])


def test_the_path_is_asked_for_after_traffic_that_makes_flows() -> None:
    script = overlay_live.script(["a.service"], [("192.168.77.12", "10.32.0.2")])
    ping, path = script.index(" 10.32.0.2 >/dev/null"), script.index("overlay-path 192.168.77.12 10.32.0.2")
    assert ping < path
    assert "systemctl show" in script and "systemctl" not in overlay_live.script([], [])


async def test_lines_for_people(nodes) -> None:
    for number, node in enumerate(nodes.values(), 1):
        flow = FLOW.replace(".12,", f".1{3 - number},")
        node.answers["overlay-path"] = printed(flow if number == 1 else "")
    nodes["node2"].answers["overlay-status"] = json.dumps(
        status(
            2, healthy=False, reason="no established connection to 192.168.77.11", peers=[], devices=["gone"]
        )
    )
    running = await find(nodes)
    live = await overlay_live.ask(nodes, running)
    unit = "active (running) since Sat 2026-11-21 13:00:00 UTC, process 412, 1.2 s of CPU"
    assert overlay_live.lines(nodes, running, live) == [
        "node1: healthy, version 2.6.5",
        "  endpoint: 10.32.0.1 on ethwe, MTU 1376; 1376 bytes pass",
        "  devices and MTUs: weave 1376, datapath without an MTU",
        f"  overlaylab-weave.service: {unit}",
        "  to node2 (192.168.77.12, endpoint 10.32.0.2): established fastdp",
        f"    {FLOW}",
        "node2: NOT healthy: no established connection to 192.168.77.11, version 2.6.5",
        "  endpoint: 10.32.0.2 on ethwe, MTU 1376; 1376 bytes pass",
        "  devices and MTUs: gone without an MTU",
        f"  overlaylab-weave.service: {unit}",
        "  to node1 (192.168.77.11, endpoint 10.32.0.1): no word from the overlay",
        "    nothing carries packets there",
    ]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"ActiveState": "failed", "SubState": "failed"}, "failed (failed)"),
        ({"CPUUsageNSec": "[not set]"}, "active (running) since now, process 412"),
        (
            {"CPUUsageNSec": str(2**64 - 1)},
            "active (running) since now, process 412",
        ),  # systemd's "not known"
    ],
)
def test_units_that_do_not_run_or_do_not_count(changes, told) -> None:
    about = dict(line.split("=", 1) for line in UNIT.splitlines()) | {"ActiveEnterTimestamp": "now"} | changes
    assert overlay_live._unit(about) == told
