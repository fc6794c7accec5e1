"""The scripts that shape a node, run for real in a network namespace of this test's own."""

import json
import re
import sys
from dataclasses import replace

import pytest
from lab_builders import Namespace, inventory, namespace, runs
from lab_fakes import Completed, FakeNodes

from overlaylab.core.errors import NodeError
from overlaylab.run import evidence
from overlaylab.shaping import node_state, readback, tc
from overlaylab.shaping import scripts as shaping_scripts
from overlaylab.shaping.readback import readback_problems
from overlaylab.shaping.shaper import Shaper
from overlaylab.shaping.sizes import NodeShaping, node_shaping
from overlaylab.specs import overlays
from overlaylab.specs.profile import load_profile

LAB = inventory("a", "a")
# A baseline above every target, so that no netem is needed: not every kernel that runs tests has it.
SLOW = {frozenset(("node1", "node2")): 1.0}

LOOK = """
tc -j qdisc show; ip -j -d link; ip netns exec endpoint ip -j -d link
for device in eth1 peer ovl lo; do ethtool -k $device; done
for device in ethwe lo; do ip netns exec endpoint ethtool -k $device; done
"""


def told(name: str, **changes) -> NodeShaping:
    return node_shaping(replace(load_profile(name), **changes), LAB, LAB.nodes[0], SLOW)


@pytest.fixture
def node():
    yield from namespace("tc", "ethtool", "tcpdump", "ping")


def test_closing_a_namespace_ends_what_a_failed_test_has_left_in_it(node: Namespace) -> None:
    other = Namespace()
    left = int(other.sh("setsid sleep 100 >/dev/null 2>&1 & echo $!"))
    other.close()
    assert not runs(left)


def read_back(node: Namespace, shaped: NodeShaping) -> list[str]:
    return readback_problems(shaped, node.sh(readback.readback_script("eth1")))


def offloads_on(node: Namespace, device: str, within: str = "") -> list[str]:
    names = ("tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload")
    lines = node.sh(f"{within} ethtool -k {device}").splitlines()
    return [name for name in names if f"{name}: on" in lines]


def test_a_profile_is_put_in_force_once_and_read_back(node: Namespace) -> None:
    shaped = told("azure-a1")
    assert node.sh(shaping_scripts.apply_script(shaped)) == "changed\n"
    assert node.sh(shaping_scripts.apply_script(shaped)) == "unchanged\n"
    assert read_back(node, shaped) == []


def test_traffic_is_segmented_on_every_device_that_still_counts_it(node: Namespace) -> None:
    assert offloads_on(node, "eth1") == ["tcp-segmentation-offload", "generic-segmentation-offload"]
    node.sh(shaping_scripts.apply_script(told("azure-a1")))
    for device in ("eth1", "ovl"):
        assert offloads_on(node, device) == []
    assert offloads_on(node, "ethwe", "ip netns exec endpoint") == []
    assert offloads_on(node, "lo") != []  # of no use to a tunnel, so left alone


def test_clearing_restores_mtu_offloads_and_qdisc_exactly(node: Namespace) -> None:
    node.sh("ethtool -K ovl tso off; ip link set eth1 mtu 1420")
    before = node.sh(LOOK)
    node.sh(shaping_scripts.apply_script(told("azure-a3")))
    assert node.sh(LOOK) != before
    node.sh(shaping_scripts.clear_script("eth1"))
    assert node.sh(LOOK) == before
    assert node.sh("ls -A /run/overlaylab") == ""


def test_packets_that_no_queue_would_hold_are_not_made_and_clearing_allows_them_again(
    node: Namespace,
) -> None:
    before = node.sh(LOOK)
    assert " gso_max_size 65536 " in node.sh("ip -d link show dev eth1")
    node.sh(shaping_scripts.apply_script(told("azure-a0")))
    assert " gso_max_size 3125 " in node.sh("ip -d link show dev eth1")
    assert " gso_max_size 3125 " in node.sh("ip netns exec endpoint ip -d link show dev ethwe")
    assert " gso_max_size 65536 " in node.sh("ip netns exec endpoint ip -d link show dev lo")
    node.sh(shaping_scripts.clear_script("eth1"))
    assert node.sh(LOOK) == before


def test_a_second_endpoint_is_treated_as_the_first(node: Namespace) -> None:
    node.sh("ip netns add endpoint2; ip link add ovl2 type veth peer name ethwe netns endpoint2")
    look = f"{LOOK}\nip netns exec endpoint2 ip -j -d link; ip netns exec endpoint2 ethtool -k ethwe"
    before = node.sh(look)
    node.sh(shaping_scripts.apply_script(told("azure-a0")))
    for name in ("endpoint", "endpoint2"):
        assert offloads_on(node, "ethwe", f"ip netns exec {name}") == []
        assert " gso_max_size 3125 " in node.sh(f"ip -n {name} -d link show dev ethwe")
        assert " gso_max_size 65536 " in node.sh(f"ip -n {name} -d link show dev lo")
    node.sh(shaping_scripts.clear_script("eth1"))
    assert node.sh(look) == before


def test_clearing_what_was_never_shaped_does_nothing(node: Namespace) -> None:
    node.sh("tc qdisc add dev eth1 root handle 7: htb")
    before = node.sh(LOOK)
    node.sh(shaping_scripts.clear_script("eth1"))
    assert node.sh(LOOK) == before


def test_one_profile_after_another_leaves_nothing_of_the_former(node: Namespace) -> None:
    before = node.sh(LOOK)
    node.sh(shaping_scripts.apply_script(told("azure-a0")))
    fresh = node.sh("tc -j qdisc show; tc class show dev eth1; tc -j filter show dev eth1")
    node.sh(shaping_scripts.clear_script("eth1"))

    node.sh(shaping_scripts.apply_script(told("azure-a3")))
    assert node.sh(shaping_scripts.apply_script(told("azure-a0"))) == "changed\n"
    assert node.sh("tc -j qdisc show; tc class show dev eth1; tc -j filter show dev eth1") == fresh
    assert read_back(node, told("azure-a0")) == []
    node.sh(shaping_scripts.clear_script("eth1"))
    assert node.sh(LOOK) == before


def test_what_the_former_profile_set_and_the_next_does_not_is_the_nodes_own_again(node: Namespace) -> None:
    before = node.sh(LOOK)
    node.sh(shaping_scripts.apply_script(told("azure-a1")))
    plain = told("azure-a0", mtu=None, offloads="default")
    assert node.sh(shaping_scripts.apply_script(plain)) == "changed\n"
    assert node.sh("cat /sys/class/net/eth1/mtu") == "9001\n"
    assert offloads_on(node, "eth1") == ["tcp-segmentation-offload", "generic-segmentation-offload"]
    node.sh(shaping_scripts.clear_script("eth1"))
    assert node.sh(LOOK) == before


def test_an_endpoint_whose_device_is_called_eth0_is_segmented_too(node: Namespace) -> None:
    node.sh("ip netns exec endpoint ip link set ethwe name eth0")
    node.sh(shaping_scripts.apply_script(told("azure-a1")))
    assert offloads_on(node, "eth0", "ip netns exec endpoint") == []


def test_the_cap_holds_for_traffic_to_several_zones_at_once(node: Namespace) -> None:
    lab = inventory("a", "b", "c", "d")
    baseline = {frozenset(("node1", f"node{n}")): 1.0 for n in (2, 3, 4)}
    tier = replace(load_profile("azure-a0"), rate=10e6, between_zones={("any", "any"): 1e-3})
    node.sh(shaping_scripts.apply_script(node_shaping(tier, lab, lab.nodes[0], baseline)))
    node.sh(
        """
        ip address add 192.168.77.11/24 dev eth1
        read -r mac </sys/class/net/peer/address
        for n in 2 3 4; do ip neighbour add 192.168.77.1$n lladdr "$mac" dev eth1; done
        """
    )
    sent, seconds, _ = map(float, node.sh(f"{sys.executable} -c '{FLOOD}'").split())
    # 8 ms of burst at the start, for the cap and for each zone, and what comes out of the queues at the end.
    assert sent * 8 <= 10e6 * (seconds + 0.1)


def test_each_zone_has_what_goes_to_its_endpoint_where_nothing_encapsulates(node: Namespace) -> None:
    lab = inventory("a", "b", "c")
    tier = replace(load_profile("azure-a1"), within_zone=None, between_zones={})
    shaped = node_shaping(tier, lab, lab.nodes[0], {}, {"node2": "10.50.0.2", "node3": "10.50.0.3"})
    node.sh(shaping_scripts.apply_script(shaped))
    assert read_back(node, shaped) == []
    node.sh(
        """
        ip address add 10.50.0.1/24 dev eth1
        read -r mac </sys/class/net/peer/address
        for n in 2 3; do ip neighbour add 10.50.0.$n lladdr "$mac" dev eth1; done
        ping -q -c 3 -i 0.01 -W 0.1 10.50.0.3 || :
        """
    )
    counted = node.sh("tc -s class show dev eth1")
    sent = {
        flow: int(packets)
        for flow, packets in re.findall(r"class htb 1:(1\w) parent.*\n Sent \d+ bytes (\d+) pkt", counted)
    }
    assert sent == {"10": 0, "11": 3}


FLOOD = """
import json, socket, sys, time
def received():
    return int(open("/sys/class/net/peer/statistics/rx_bytes").read())
def empty():
    return not sys.argv[1:] or json.load(open(sys.argv[1]))["empty"]
flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
flood.setblocking(False)
before, started = received(), time.monotonic()
# A busy machine sends little faster than the bucket fills again, and takes longer to have emptied it.
while time.monotonic() < started + 1 or not empty() and time.monotonic() < started + 20:
    for address in ("192.168.77.12", "192.168.77.13", "192.168.77.14"):
        try:
            flood.sendto(bytes(1400), (address, 9))
        except BlockingIOError:
            pass
    time.sleep(0.0002)
print(received() - before, time.monotonic() - started, empty() + 0)
"""


def test_what_somebody_changes_afterwards_is_found(node: Namespace) -> None:
    shaped = told("azure-a1")
    node.sh(shaping_scripts.apply_script(shaped))
    node.sh("ip link set eth1 mtu 1400; ethtool -K eth1 tso on gso on")
    node.sh("tc class change dev eth1 classid 1:1 htb rate 90mbit")
    assert read_back(node, shaped) == [
        "eth1 has MTU 1400, not 1500",
        "eth1 still has tcp generic offload on",
        "the cap of eth1 is 90000000 bit/s, not 100000000",
    ]
    node.sh("tc qdisc del dev eth1 root")
    assert "the root qdisc of eth1 is ['noqueue'], not htb" in read_back(node, shaped)


def test_a_batch_that_tc_refuses_is_no_profile_in_force(node: Namespace) -> None:
    wrong = replace(told("azure-a1"), peers=(replace(told("azure-a1").peers[0], loss=2.0),))
    assert node.run(shaping_scripts.apply_script(wrong)).returncode != 0
    assert read_back(node, wrong)[0].startswith("the node says that profile none is in force")


def shaper_on(node: Namespace, name: str) -> Shaper:
    """A shaper whose scripts are run in the namespace."""

    def run(script: str) -> Completed:
        done = node.run(script)
        return Completed(done.returncode, done.stdout, done.stderr, 0.0)

    return Shaper(FakeNodes(LAB, {"": run}), load_profile(name), baseline=dict(SLOW))  # type: ignore[arg-type]


async def test_a_shaper_puts_in_force_and_reads_back_in_one_script(node: Namespace) -> None:
    shaper = shaper_on(node, "azure-a1")
    assert await shaper.apply_and_read_back() == {"node1": [], "node2": []}
    # Both nodes are this one here, and the second had the last word.
    assert node.sh(shaping_scripts.apply_script(shaper.shaping_of("node2"))) == "unchanged\n"
    await shaper.clear()
    assert node.sh("ls -A /run/overlaylab") == ""


async def test_a_shaper_sees_a_tc_that_fails_in_the_middle(node: Namespace, monkeypatch) -> None:
    """The classes are there, the filters are not: reading back would find nothing wrong."""
    right = tc.tc_batch

    def wrong(shaped: NodeShaping) -> str:
        return right(shaped).replace("match ip dst 192", "match ip dst nowhere")

    monkeypatch.setattr(shaping_scripts, "tc_batch", wrong)
    with pytest.raises(NodeError, match="ended with 1"):
        await shaper_on(node, "azure-a1").apply_and_read_back()
    assert not node.sh("cat /run/overlaylab/profile/digest 2>/dev/null || :")


def test_ssh_leaves_the_cap_behind(node: Namespace) -> None:
    node.sh(shaping_scripts.apply_script(replace(told("azure-a0"), exempt_ssh=22)))
    filters = json.loads(node.sh("tc -j filter show dev eth1"))
    found = [(f["pref"], f["options"].get("flowid")) for f in filters if "flowid" in f.get("options", {})]
    assert found == [(1, "1:2"), (10, "1:10")]


def test_what_comes_in_is_metered_by_a_device_that_goes_with_the_profile(node: Namespace) -> None:
    before = node.sh(LOOK)
    shaped = told("azure-a1", ingress_metered=True)
    node.sh(shaping_scripts.apply_script(shaped) + shaping_scripts.clear_script("eth1"))
    assert node.sh(LOOK) == before
    assert node.sh(shaping_scripts.apply_script(shaped)) == "changed\n"
    assert read_back(node, shaped) == []
    flood = f"(sleep 0.3; ip netns exec other {sys.executable} -c '{SOURCE}') &\n{sys.executable} -c '{SINK}'"
    sent, seconds = map(float, node.sh(SET_UP_PEER + flood).split())
    # Of what arrived at some 400 Mbit/s, 100 came through, 8 ms of burst and 20 ms of queue besides.
    assert 0.5 * 100e6 < sent * 8 <= 100e6 * (seconds + 0.05)


SET_UP_PEER = """
ip address add 192.168.77.11/24 dev eth1
ip netns add other; ip link set peer netns other
ip -n other address add 192.168.77.12/24 dev peer; ip -n other link set peer up
until ping -c 1 -W 1 192.168.77.12 >/dev/null; do sleep 0.1; done
"""
SINK = """
import socket, time
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("192.168.77.11", 9))
sink.settimeout(5)
got, started, last = 0, None, 0.0
try:
    while True:
        got += len(sink.recv(2048)) + 42
        last = time.monotonic()
        started = started or last
        sink.settimeout(0.3)
except TimeoutError:
    print(got, last - started)
"""
SOURCE = """
import socket, time
flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + 1
while time.monotonic() < end:
    for _ in range(35):
        flood.sendto(bytes(1400), ("192.168.77.11", 9))
    time.sleep(0.001)
"""


def test_two_rates_are_kept_by_a_program_that_goes_with_the_profile(node: Namespace) -> None:
    before = node.sh(LOOK)
    shaped = told("azure-a1", sustained=10e6, bucket=2e6)
    assert node.sh(shaping_scripts.apply_script(shaped)) == "changed\n"
    assert read_back(node, shaped) == []
    node.sh(
        """
        ip address add 192.168.77.11/24 dev eth1
        read -r mac </sys/class/net/peer/address
        for n in 2 3 4; do ip neighbour add 192.168.77.1$n lladdr "$mac" dev eth1; done
        """
    )
    flood = f"{sys.executable} -c '{FLOOD}' {shaping_scripts.STATE}/bucket"
    sent, seconds, empty = map(float, node.sh(flood).split())
    # The bucket, and the sustained rate; what goes out until the program looks, which a busy machine puts off, is taken
    # off later. All the time at the burst's rate would be more.
    assert 0.8 * 2e6 < sent < 0.8 * 100e6 / 8 * seconds
    # As seen by the flood itself: what is left alone for 0.16 s lets traffic burst again.
    assert empty == 1
    assert read_back(node, shaped) == []
    node.sh(shaping_scripts.FILL_BUCKET)
    kept = json.loads(node.sh(f"cat {shaping_scripts.STATE}/bucket"))
    assert (kept["empty"], kept["resets"], kept["level"]) == (False, 1, 2e6)
    assert "rate 100Mbit" in node.sh("tc class show dev eth1 classid 1:1")
    pid = node.sh(f"cat {shaping_scripts.STATE}/bucket.pid").strip()
    node.sh(shaping_scripts.clear_script("eth1") + f"\nwhile kill -0 {pid} 2>/dev/null; do sleep 0.02; done")
    node.sh("ip address flush dev eth1; ip neighbour flush dev eth1")
    assert node.sh(LOOK) == before


def test_a_reboot_restores_the_profile_and_clearing_it_ends_that(node: Namespace) -> None:
    node.sh("mkdir -p /etc/systemd/system")
    shaped = told("azure-a1")
    node.sh(shaping_scripts.apply_script(shaped, "echo CPUs >/run/held\n"))
    assert node.run("cat /run/held").returncode != 0
    node.sh("tc qdisc del dev eth1 root; rm -r /run/overlaylab")  # as a reboot does
    unit = node.sh("cat /etc/systemd/system/multi-user.target.wants/overlaylab-profile.service")
    (start,) = [
        line.removeprefix("ExecStart=") for line in unit.splitlines() if line.startswith("ExecStart=")
    ]
    assert node.sh(start) == "changed\n"
    assert (read_back(node, shaped), node.sh("cat /run/held")) == ([], "CPUs\n")
    node.sh(shaping_scripts.clear_script("eth1"))
    assert node.sh("ls -A /var/lib/overlaylab /etc/systemd/system/multi-user.target.wants").split() == [
        "/etc/systemd/system/multi-user.target.wants:",
        "/var/lib/overlaylab:",
    ]


def test_single_packets_where_some_are_to_be_lost(node: Namespace) -> None:
    shaped = replace(told("azure-a1"), peers=(replace(told("azure-a1").peers[0], loss=0.01),))
    node.sh(
        shaping_scripts._gso_limits(shaped).join(("underlay=eth1 state=/run; export underlay state\n", "\n"))
    )
    assert json.loads(node.sh("ip -d -j link show dev eth1"))[0]["gso_max_segs"] == 1


def test_a_nic_that_segments_keeps_its_offloads_and_tunnels_lose_theirs(node: Namespace) -> None:
    before = offloads_on(node, "eth1")
    node.sh(shaping_scripts.apply_script(told("azure-a1", offloads="no-tunnel-offload")))
    assert "tcp-segmentation-offload" in before
    assert offloads_on(node, "eth1") == before
    assert offloads_on(node, "ovl") == []
    assert offloads_on(node, "ethwe", "ip netns exec endpoint") == []


def test_counters_of_a_node_are_read(node: Namespace) -> None:
    node.sh(shaping_scripts.apply_script(told("azure-a1")))
    before = node_state.read_state(node.sh(node_state.state_script("eth1")))
    assert node_state.qdisc_bytes(before) == 0
    node.sh("ip addr add 192.168.77.11/24 dev eth1; ping -c 3 -i 0.01 -W 0.1 192.168.77.12 || :")
    after = node_state.read_state(node.sh(node_state.state_script("eth1")))
    # Nobody answers: what leaves is ARP, 42 bytes a frame.
    assert node_state.qdisc_bytes(after) > 0
    assert node_state.qdisc_bytes(after) % 42 == 0
    assert after["tx_bytes"] - before["tx_bytes"] >= node_state.qdisc_bytes(after)
    assert after["uptime"] >= before["uptime"]
    assert 0 <= node_state.idle_share(before, after) <= 1


ENDPOINT = """
ip address add 10.9.0.1/24 dev ovl; ip link set ovl up
ip -n endpoint address add 10.9.0.2/24 dev ethwe; ip -n endpoint link set ethwe up; ip -n endpoint link set lo up
mount -t tmpfs tmpfs /opt; mkdir -p /opt/overlaylab/overlay
printf '#!/bin/sh\\necho {}' >/opt/overlaylab/overlay/overlay-status
printf '#!/bin/sh\necho to $1 and $2' >/opt/overlaylab/overlay/overlay-path
chmod +x /opt/overlaylab/overlay/overlay-*
"""


@pytest.mark.parametrize(
    ("address", "mtu", "received", "over", "bare"),
    [
        ("10.9.0.1", 1500, 3, False, {6}),
        # The ping of one byte more is answered at once, and the capture may end before tcpdump reads these two packets.
        ("10.9.0.1", 1400, 3, True, {6, 7, 8}),
        ("10.9.0.1", 1501, 0, False, {0}),
    ],
)
def test_a_probe_sees_every_ping_on_the_wire(node: Namespace, address, mtu, received, over, bare) -> None:
    node.sh(ENDPOINT)
    mode = overlays.load("host").modes["host"]
    probe = evidence.read_probe(
        node.sh(evidence.probe_script("ovl", evidence.Peer(address, address), mtu, mode))
    )
    assert (probe.received, probe.over_mtu_passes) == (received, over)
    assert probe.bare_icmp in bare
    assert (probe.marked, probe.encapsulated) == (min(bare), 0)
    assert probe.path == (f"to {address} and {address}",)
