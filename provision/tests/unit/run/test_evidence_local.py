"""Proof within one node: reading what two endpoints of a node say, judging it, and both on real namespaces."""

import json
from collections.abc import Iterator

import pytest
from lab_builders import Namespace, namespace
from lab_captures import PAYLOAD, echo, ip, pcap, pinged_back, udp

from overlaylab.run import evidence_local
from overlaylab.run.evidence import _CUT, MARKER, Pinged
from overlaylab.run.evidence_local import Probe, judge, judge_wire, read_addresses, read_mtu, read_probe
from overlaylab.specs import overlays
from overlaylab.specs.overlays import Mode, Wire

HOST = overlays.load("host").modes["host"]
PLAIN = Mode("tunnel", "tunnel", False, {}, None, 50, Wire("udp port 6784", "visible"))
SEALED = Mode("tunnel-encrypted", "tunnel", True, {}, None, 84, Wire("esp", "absent"))
WELL = Pinged(3, False)
GOOD = Probe(WELL, WELL, marked=0, left=0, path=("10.32.0.2 dev ethwe",), status={})


def devices(**addresses: list[str]) -> str:
    """What `ip -j address` prints of these devices."""
    return json.dumps(
        [{"ifname": n, "addr_info": [{"local": one} for one in many]} for n, many in addresses.items()]
    )


# -- who they are -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "told", "expected"),
    [
        (["10.32.0.1"], ["10.32.0.2"], "10.32.0.1", ("10.32.0.1", "10.32.0.2")),
        # Behind NAT peers know it by the node's address.
        (["172.17.0.2"], ["172.17.0.3"], "192.168.77.11", ("172.17.0.2", "172.17.0.3")),
        # The node's own network, which has another address too.
        (["192.0.2.1", "192.168.77.11"], ["192.0.2.1", "192.168.77.11"], "192.168.77.11", ("192.168.77.11",) * 2),
    ],
)  # fmt: skip
def test_addresses_are_those_of_the_overlays_device(first, second, told, expected) -> None:
    printed = _CUT.join([devices(lo=["127.0.0.1"], ovl=first), devices(lo=["127.0.0.1"], ovl=second)])
    assert read_addresses(printed, {"endpoint_device": "ovl", "endpoint_address": told}) == expected


def test_a_second_endpoint_without_an_address_is_named() -> None:
    printed = _CUT.join([devices(ovl=["10.32.0.1"]), devices(lo=["127.0.0.1"])])
    with pytest.raises(ValueError, match="ovl has no address in the namespace endpoint2"):
        read_addresses(printed, {"endpoint_device": "ovl", "endpoint_address": "10.32.0.1"})


@pytest.mark.parametrize(
    ("there", "back", "mtu"),
    [
        (1376, 1376, 1376),
        (1500, 1400, 1400),
        (65536, 65536, 65535),  # the loopback device: no IPv4 packet is as large
    ],
)
def test_the_mtu_is_that_of_the_devices_which_lead_there(there, back, mtu) -> None:
    parts = []
    for size in (there, back):
        parts += [
            json.dumps([{"dst": "10.32.0.2", "dev": "ovl"}]),
            json.dumps([{"ifname": "lo", "mtu": 65536}, {"ifname": "ovl", "mtu": size}]),
        ]
    assert read_mtu(_CUT.join([*parts, ""])) == mtu


# -- reading ----------------------------------------------------------------------------------------


def printed(*frames: bytes, there: str = "", back: str = "", path: str = "10.32.0.2 dev ethwe\n") -> str:
    return _CUT.join(
        [there or pinged_back(), back or pinged_back(), pcap(*frames), path, '{"mode": "tunnel"}']
    )


def test_a_probe_is_read() -> None:
    assert read_probe(printed()) == Probe(WELL, WELL, 0, 0, ("10.32.0.2 dev ethwe",), {"mode": "tunnel"})
    longer = "1 packets transmitted, 1 received"
    probe = read_probe(printed(there=pinged_back(2), back=pinged_back(3, longer), path=""))
    assert (probe.there, probe.back, probe.path) == (Pinged(2, False), Pinged(3, True), ())


@pytest.mark.parametrize(
    ("frames", "marked", "left"),
    [
        ([echo()] * 3, 3, 3 * (28 + len(PAYLOAD))),
        # More than what the capture keeps of it.
        ([ip(50, bytes(1400))], 0, 1420),
        ([udp(bytes(50) + MARKER)], 1, 28 + 66),
        ([b"\x00" * 10], 0, 10),
    ],
)
def test_what_left_is_counted(frames, marked, left) -> None:
    probe = read_probe(printed(*frames))
    assert (probe.marked, probe.left) == (marked, left)


@pytest.mark.parametrize(
    "text",
    ["", "sh: tcpdump: not found", _CUT.join([pinged_back(), pinged_back(), pcap(), "route"])],
)
def test_a_probe_that_did_not_get_to_its_end_is_an_error(text) -> None:
    with pytest.raises(ValueError, match="the probe stopped early"):
        read_probe(text)


# -- judging ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "marked", "left", "reason"),
    [
        (PLAIN, 0, 0, None),
        (PLAIN, 0, 100_000, None),  # the daemons' own, and no ping among it
        (HOST, 0, 84, None),
        (
            PLAIN, 6, 9000,
            "6 packets with the pings' marker left by the underlay: the node's two endpoints do not reach each other"
            " within it",
        ),
        (SEALED, 0, 1400, None),  # a keepalive
        (
            SEALED, 0, 3 * 1460,
            "4380 bytes of `esp` left by the underlay, as many as the pings between the node's two endpoints have",
        ),
    ],
)  # fmt: skip
def test_nothing_of_it_may_be_on_the_underlay(mode, marked, left, reason) -> None:
    probe = Probe(WELL, WELL, marked, left, GOOD.path, {})
    said = judge_wire("node1", mode, 1376, probe)
    assert (said.kind, said.ok, said.reason) == ("wire", reason is None, reason)
    assert said.observed == {"marked": marked, "bytes": left}
    assert said.expected == {"filter": mode.wire.filter, "marked": 0} | (
        {"bytes_at_most": 4127} if mode is SEALED else {}
    )


def test_both_directions_and_the_way_are_judged() -> None:
    said = judge("node1", PLAIN, "10.32.0.1", "10.32.0.2", 1376, GOOD)
    assert [(one.kind, one.ok) for one in said] == [("wire", True), ("path", True), ("mtu", True), ("mtu", True)]  # fmt: skip
    assert said[1].observed == {"lines": ["10.32.0.2 dev ethwe"]}
    assert [one.expected for one in said[2:]] == [
        {"mtu": 1376, "from": "endpoint"},
        {"mtu": 1376, "from": "endpoint2"},
    ]


def test_a_direction_that_carries_less_and_a_way_that_is_unknown_are_refuted() -> None:
    probe = Probe(WELL, Pinged(0, False), 0, 0, (), {})
    _, path, there, back = judge("node1", PLAIN, "10.32.0.1", "10.32.0.2", 1376, probe)
    assert path.reason == "no route leads from 10.32.0.1 to 10.32.0.2"
    assert there.ok
    assert back.reason == "0 of 3 pings of 1376 bytes came back: a smaller MTU passes, or none"


# -- on real namespaces -----------------------------------------------------------------------------

WITHIN = """
ip netns add endpoint2
ip link add ovl2 type veth peer name ethwe netns endpoint2
ip link add br0 type bridge; ip link set br0 up
for port in ovl ovl2; do ip link set $port master br0; ip link set $port up; done
n=1
for name in endpoint endpoint2; do
    ip -n $name link set lo up; ip -n $name link set ethwe up; ip -n $name address add 10.9.0.$n/24 dev ethwe
    n=$((n + 1))
done
mount -t tmpfs tmpfs /opt; mkdir -p /opt/overlaylab/overlay
printf '#!/bin/sh\\necho {}' >/opt/overlaylab/overlay/overlay-status
chmod +x /opt/overlaylab/overlay/overlay-status
"""
STATUS = {"endpoint_device": "ethwe", "endpoint_address": "10.9.0.1"}
OURS = ("10.9.0.1", "10.9.0.2")


@pytest.fixture
def node() -> Iterator[Namespace]:
    for made in namespace("tcpdump", "ping"):
        made.sh(WITHIN)
        yield made


def probed(node: Namespace, mtu: int) -> Probe:
    return read_probe(node.sh(evidence_local.probe_script("eth1", *OURS, mtu, HOST)))


def test_two_endpoints_of_a_node_are_found_and_proven(node: Namespace) -> None:
    assert read_addresses(node.sh(evidence_local.addresses_script()), STATUS) == OURS
    assert read_mtu(node.sh(evidence_local.reach_script(*OURS))) == 1500
    probe = probed(node, 1500)
    assert (probe.there, probe.back, probe.marked) == (WELL, WELL, 0)
    assert probe.path[0].startswith("10.9.0.2 dev ethwe src 10.9.0.1")
    assert probed(node, 1400).there == Pinged(3, True)
    assert probed(node, 1501).back == Pinged(0, False)


def test_pings_that_take_the_way_over_the_underlay_are_seen(node: Namespace) -> None:
    node.sh("""ip link add br1 type bridge; ip link set br1 up
        ip link set ovl2 master br1; ip link set peer master br1; ip link set eth1 master br0""")
    probe = probed(node, 1500)
    assert (probe.there, probe.back) == (WELL, WELL)
    # The first endpoint's pings and its replies; what comes in, as many, is not counted.
    assert probe.marked == 6
    assert not judge_wire("node1", HOST, 1500, probe).ok


def test_an_endpoint_that_does_not_answer_is_named(node: Namespace, monkeypatch) -> None:
    monkeypatch.setattr(evidence_local, "PATIENCE", 1)
    done = node.run(evidence_local.reach_script("10.9.0.1", "10.9.0.7"))
    assert (done.returncode, done.stderr) == (
        1,
        "endpoint gets no answer from endpoint2 at 10.9.0.7 within 1 s\n",
    )


def test_the_nodes_own_network_reaches_itself_by_loopback(node: Namespace) -> None:
    node.sh("""ip netns delete endpoint; ip netns delete endpoint2; ip address add 192.0.2.1/24 dev eth1
        for name in endpoint endpoint2; do ip netns attach $name $$; done""")
    both = ("192.0.2.1",) * 2
    assert read_mtu(node.sh(evidence_local.reach_script(*both))) == 65535
    probe = read_probe(node.sh(evidence_local.probe_script("eth1", *both, 65535, HOST)))
    assert (probe.there, probe.back, probe.marked) == (WELL, WELL, 0)
    assert probe.path[0].startswith("local 192.0.2.1 dev lo")
