"""Proof of a trial within one node: its two endpoints reach each other there, and none of it is on the underlay.

Text in, `Evidence` out; `evidence` has what is proven between two nodes.
"""

from __future__ import annotations

import base64
import json
import shlex
from dataclasses import dataclass, replace
from typing import Any

from overlaylab.core.model import JSON, Evidence
from overlaylab.run.evidence import (
    _CUT,
    HEADERS,
    MARKER,
    PINGS,
    STATUS,
    Pinged,
    captured,
    judge_mtu,
    read_frames,
    read_status,
    received,
)
from overlaylab.specs.overlays import Mode

# The namespaces that a client and a server within one node run in.
FIRST, SECOND = "endpoint", "endpoint2"

# Makes the second one, attached as the first is; the overlay's role installs the command.
ATTACH = f"/opt/overlaylab/overlay/overlay-start {SECOND}"

# Bytes of the largest IPv4 packet: a loopback device's MTU is one more.
LARGEST = 65535

# Seconds until the second endpoint has to answer the first: daemons learn of it when it is there.
PATIENCE = 15


def addresses_script() -> str:
    """POSIX sh for root, where both endpoints are; `read_addresses` reads it."""
    return f"ip -n {FIRST} -4 -j address show; echo '{_CUT}'; ip -n {SECOND} -4 -j address show"


def read_addresses(printed: str, status: JSON) -> tuple[str, str]:
    """The addresses of both endpoints' overlay devices. ValueError where one has none.

    status: the overlay's own word, which names the device and, where a device has several addresses, which one. What
    peers reach it at may be another one, as behind NAT.
    """
    found = []
    for name, text in zip((FIRST, SECOND), printed.split(_CUT), strict=True):
        infos: list[JSON] = next(
            (d["addr_info"] for d in json.loads(text) if d["ifname"] == status["endpoint_device"]), []
        )
        addresses: list[str] = [info["local"] for info in infos]
        if not addresses:
            raise ValueError(f"{status['endpoint_device']} has no address in the namespace {name}")
        told = status.get("endpoint_address")
        found.append(next((one for one in addresses if one == told), addresses[0]))
    return found[0], found[1]


def reach_script(client: str, server: str) -> str:
    """POSIX sh for root: waits until the server's endpoint answers the client's; `read_mtu` reads it."""
    return f"""
ip netns exec {FIRST} ping -n -q -c 1 -w {PATIENCE} {shlex.quote(server)} >/dev/null ||
    {{ echo "{FIRST} gets no answer from {SECOND} at {server} within {PATIENCE} s" >&2; exit 1; }}
for end in '{FIRST} {server}' '{SECOND} {client}'; do
    ip -n "${{end% *}}" -j route get "${{end#* }}"; echo '{_CUT}'
    ip -n "${{end% *}}" -j link show; echo '{_CUT}'
done
"""


def read_mtu(printed: str) -> int:
    """Bytes that pass between the endpoints in one packet, by the devices that lead from one to the other."""
    parts = printed.split(_CUT)
    found = [LARGEST]
    for route, links in zip(parts[0:4:2], parts[1:4:2], strict=True):
        (way,) = json.loads(route)
        found += [link["mtu"] for link in json.loads(links) if link["ifname"] == way["dev"]]
    return min(found)


def probe_script(interface: str, client: str, server: str, mtu: int, mode: Mode) -> str:
    """POSIX sh for root; `read_probe` reads what it prints. mtu: bytes that are claimed to pass.

    Only what leaves is captured: a macvlan device shows its parent what it hands to another one (macvlan_queue_xmit in
    the kernel's drivers/net/macvlan.c), as if it had come in.
    """
    size = mtu - HEADERS
    pings = "".join(
        f"""
ip netns exec {namespace} ping -n -q -c {PINGS} -i 0.05 -W 2 -M do -s {size} -p {MARKER.hex()} {to}
echo '{_CUT}'
ip netns exec {namespace} ping -n -q -c 1 -W 0.1 -M do -s {size + 1} {to} 2>&1
echo '{_CUT}'"""
        for namespace, to in ((FIRST, server), (SECOND, client))
    )
    capture = captured(f"tcpdump -i {shlex.quote(interface)} -Q out", f"({mode.wire.filter}) or icmp", pings)
    return f"""{capture}echo '{_CUT}'
ip -n {FIRST} -o route get {server}
echo '{_CUT}'
{STATUS}
"""


@dataclass(frozen=True)
class Probe:
    """What a probe saw. there, back: pings from the client's endpoint and from the server's.

    marked: packets with the pings' marker that left by the underlay; left: IP bytes of all that left of what the
    overlay puts there; path: what leads from one to the other.
    """

    there: Pinged
    back: Pinged
    marked: int
    left: int
    path: tuple[str, ...]
    status: dict[str, Any]


def read_probe(printed: str) -> Probe:
    """The probe's output as values. ValueError where the script did not get to its end."""
    parts = printed.split(_CUT)
    if len(parts) != 7:
        raise ValueError(f"the probe stopped early: {printed.strip()[-300:]!r}")
    there, over, back, over_back, wire, path, status = parts
    frames = read_frames(base64.b64decode(wire))
    return Probe(
        there=Pinged(received(there), received(over) > 0),
        back=Pinged(received(back), received(over_back) > 0),
        marked=sum(MARKER in frame for frame in frames),
        left=sum(_length(frame) for frame in frames),
        path=tuple(line for line in map(str.strip, path.splitlines()) if line),
        status=read_status(status),
    )


def _length(frame: bytes) -> int:
    """Bytes of the IPv4 packet in a frame that the capture has cut off; of another frame what there is of it."""
    is_ip = len(frame) >= 18 and frame[12:14] == b"\x08\x00"
    return int.from_bytes(frame[16:18], "big") if is_ip else len(frame)


def judge(node: str, mode: Mode, client: str, server: str, mtu: int, probe: Probe) -> tuple[Evidence, ...]:
    """All but the overlay's own word: nothing on the underlay, what leads there, the MTU of both directions."""
    reason = None if probe.path else f"no route leads from {client} to {server}"
    path = Evidence(
        node, "path", "converge", bool(probe.path), {"endpoint": server}, {"lines": list(probe.path)}, reason
    )
    return (
        judge_wire(node, mode, mtu, probe),
        path,
        *(
            replace(said, expected={**said.expected, "from": namespace})
            for namespace, said in (
                (FIRST, judge_mtu(node, mtu, probe.there)),
                (SECOND, judge_mtu(node, mtu, probe.back)),
            )
        ),
    )


def judge_wire(node: str, mode: Mode, mtu: int, probe: Probe) -> Evidence:
    """None of the marked pings left by the underlay.

    What is sealed shows no marker: there, all that left together is less than one direction's pings. Daemons send little.
    """
    most = PINGS * mtu - 1 if mode.wire.marker == "absent" else None
    expected = {"filter": mode.wire.filter, "marked": 0} | ({} if most is None else {"bytes_at_most": most})
    observed = {"marked": probe.marked, "bytes": probe.left}
    problems = []
    if probe.marked:
        problems.append(
            f"{probe.marked} packets with the pings' marker left by the underlay: the node's two endpoints do not reach"
            " each other within it"
        )
    if most is not None and probe.left > most:
        problems.append(
            f"{probe.left} bytes of `{mode.wire.filter}` left by the underlay, as many as the pings between the node's"
            " two endpoints have"
        )
    return Evidence(node, "wire", "converge", not problems, expected, observed, "; ".join(problems) or None)
