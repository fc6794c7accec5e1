"""From a profile to what a node is told: sizes, delays, digests."""

import os
import subprocess
from dataclasses import fields, replace

import pytest
from lab_builders import inventory, node

from overlaylab.shaping.scripts import UNIT, apply_script
from overlaylab.shaping.sizes import NodeShaping, PeerClass, applied_delay, node_shaping
from overlaylab.specs.inventory import Inventory
from overlaylab.specs.profile import load_profile

A1 = load_profile("azure-a1")
PAIR = inventory("a", "a")
BASELINE = {frozenset(("node1", "node2")): 0.000466}
PEER = PeerClass("node2", "192.168.77.12", 0.00025, 0.0, 0.0)


def told(profile=A1, lab: Inventory = PAIR, baseline=BASELINE, name: str = "node1") -> NodeShaping:
    (one,) = (n for n in lab.nodes if n.name == name)
    return node_shaping(profile, lab, one, baseline)


@pytest.mark.parametrize(
    ("target", "baseline", "one_way"),
    [
        (0.000966, 0.000466, 0.00025),  # half on each end
        (0.000966, 0.0, 0.000483),
        (0.000966, 0.000966, 0.0),
        (0.000966, 0.0015, 0.0),  # what the accelerator exceeds is never taken away
        (None, 0.0, 0.0),
    ],
)
def test_each_end_delays_by_half_of_what_the_baseline_lacks_to_the_target(target, baseline, one_way) -> None:
    assert applied_delay(target, baseline) == pytest.approx(one_way)


def test_azure_a1_on_a_pair() -> None:
    assert told() == NodeShaping(
        interface="eth1",
        mtu=1500,
        offloads="segmented",
        rate=100e6,
        sustained=None,
        bucket=None,
        burst=100_000,  # 8 ms
        queue=0.02,
        overhead=0,
        peers=(PeerClass("node2", "192.168.77.12", pytest.approx(0.00025), 0.0, 0.0),),
        ingress=False,
        exempt_ssh=None,
        restored=True,
    )


def test_both_ends_of_a_pair_add_the_same_delay() -> None:
    assert told(name="node1").peers[0].delay == told(name="node2").peers[0].delay


@pytest.mark.parametrize(
    ("rate", "mtu", "queue", "burst", "bytes_queued"),
    [
        (5e6, 1500, 0.02, 5000, 12_500),
        # 8 ms of 5 Mbit/s are 5000 bytes: less than two frames, which would drop everything.
        (5e6, 9001, 0.02, 18_030, 18_030),
        (5e6, None, 0.001, 5000, 3028),  # without an MTU of its own, sizes are for 1500
        (400e6, 1500, 0.02, 400_000, 1_000_000),
    ],
)
def test_burst_and_queue_hold_two_frames_at_least(rate, mtu, queue, burst, bytes_queued) -> None:
    seen = told(replace(A1, rate=rate, mtu=mtu, queue=queue))
    assert (seen.burst, seen.queue_at(rate)) == (burst, bytes_queued)


def test_at_the_sustained_rate_burst_and_queue_are_that_rates() -> None:
    seen = told(replace(A1, rate=972e6, sustained=125e6, bucket=1e9))
    assert [(seen.burst_at(rate), seen.queue_at(rate)) for rate in (972e6, 125e6)] == [
        (972_000, 2_430_000),
        (125_000, 312_500),
    ]


def test_each_peer_has_the_delay_that_its_own_pair_lacks() -> None:
    lab = inventory("b", "a", "c", "a", "b")
    tier = replace(A1, within_zone=0.0005, between_zones={("a", "b"): 0.002, ("b", "c"): 0.004})
    baseline = {frozenset(("node1", f"node{n}")): n * 1e-4 for n in (2, 3, 4, 5)}
    assert [(p.node, p.address, p.delay) for p in told(tier, lab, baseline).peers] == [
        ("node2", "192.168.77.12", pytest.approx((0.002 - 0.0002) / 2)),
        ("node3", "192.168.77.13", pytest.approx((0.004 - 0.0003) / 2)),
        ("node4", "192.168.77.14", pytest.approx((0.002 - 0.0004) / 2)),
        ("node5", "192.168.77.15", 0.0),
    ]


def test_jitter_varies_a_delay_and_nothing_where_there_is_none() -> None:
    tier = replace(A1, jitter=1e-4)
    assert told(tier).peers[0].jitter == 1e-4
    assert told(tier, baseline={frozenset(("node1", "node2")): 1.0}).peers[0].jitter == 0.0


def test_ssh_is_exempt_where_the_underlay_carries_it() -> None:
    over_underlay = Inventory("pair", "external", (node(1, ssh_host="192.168.77.11"), node(2)))
    assert told(lab=over_underlay).exempt_ssh == 22
    # A cloud's host is reached under a public address, and has one interface all the same.
    assert told(lab=over_underlay, name="node2").exempt_ssh == 22
    assert told().exempt_ssh is None


def test_somebody_elses_host_gets_its_own_network_back_by_a_reboot() -> None:
    assert told(lab=Inventory("cloud", "external", PAIR.nodes)).restored is False


def test_only_a_rate_can_be_metered_where_it_comes_in() -> None:
    assert told(replace(A1, ingress_metered=True)).ingress is True
    assert told(replace(A1, ingress_metered=True, rate=None)).ingress is False


def test_none_needs_no_qdisc() -> None:
    seen = told(load_profile("none"))
    assert (seen.queueing, seen.mtu, seen.segmented, seen.tunnels_segmented) == (False, None, False, False)


def test_a_nic_without_tunnel_offload_segments_plain_traffic_itself() -> None:
    seen = told(replace(A1, offloads="no-tunnel-offload"))
    assert (seen.segmented, seen.tunnels_segmented) == (False, True)


def test_where_packets_are_lost_tcp_makes_single_ones() -> None:
    """netem drops whole what TCP hands down, up to 64 KiB."""
    assert [told(replace(A1, loss=loss)).single_packets for loss in (0.0, 0.001)] == [False, True]


@pytest.mark.parametrize(
    ("name", "changes", "size"),
    [
        ("azure-a0", {}, 3125),  # a quarter of 12,500 bytes
        ("azure-a0", {"mtu": 9001}, 18030),  # two frames, which is all that its queue holds
        ("azure-a1", {}, None),  # 250,000 bytes hold any
        ("azure-a0", {"offloads": "default"}, None),
        (
            "azure-a3",
            {"sustained": 5e6, "bucket": 1e9},
            3125,
        ),  # what its queue holds once the bucket is empty
        ("none", {}, None),
    ],
)
def test_no_packet_is_larger_than_its_queue(name, changes, size) -> None:
    """At 5 Mbit/s and an RTT of 15 µs TCP sent 64 KiB at once, the queue dropped each, and 0.06 Mbit/s were left."""
    assert told(replace(load_profile(name), **changes)).gso_max_size == size


CHANGED = {
    "interface": "eth2",
    "mtu": 1400,
    "offloads": "default",
    "rate": 200e6,
    "sustained": 50e6,
    "bucket": 1e9,
    "burst": 100_001,
    "queue": 0.03,
    "overhead": 24,
    "peers": (),
    "ingress": True,
    "exempt_ssh": 22,
    "restored": False,
}
PEER_CHANGED = {
    "node": "node3",
    "address": "192.168.77.13",
    "delay": 0.0003,
    "jitter": 1e-5,
    "loss": 0.01,
    "endpoint": "10.50.0.2",
}


def test_digest_names_everything_that_is_applied() -> None:
    assert set(CHANGED) == {f.name for f in fields(NodeShaping)}
    assert set(PEER_CHANGED) == {f.name for f in fields(PeerClass)}
    base = replace(told(), peers=(PEER,))
    others = [replace(base, **{name: value}) for name, value in CHANGED.items()]
    others += [replace(base, peers=(replace(PEER, **{name: v}),)) for name, v in PEER_CHANGED.items()]
    digests = {shaping.digest for shaping in (base, *others)}
    assert len(digests) == 1 + len(CHANGED) + len(PEER_CHANGED)
    assert base.digest == replace(told(), peers=(PEER,)).digest


def test_after_a_reboot_it_finds_the_tools_that_it_found_before(tmp_path):
    """ethtool is the kit's: on systemd's own path of commands, nothing was segmented after a reboot, and nobody said so."""
    script = apply_script(told()).rpartition("\nsh ")[0].replace("/etc/systemd", str(tmp_path))
    script = script.replace("/var/lib/overlaylab", str(tmp_path / "kept"))
    (tmp_path / "system").mkdir()
    subprocess.run(
        ["sh", "-c", script], env={"PATH": f"/opt/overlaylab/bin:{os.environ['PATH']}"}, check=True
    )
    unit = (tmp_path / "system" / UNIT).read_text().splitlines()
    assert f"Environment=PATH=/opt/overlaylab/bin:{os.environ['PATH']}" in unit
