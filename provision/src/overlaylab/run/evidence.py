"""Proof, around every trial, of which data path carries the traffic and that it was counted rightly.

A probe is one shell script on the client's node: it captures on the underlay with the filter that the
overlay's role declares, while marked pings of the full MTU with DF set cross the overlay. The pings
also warm the neighbour tables, and make flows of what carries them. Judging is pure: text in, `Evidence` out.

Meanwhile the server's node pings back. The client's pings do not prove its direction: Linux answers an echo
request without DF (icmp_sk_init in net/ipv4/icmp.c sets IP_PMTUDISC_DONT), so that a reply may come in fragments.
"""

from __future__ import annotations

import base64
import io
import json
import shlex
import socket
from dataclasses import dataclass
from typing import Any

import dpkt

from overlaylab.core.model import JSON, Evidence
from overlaylab.shaping.node_state import qdisc_bytes
from overlaylab.specs.overlays import Mode

# Sixteen bytes, the most that ping's -p takes (ping(8)); repeated through the payload.
MARKER = b"overlaylab-proof"

PINGS = 3
# Bytes of an IPv4 header and an ICMP header, which ping's -s does not count.
HEADERS = 28

# How far the sender's qdisc and the receiver's NIC may differ, as a ratio.
ACCOUNTING_TOLERANCE = 0.002

# Bytes by which they may differ in any case: the two nodes are not read at the same moment, and keepalives
# or ARP pass in between. Super-packets counted by one header would miss far more in any transfer.
ACCOUNTING_SLACK = 4096

_CUT = "=====overlaylab====="


# Asks the overlay itself; its role installs the command (docs/adding-an-overlay.md).
STATUS = "/opt/overlaylab/overlay/overlay-status"

# What asks a peer's endpoint, by the probe that the mode declares; the role brings the other one, with ping's options.
ASK = {"icmp": "ping", "udp": "/opt/overlaylab/overlay/overlay-probe"}

# Prints what carries packets to a peer: routes, FDB entries, tunnels, flows; its role installs the command.
PATH = "/opt/overlaylab/overlay/overlay-path"


@dataclass(frozen=True)
class Peer:
    """The other end of a probe: its node's underlay address, and its endpoint's address."""

    underlay: str
    endpoint: str


def asking(mode: Mode) -> str:
    """The command, in the endpoint, that asks a peer's; its options are ping's."""
    return f"ip netns exec endpoint {ASK[mode.wire.probe]}"


def probe_script(interface: str, peer: Peer, mtu: int, mode: Mode) -> str:
    """POSIX sh for root on the client's node; `read_probe` reads what it prints.

    mtu: bytes, the MTU that is claimed to pass between the endpoints.
    """
    size, ask = mtu - HEADERS, asking(mode)
    device = mode.wire.device
    tcpdump = (
        f"ip netns exec endpoint tcpdump -i {device}" if device else f"tcpdump -i {shlex.quote(interface)}"
    )
    # Status and path are asked while pings wait: for one another, and for the answer that must not come.
    pings = f"""
{ask} -n -q -c {PINGS} -i 0.05 -W 2 -M do -s {size} -p {MARKER.hex()} {peer.endpoint} &
asked=$!
status=$({STATUS})
wait $asked
echo '{_CUT}'
{ask} -n -q -c 1 -W 0.1 -M do -s {size + 1} {peer.endpoint} 2>&1 &
over=$!
path=$({PATH} {peer.underlay} {peer.endpoint})
wait $over
echo '{_CUT}'"""
    return f"""{captured(tcpdump, f"({mode.wire.filter}) or icmp", pings)}printf '%s\\n' '{_CUT}' "$path" '{_CUT}' "$status"
"""


def captured(tcpdump: str, expression: str, meanwhile: str) -> str:
    """POSIX sh that captures while a script runs, and then prints the capture in base64.

    tcpdump: the command with its interface; expression: which packets (pcap-filter(7)).
    """
    return f"""
folder=$(mktemp -d)
trap 'kill $capture 2>/dev/null; rm -rf "$folder"' EXIT
# --immediate-mode: else the kernel keeps packets up to a second, and they are lost when the capture ends.
mkfifo "$folder/said"
{tcpdump} -n --immediate-mode -U -s 256 -w "$folder/wire" '{expression}' 2>"$folder/said" &
capture=$!
# A pipe, so that nobody has to look again and again: a process more costs an emulated CPU what the captured pings take.
# It stays open, as tcpdump's last words would have no reader; it ends where tcpdump does before it listens.
exec 3<"$folder/said"
while read -r line <&3; do case $line in *'listening on'*) break ;; esac; done{meanwhile}
kill -INT $capture; wait $capture 2>/dev/null
base64 "$folder/wire"
"""


def ping_back_script(client_endpoint: str, mtu: int, mode: Mode) -> str:
    """POSIX sh for root on the server's node, while the client's node probes; `read_ping_back` reads it.

    Without the marker, which is to be counted in the client's own packets.
    """
    size, ask = mtu - HEADERS, asking(mode)
    return f"""
{ask} -n -q -c {PINGS} -i 0.05 -W 2 -M do -s {size} {client_endpoint} &
over=$({ask} -n -q -c 1 -W 0.1 -M do -s {size + 1} {client_endpoint} 2>&1)
wait $!
printf '%s\\n' '{_CUT}' "$over"
"""


@dataclass(frozen=True)
class Pinged:
    """received: how many of PINGS pings at the claimed MTU were answered; over_mtu_passes: one byte more."""

    received: int
    over_mtu_passes: bool


@dataclass(frozen=True)
class Probe(Pinged):
    """What a probe saw."""

    # Packets on the underlay that the role's filter caught and that are not bare ICMP.
    encapsulated: int
    bare_icmp: int
    # Packets, of either kind, that showed the marker.
    marked: int
    # What carries packets to the peer, a line each.
    path: tuple[str, ...]
    status: dict[str, Any]
    # The addresses of the bare ICMP, as ``source > destination``, each once.
    between: tuple[str, ...] = ()


def read_probe(printed: str) -> Probe:
    """The probe's output as values. ValueError where the script did not get to its end."""
    parts = printed.split(_CUT)
    if len(parts) != 5:
        raise ValueError(f"the probe stopped early: {printed.strip()[-300:]!r}")
    pinged, over, wire, path, status = parts
    encapsulated = bare = marked = 0
    between = set()
    for frame in read_frames(base64.b64decode(wire)):
        if _is_bare_icmp(frame):
            bare += 1
            between.add(" > ".join(socket.inet_ntoa(frame[at : at + 4]) for at in (26, 30)))
        else:
            encapsulated += 1
        marked += MARKER in frame  # at any phase: the payload repeats it
    return Probe(
        received=received(pinged),
        over_mtu_passes=received(over) > 0,
        encapsulated=encapsulated,
        bare_icmp=bare,
        marked=marked,
        path=tuple(line for line in map(str.strip, path.splitlines()) if line),
        status=read_status(status),
        between=tuple(sorted(between)),
    )


def read_status(printed: str) -> dict[str, Any]:
    """What `overlay-status` says. ValueError where that is no JSON object."""
    status = json.loads(printed)
    if not isinstance(status, dict):
        raise ValueError("it is no JSON object")
    return status


def read_frames(raw: bytes) -> list[bytes]:
    """The packets of a capture, as much of each as was kept. ValueError where it is cut short."""
    try:
        return [frame for _, frame in dpkt.pcap.Reader(io.BytesIO(raw))] if raw else []
    except (dpkt.Error, ValueError) as error:
        raise ValueError(f"the capture is cut short: {len(raw)} bytes") from error


def read_ping_back(printed: str) -> Pinged:
    """What `ping_back_script` printed. ValueError where it did not get to its end."""
    pinged, cut, over = printed.partition(_CUT)
    if not cut:
        raise ValueError(f"the pings back stopped early: {printed.strip()[-300:]!r}")
    return Pinged(received=received(pinged), over_mtu_passes=received(over) > 0)


def _is_bare_icmp(frame: bytes) -> bool:
    """An ICMP echo or its reply as the underlay's own IP payload; errors such as "fragmentation needed" are none."""
    if len(frame) < 35 or frame[12:14] != b"\x08\x00" or frame[23] != 1:
        return False
    return frame[14 + 4 * (frame[14] & 0x0F)] in (0, 8)


def received(text: str) -> int:
    """The count in ping's summary line ``3 packets transmitted, 3 received, …``."""
    for line in text.splitlines():
        words = line.replace(",", " ").split()
        if "received" in words and "transmitted" in words:
            return int(words[words.index("received") - 1])
    return 0


def judge_status(node: str, mode: Mode, status: dict[str, Any]) -> Evidence:
    """The overlay's own word: healthy, in the mode and encryption that were asked for, with all peers."""
    expected = {"mode": mode.mode, "encrypted": mode.encrypted, "healthy": True}
    problems = []
    if not status.get("healthy"):
        problems.append(status.get("reason") or "the overlay says that it is not healthy")
    if status.get("mode") != mode.mode:
        problems.append(f"the data path is {status.get('mode')}, not {mode.mode}")
    if bool(status.get("encrypted")) != mode.encrypted:
        problems.append("traffic is not encrypted" if mode.encrypted else "traffic is encrypted")
    return Evidence(node, "status", "converge", not problems, expected, status, "; ".join(problems) or None)


def judge_wire(node: str, mode: Mode, peer: Peer, probe: Probe) -> Evidence:
    """What the underlay showed of marked pings: the declared encapsulation, and the marker or not.

    Without encapsulation they are the endpoints' own packets, with the endpoints' addresses.
    """
    bare_is_right = mode.header_bytes == 0 and mode.wire.probe == "icmp"
    expected: dict[str, object] = {
        "filter": mode.wire.filter,
        "marker": mode.wire.marker,
        "bare_icmp": bare_is_right,
    }
    observed: dict[str, object] = {
        "encapsulated": probe.encapsulated,
        "bare_icmp": probe.bare_icmp,
        "marked": probe.marked,
    }
    carried = probe.bare_icmp if bare_is_right else probe.encapsulated
    problems = []
    if bare_is_right:
        pair = f"{probe.status.get('endpoint_address')} > {peer.endpoint}"
        expected["between"], observed["between"] = pair, list(probe.between)
        if probe.bare_icmp and pair not in probe.between:
            problems.append(
                f"pings crossed the underlay as {', '.join(probe.between)}, and not as the endpoints' {pair}"
            )
    if carried < PINGS:
        problems.append(f"{carried} packets of `{mode.wire.filter}` on the underlay for {PINGS} pings")
    if not bare_is_right and probe.bare_icmp:
        problems.append(f"{probe.bare_icmp} pings crossed the underlay without encapsulation")
    if mode.wire.marker == "visible" and probe.marked < PINGS:
        problems.append(f"the payload marker was seen {probe.marked} times, not {PINGS}")
    if mode.wire.marker == "absent" and probe.marked:
        problems.append(f"the payload marker was readable in {probe.marked} packets that should be encrypted")
    return Evidence(node, "wire", "converge", not problems, expected, observed, "; ".join(problems) or None)


def judge_path(node: str, peer: Peer, probe: Probe) -> Evidence:
    """What carries the packets is known: some route, entry, tunnel or flow leads to the peer."""
    expected = {"underlay": peer.underlay, "endpoint": peer.endpoint}
    reason = None
    if not probe.path:
        reason = f"no route, entry, tunnel or flow to {peer.endpoint} at {peer.underlay}"
    return Evidence(node, "path", "converge", bool(probe.path), expected, {"lines": list(probe.path)}, reason)


def judge_mtu(node: str, mtu: int, probe: Pinged) -> Evidence:
    """The MTU that really passes from the node with DF set: the claimed one does, one byte more does not."""
    observed = {"received": probe.received, "sent": PINGS, "one_byte_more_passes": probe.over_mtu_passes}
    problems = []
    if probe.received < PINGS:
        problems.append(
            f"{probe.received} of {PINGS} pings of {mtu} bytes came back: a smaller MTU passes, or none"
        )
    if probe.over_mtu_passes:
        problems.append(f"{mtu + 1} bytes pass too: the MTU is larger than {mtu}")
    return Evidence(
        node, "mtu", "converge", not problems, {"mtu": mtu}, observed, "; ".join(problems) or None
    )


def judge_accounting(
    sender: str,
    before: JSON,
    after: JSON,
    peer_before: JSON,
    peer_after: JSON,
) -> Evidence | None:
    """Bytes that the sender's qdisc counted against bytes that the receiver's NIC got, over one trial.

    They differ where super-packets are counted by one header. None where the underlay is not shaped.
    """
    first, last = qdisc_bytes(before), qdisc_bytes(after)
    if first is None or last is None:
        return None
    sent, received = last - first, peer_after["rx_bytes"] - peer_before["rx_bytes"]
    ratio = received / sent if sent else None
    ok = ratio is not None and abs(received - sent) <= max(ACCOUNTING_TOLERANCE * sent, ACCOUNTING_SLACK)
    reason = None
    if not ok:
        reason = f"the sender's qdisc counted {sent} bytes, the receiver's NIC {received}"
    return Evidence(
        sender, "accounting", "after", ok, {"tolerance": ACCOUNTING_TOLERANCE, "slack_bytes": ACCOUNTING_SLACK},
        {"qdisc_bytes": sent, "peer_rx_bytes": received, "ratio": ratio}, reason,
    )  # fmt: skip
