"""What a node says is in force, against what it was told."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from lab_shaper import readback
from test_shaping import A1, PEER, told

from overlaylab.shaping import readback as shaping_readback
from overlaylab.shaping.readback import readback_problems
from overlaylab.shaping.sizes import NodeShaping, PeerClass

FIXTURES = Path(__file__).parents[2] / "fixtures" / "tc"
IN_FORCE = replace(told(), peers=(replace(PEER, delay=0.000482),))
CUT = shaping_readback._CUT


def recorded(name: str, shaped: NodeShaping = IN_FORCE, **settings) -> str:
    """A recorded read-back; its digest is that of `shaped`, or what is given."""
    text, cut, rest = (FIXTURES / f"{name}.out").read_text().partition(CUT)
    seen = json.loads(text) | {"digest": shaped.digest} | settings
    return json.dumps(seen) + cut + rest


def test_what_was_asked_for_is_in_force() -> None:
    assert readback_problems(IN_FORCE, recorded("pair-100mbit")) == []


def test_netems_microseconds_are_near_enough() -> None:
    near = replace(IN_FORCE, peers=(replace(PEER, delay=0.0004825),))
    assert readback_problems(near, recorded("pair-100mbit", near)) == []


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        ({"mtu": 1400}, ["eth1 has MTU 1500, not 1400"]),
        (
            {"rate": 100.2e6},
            [
                "the cap of eth1 is 100000000 bit/s, not 100200000",
                "traffic to node2 may use 100000000 bit/s, not 100200000",
                "the queue to node2 holds 250000 bytes, not 250500",
            ],
        ),
        (
            {"peers": (replace(PEER, delay=0.000485),)},
            ["traffic to node2 is delayed by 0.000481 s, not 0.000485"],
        ),
        (
            {"peers": (replace(PEER, delay=0.000482, jitter=0.0001),)},
            ["the delay to node2 varies by 0 s, not 0.0001"],
        ),
        (
            {"peers": (replace(PEER, delay=0.000482, address="192.168.77.13"),)},
            ["traffic to node2 (192.168.77.13) is led to class None, not 1:10"],
        ),
        ({"queue": 0.01}, ["the queue to node2 holds 250000 bytes, not 125000"]),
        ({"ingress": True}, ["what comes in is held to None bit/s, not 100000000"]),
        ({"rate": None, "peers": (replace(PEER, delay=0.0),)}, ["eth1 is still shaped"]),
    ],
)
def test_each_setting_that_differs_is_named(change, problems) -> None:
    other = replace(IN_FORCE, **change)
    assert readback_problems(other, recorded("pair-100mbit", other)) == problems


def test_another_profiles_digest_and_offloads_are_named() -> None:
    printed = recorded("pair-100mbit", digest="0123456789abcdef", offloads_on="tcp generic receive")
    assert readback_problems(IN_FORCE, printed) == [
        f"the node says that profile 0123456789abcdef is in force, not {IN_FORCE.digest}",
        "eth1 still has tcp generic receive offload on",
    ]


def test_a_node_that_was_not_shaped_lacks_everything() -> None:
    assert readback_problems(IN_FORCE, recorded("unshaped", digest="")) == [
        f"the node says that profile none is in force, not {IN_FORCE.digest}",
        "eth1 has MTU 9001, not 1500",
        "eth1 still has tcp generic receive offload on",
        "the root qdisc of eth1 is ['fq_codel'], not htb",
        "the cap of eth1 is None bit/s, not 100000000",
        "traffic to node2 may use None bit/s, not 100000000",
        "traffic to node2 is delayed by 0.0 s, not 0.000482",
        "the queue to node2 holds None bytes, not 250000",
        "traffic to node2 (192.168.77.12) is led to class None, not 1:10",
    ]


def test_three_peers_without_delay() -> None:
    peers = tuple(PeerClass(f"node{n}", f"192.168.77.1{n}", 0.0, 0.0, 0.0) for n in (2, 3, 4))
    shaped = replace(IN_FORCE, rate=5e6, burst=5000, peers=peers)
    assert readback_problems(shaped, recorded("three-peers-5mbit", shaped)) == []


def test_an_endpoint_that_no_filter_knows_is_named() -> None:
    peers = tuple(PeerClass(f"node{n}", f"192.168.77.1{n}", 0.0, 0.0, 0.0) for n in (2, 3, 4))
    bare = (*peers[:2], replace(peers[2], endpoint="10.50.0.4"))
    shaped = replace(IN_FORCE, rate=5e6, burst=5000, peers=bare)
    assert readback_problems(shaped, recorded("three-peers-5mbit", shaped)) == [
        "traffic to node4 (10.50.0.4) is led to class None, not 1:12"
    ]


def test_two_rates_and_metered_ingress() -> None:
    tier = replace(
        A1, rate=972e6, sustained=125e6, bucket=1e9, mtu=9001, ingress_metered=True, within_zone=None
    )
    shaped = told(tier)
    assert readback_problems(shaped, recorded("two-rates", shaped)) == []
    assert readback_problems(shaped, recorded("two-rates", shaped, kept="")) == [
        "nobody keeps the bucket: its program has ended"
    ]
    once = replace(shaped, sustained=None, bucket=None, ingress=False)
    assert readback_problems(once, recorded("two-rates", once)) == [
        "what comes in is still held to 972000000 bit/s"
    ]


def test_an_empty_bucket_is_in_force_too() -> None:
    shaped = told(replace(A1, rate=972e6, sustained=125e6, bucket=1e9))
    empty = readback(replace(shaped, rate=125e6), digest=shaped.digest).replace(
        "ceil 125000Kbit", "ceil 972000Kbit"
    )
    assert readback_problems(shaped, empty) == []


def test_the_netem_of_each_peer_is_known_by_its_class_not_by_its_place() -> None:
    """tc lists them in the order of the kernel's hash."""
    peers = [PeerClass(f"node{n}", f"192.168.77.1{n}", n * 1e-3, 0.0, 0.0) for n in (2, 3, 4)]
    shaped = replace(IN_FORCE, peers=tuple(peers))
    settings, cut, rest = readback(shaped).partition(CUT)
    seen = json.loads(settings)
    seen["qdisc"].reverse()
    assert readback_problems(shaped, json.dumps(seen) + cut + rest) == []


def test_loss_without_delay_which_tc_then_does_not_print() -> None:
    shaped = replace(IN_FORCE, peers=(replace(PEER, delay=0.0, loss=0.01),))
    settings, cut, rest = readback(shaped).partition(CUT)
    seen = json.loads(settings)
    netem = next(q for q in seen["qdisc"] if q["kind"] == "netem")
    del netem["options"]["delay"]
    assert readback_problems(shaped, json.dumps(seen) + cut + rest) == []
    netem["options"] = {}
    assert readback_problems(shaped, json.dumps(seen) + cut + rest) == [
        "of the packets to node2, 0.0 are lost, not 0.01"
    ]


def test_output_that_cannot_be_read_is_a_problem_and_no_traceback() -> None:
    (problem,) = readback_problems(IN_FORCE, "ethtool: not found")
    assert problem == "the node's settings could not be read: 'ethtool: not found'"


@pytest.mark.parametrize(
    ("printed", "rate"),
    [
        ("class htb 1:1 root rate 4780Kbit ceil 4780Kbit burst 5000b cburst 5000b", 4.78e6),
        ("class htb 1:1 root rate 100Mbit ceil 1Gbit", 100e6),
        ("class htb 1:1 root rate 9600bit ceil 9600bit", 9600),
        ("class htb 1:1 root rate 2Gbit ceil 2Gbit", 2e9),
        ("class htb 1:10 parent 1:1 leaf 10: prio 0 rate 7Mbit ceil 7Mbit", None),
        ("", None),
    ],
)
def test_the_rate_of_a_class_in_tcs_words(printed, rate) -> None:
    assert shaping_readback._rate(f"class htb 1:12 parent 1:1 prio 0 rate 1Mbit\n{printed}\n", "1:1") == rate
