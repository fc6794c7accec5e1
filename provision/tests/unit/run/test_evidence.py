"""Proof of a data path: reading a probe, and judging it, each way it can go."""

import base64
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from lab_captures import echo, ip, pcap, pinged_back, printed, udp

from overlaylab.core.model import Evidence
from overlaylab.run.evidence import (
    _CUT,
    MARKER,
    Peer,
    Pinged,
    Probe,
    captured,
    judge_accounting,
    judge_mtu,
    judge_path,
    judge_status,
    judge_wire,
    ping_back_script,
    probe_script,
    read_ping_back,
    read_probe,
)
from overlaylab.shaping.node_state import qdisc_bytes
from overlaylab.specs import overlays
from overlaylab.specs.overlays import Mode, Wire

FIXTURES = Path(__file__).parents[2] / "fixtures" / "evidence"
HOST = overlays.load("host").modes["host"]
PLAIN = Mode("tunnel", "tunnel", False, {}, None, 50, Wire("udp port 6784", "visible"))
SEALED = Mode("tunnel-encrypted", "tunnel", True, {}, None, 84, Wire("esp", "absent"))
NATTED = Mode("nat", None, False, {}, None, 0, Wire("udp port 5199", "visible", "udp"))
OURS = {"endpoint_address": "10.32.0.1"}
GOOD = Probe(3, False, encapsulated=6, bare_icmp=0, marked=6, path=("a flow",), status=OURS)
BETWEEN = ["10.32.0.1 > 10.32.0.2", "10.32.0.2 > 10.32.0.1"]
PEER = Peer("192.168.77.12", "10.32.0.2")


# -- asking -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "command"),
    [(PLAIN, "ping"), (NATTED, "/opt/overlaylab/overlay/overlay-probe")],
)
def test_endpoints_are_asked_as_their_mode_declares(mode, command) -> None:
    lines = [line for line in probe_script("eth1", PEER, 1500, mode).splitlines() if " -M do " in line]
    assert [line.split(" -n ")[0] for line in lines] == [f"ip netns exec endpoint {command}"] * 2
    assert ["-s 1472 " in lines[0], "-s 1473 " in lines[1]] == [True, True]


def test_the_marker_is_the_longest_pattern_that_ping_takes() -> None:
    assert len(MARKER) == 16


def test_where_the_card_switches_the_endpoint_is_looked_at():
    """On the node's own interface nothing of it is to be seen."""
    bare = Mode("sr-iov", None, False, {}, None, 0, Wire("icmp", "visible", device="vf0"))
    script = probe_script("eth1", PEER, 1500, bare)
    assert "ip netns exec endpoint tcpdump -i vf0 -n" in script
    assert "tcpdump -i eth1" not in script
    assert "tcpdump -i eth1 -n" in probe_script("eth1", PEER, 1376, PLAIN)


# -- reading ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "received", "over", "bare", "peer"),
    [
        ("bare-icmp", 3, False, 6, "10.9.0.1"),  # three pings and their replies
        ("mtu-too-small", 3, True, 8, "10.9.0.1"),
        ("mtu-too-large", 0, False, 0, "10.9.0.1"),  # the node itself refuses them
        ("nobody-answers", 0, False, 0, "10.9.0.9"),  # nobody answers ARP either
    ],
)
def test_recorded_probes(name, received, over, bare, peer) -> None:
    probe = read_probe((FIXTURES / f"{name}.out").read_text())
    assert (probe.received, probe.over_mtu_passes) == (received, over)
    assert (probe.encapsulated, probe.bare_icmp) == (0, bare)
    assert probe.marked == min(bare, 6)  # the longer ping carries no marker
    assert probe.between == (("10.9.0.1 > 10.9.0.2", "10.9.0.2 > 10.9.0.1") if bare else ())
    assert probe.path == (f"{peer} dev eth1 src 10.9.0.2 uid 0 \\    cache",)
    assert probe.status["overlay"] == "host"


@pytest.mark.parametrize(
    ("frames", "encapsulated", "bare", "marked"),
    [
        ([], 0, 0, 0),
        ([udp(bytes(50) + echo())] * 6, 6, 0, 6),
        ([ip(50, bytes(range(200)))] * 6, 6, 0, 0),
        ([udp(bytes(100))] * 6 + [echo()] * 2, 6, 2, 2),
        ([echo(bytes(100))], 0, 1, 0),
        # At any phase of the repetition, but whole.
        ([udp(MARKER[5:] + MARKER + MARKER[:3])], 1, 0, 1),
        ([udp(MARKER[5:] + MARKER[:15])], 1, 0, 0),
        ([b"\x00" * 10], 1, 0, 0),  # a runt is no ICMP
    ],
)
def test_what_crossed_the_underlay_is_counted(frames, encapsulated, bare, marked) -> None:
    probe = read_probe(printed(*frames))
    assert (probe.encapsulated, probe.bare_icmp, probe.marked) == (encapsulated, bare, marked)


@pytest.mark.parametrize(
    ("text", "received"),
    [
        ("3 packets transmitted, 3 received, 0% packet loss, time 112ms", 3),
        ("3 packets transmitted, 2 received, 33% packet loss, time 112ms", 2),
        ("3 packets transmitted, 0 received, +3 errors, 100% packet loss, time 2045ms", 0),
        ("3 packets transmitted, 3 received, +1 duplicates, 0% packet loss, time 3ms", 3),
        ("ping: connect: Network is unreachable", 0),
        ("", 0),
    ],
)
def test_replies_are_what_pings_summary_says(text, received) -> None:
    probe = read_probe(_CUT.join([text, text, pcap(), "", "{}"]))
    assert (probe.received, probe.over_mtu_passes) == (received, received > 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sh: tcpdump: not found",
        _CUT.join(["3 packets transmitted, 3 received", ""]),
        _CUT.join(["", "", pcap(), "{}"]),  # before overlay-path
        _CUT.join(["", "", pcap(), "", "curl: (7) Failed to connect"]),
        _CUT.join(["", "", pcap(), "", ""]),
    ],
)
def test_a_probe_that_did_not_get_to_its_end_is_an_error(text) -> None:
    with pytest.raises(ValueError):
        read_probe(text)


@pytest.mark.parametrize("kept", [1, 10, 24 + 8, 24 + 16 + 5])
def test_a_capture_that_was_cut_is_an_error_or_what_is_left_of_it(kept) -> None:
    whole = base64.b64decode(pcap(echo()))
    text = printed().replace(pcap(), base64.b64encode(whole[:kept]).decode())
    if kept > 24 + 16:
        assert read_probe(text).encapsulated == 1  # too short to be ICMP for certain
    else:
        with pytest.raises(ValueError, match=f"the capture is cut short: {kept} bytes"):
            read_probe(text)


def test_a_capture_that_never_began_shows_nothing() -> None:
    probe = read_probe(_CUT.join(["3 packets transmitted, 3 received", "", "\n", "", "{}"]))
    assert (probe.encapsulated, probe.bare_icmp, probe.marked) == (0, 0, 0)
    assert not judge_wire("node1", PLAIN, PEER, probe).ok


# -- what carries it --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed_path", "lines"),
    [
        ("a\n  b \n\n", ("a", "b")),
        ("", ()),
        ("\n \n", ()),
    ],
)
def test_a_path_is_kept_line_by_line_and_may_not_be_empty(printed_path, lines) -> None:
    probe = read_probe(printed(path=printed_path))
    assert probe.path == lines
    reason = None if lines else "no route, entry, tunnel or flow to 10.32.0.2 at 192.168.77.12"
    assert judge_path("node1", PEER, probe) == Evidence(
        "node1", "path", "converge", bool(lines),
        {"underlay": "192.168.77.12", "endpoint": "10.32.0.2"}, {"lines": list(lines)}, reason,
    )  # fmt: skip


def test_status_and_path_are_asked_while_pings_wait() -> None:
    script = probe_script("eth1", PEER, 1376, PLAIN)
    texts = (
        "-s 1348 -p 6f7665726c61796c61622d70726f6f66 10.32.0.2 &\n",
        "$(/opt/overlaylab/overlay/overlay-status)\n",
        "-s 1349 10.32.0.2 2>&1 &\n",
        "$(/opt/overlaylab/overlay/overlay-path 192.168.77.12 10.32.0.2)\n",
    )
    assert sorted(texts, key=script.index) == list(texts)


# -- the overlay's own word -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "status", "reason"),
    [
        (HOST, {"healthy": True, "mode": None, "encrypted": False}, None),
        (PLAIN, {"healthy": True, "mode": "tunnel", "encrypted": False}, None),
        (SEALED, {"healthy": True, "mode": "tunnel", "encrypted": True}, None),
        (
            PLAIN,
            {"healthy": True, "mode": "sleeve", "encrypted": False},
            "the data path is sleeve, not tunnel",
        ),
        (SEALED, {"healthy": True, "mode": "tunnel", "encrypted": False}, "traffic is not encrypted"),
        (PLAIN, {"healthy": True, "mode": "tunnel", "encrypted": True}, "traffic is encrypted"),
        (
            PLAIN,
            {"healthy": False, "reason": "no peers", "mode": None, "encrypted": False},
            "no peers; the data path is None, not tunnel",
        ),
        (PLAIN, {"mode": "tunnel"}, "the overlay says that it is not healthy"),
    ],
)
def test_status(mode, status, reason) -> None:
    expected = {"mode": mode.mode, "encrypted": mode.encrypted, "healthy": True}
    assert judge_status("node1", mode, status) == Evidence(
        "node1", "status", "converge", reason is None, expected, status, reason
    )


# -- the wire ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "seen", "reason"),
    [
        (HOST, {"encapsulated": 0, "bare_icmp": 6, "marked": 6}, None),
        (
            HOST,
            {"encapsulated": 0, "bare_icmp": 2, "marked": 3},
            "2 packets of `icmp` on the underlay for 3 pings",
        ),
        (
            HOST,
            {"encapsulated": 0, "bare_icmp": 6, "marked": 0},
            "the payload marker was seen 0 times, not 3",
        ),
        (PLAIN, {"encapsulated": 6, "bare_icmp": 0, "marked": 6}, None),
        (PLAIN, {"encapsulated": 3, "bare_icmp": 0, "marked": 3}, None),
        (
            PLAIN,
            {"encapsulated": 2, "bare_icmp": 0, "marked": 2},
            "2 packets of `udp port 6784` on the underlay for 3 pings; the payload marker was seen 2 times, not 3",
        ),
        (
            PLAIN,
            {"encapsulated": 6, "bare_icmp": 6, "marked": 12},
            "6 pings crossed the underlay without encapsulation",
        ),
        (
            PLAIN,
            {"encapsulated": 6, "bare_icmp": 0, "marked": 0},
            "the payload marker was seen 0 times, not 3",
        ),
        (SEALED, {"encapsulated": 6, "bare_icmp": 0, "marked": 0}, None),
        (
            SEALED,
            {"encapsulated": 6, "bare_icmp": 0, "marked": 1},
            "the payload marker was readable in 1 packets that should be encrypted",
        ),
        (
            SEALED,
            {"encapsulated": 0, "bare_icmp": 0, "marked": 0},
            "0 packets of `esp` on the underlay for 3 pings",
        ),
        (NATTED, {"encapsulated": 6, "bare_icmp": 0, "marked": 6}, None),
        (
            NATTED,
            {"encapsulated": 0, "bare_icmp": 0, "marked": 0},
            "0 packets of `udp port 5199` on the underlay for 3 pings; the payload marker was seen 0 times, not 3",
        ),
    ],
)
def test_wire(mode, seen, reason) -> None:
    expected = {"filter": mode.wire.filter, "marker": mode.wire.marker, "bare_icmp": mode is HOST}
    between = []
    if mode is HOST:
        expected["between"], between = f"10.32.0.1 > {PEER.endpoint}", BETWEEN[: seen["bare_icmp"]]
    probe = replace(GOOD, **seen, between=tuple(between))
    observed = seen | ({"between": between} if mode is HOST else {})
    assert judge_wire("node1", mode, PEER, probe) == Evidence(
        "node1", "wire", "converge", reason is None, expected, observed, reason
    )


def test_without_encapsulation_it_is_the_endpoints_addresses_that_show() -> None:
    probe = replace(
        GOOD, encapsulated=0, bare_icmp=6, between=("10.32.0.2 > 192.168.77.11", "192.168.77.11 > 10.32.0.2")
    )
    assert judge_wire("node1", HOST, PEER, probe).reason == (
        "pings crossed the underlay as 10.32.0.2 > 192.168.77.11, 192.168.77.11 > 10.32.0.2, "
        "and not as the endpoints' 10.32.0.1 > 10.32.0.2"
    )


# -- the MTU ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("received", "over", "reason"),
    [
        (3, False, None),
        (2, False, "2 of 3 pings of 1376 bytes came back: a smaller MTU passes, or none"),
        (0, False, "0 of 3 pings of 1376 bytes came back: a smaller MTU passes, or none"),
        (3, True, "1377 bytes pass too: the MTU is larger than 1376"),
    ],
)
def test_mtu(received, over, reason) -> None:
    probe = replace(GOOD, received=received, over_mtu_passes=over)
    observed = {"received": received, "sent": 3, "one_byte_more_passes": over}
    assert judge_mtu("node1", 1376, probe) == Evidence(
        "node1", "mtu", "converge", reason is None, {"mtu": 1376}, observed, reason
    )


@pytest.mark.parametrize(
    ("received", "over", "right"),
    [(3, "1 transmitted, 0 received", True), (0, "1 transmitted, 1 received", False)],
)
def test_the_servers_node_pings_back(received, over, right) -> None:
    """A reply proves nothing of its own direction: it has no DF, whatever the request had."""
    pinged = read_ping_back(pinged_back(received, over))
    assert pinged == Pinged(received, not right)
    assert judge_mtu("node2", 1376, pinged).ok == right


def test_pings_back_carry_no_marker_and_df() -> None:
    script = ping_back_script("10.32.0.1", 1376, PLAIN)
    assert script.count("ip netns exec endpoint ping -n -q ") == script.count("-M do ") == 2
    assert "-s 1348 10.32.0.1 &\n" in script and "-s 1349 10.32.0.1 " in script
    assert MARKER.hex() not in script


@pytest.mark.parametrize("text", ["", "sh: ping: not found\n", "3 packets transmitted, 3 received"])
def test_pings_back_that_did_not_get_to_their_end_are_an_error(text) -> None:
    with pytest.raises(ValueError, match="stopped early"):
        read_ping_back(text)


# -- accounting -------------------------------------------------------------------------------------


def state(sent: int | None = None, received: int = 0) -> dict:
    root = (
        {"kind": "htb", "root": True, "bytes": sent}
        if sent is not None
        else {"kind": "noqueue", "root": True}
    )
    return {"qdisc": [{"kind": "netem", "bytes": 7, "parent": "1:10"}, root], "rx_bytes": received}


@pytest.mark.parametrize(
    ("sent", "received", "ok"),
    [
        (10_000_000, 10_000_000, True),
        (10_000_000, 10_020_000, True),  # 0.2 %
        (10_000_000, 9_980_000, True),
        (10_000_000, 10_020_001, False),
        (10_000_000, 9_979_999, False),
        (951_000_000, 1_000_000_000, False),  # super-packets that were counted by one header
        # Little traffic: the two nodes are not read at the same moment.
        (46_515, 46_671, True),
        (46_515, 46_515 + 4096, True),
        (46_515, 46_515 + 4097, False),
        (0, 0, False),
    ],
)
def test_bytes_of_the_senders_qdisc_and_the_receivers_nic_agree(sent, received, ok) -> None:
    start = 5_000_000_000
    found = judge_accounting(
        "node1", state(start), state(start + sent), state(0, 77), state(0, 77 + received)
    )
    assert (found.node, found.kind, found.phase, found.ok) == ("node1", "accounting", "after", ok)
    assert found.observed["qdisc_bytes"] == sent
    assert found.observed["peer_rx_bytes"] == received
    assert found.observed["ratio"] == (pytest.approx(received / sent) if sent else None)
    words = f"the sender's qdisc counted {sent} bytes, the receiver's NIC {received}"
    assert found.reason == (None if ok else words)


def test_nothing_is_accounted_for_where_nothing_is_shaped() -> None:
    assert qdisc_bytes(state()) is None
    assert qdisc_bytes(state(12)) == 12
    assert judge_accounting("node1", state(), state(), state(), state()) is None
    assert judge_accounting("node1", state(1), state(), state(), state()) is None


@pytest.mark.parametrize(
    ("program", "seen"),
    [("sleep 0.3; touch listens; echo 'tcpdump: listening on eth1' >&2", "yes"), ("exit 1", "no")],
)
def test_a_capture_is_waited_for_until_it_listens_or_has_ended(tmp_path, program, seen):
    tcpdump = tmp_path / "tcpdump"
    tcpdump.write_text(f"#!/bin/sh\n{program}\n")
    tcpdump.chmod(0o755)
    script = captured(f"{tcpdump} -i eth1", "icmp", "\n[ -e listens ] && echo yes || echo no")
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.stdout.splitlines()[0] == seen
