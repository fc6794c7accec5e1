"""The overlay that runs, as it is right now: asked of every node, told in lines."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from overlaylab.live.running_overlay import RunningOverlay
from overlaylab.nodes.ssh import Nodes
from overlaylab.run import evidence
from overlaylab.specs import overlays

_CUT = "=====overlaylab====="
PROPERTIES = ("Id", "LoadState", "ActiveState", "SubState", "MainPID", "CPUUsageNSec", "ActiveEnterTimestamp")


@dataclass(frozen=True)
class Live:
    """What one node says."""

    # {device: bytes}
    mtus: Mapping[str, int]
    # {unit: {property: value}}, as systemctl show has them.
    units: Mapping[str, Mapping[str, str]]
    # {peer: lines of overlay-path}, of the moment after a ping.
    paths: Mapping[str, Sequence[str]]


def script(units: Sequence[str], peers: Sequence[tuple[str, str]]) -> str:
    """POSIX sh for root; peers: (underlay address, endpoint's address) of each. `read` reads what it prints."""
    lines = [
        'for device in /sys/class/net/*; do read -r mtu <"$device/mtu" && echo "${device##*/} $mtu"; done',
        f"echo '{_CUT}'",
    ]
    if units:
        lines.append(f"systemctl show --timestamp=utc -p {','.join(PROPERTIES)} {shlex.join(units)}")
    for underlay, endpoint in peers:
        # Flows that nothing used for a while are gone.
        ping = f"ip netns exec endpoint ping -n -q -c 2 -i 0.2 -W 1 {endpoint} >/dev/null 2>&1"
        lines += [f"echo '{_CUT}'", ping, f"{evidence.PATH} {underlay} {endpoint}"]
    return "\n".join([*lines, ":"])


def read(printed: str, peers: Sequence[str]) -> Live:
    """What `script` printed. ValueError where it did not get to its end."""
    parts = printed.split(f"{_CUT}\n")
    if len(parts) != 2 + len(peers):
        raise ValueError(f"the node's answer stopped early: {printed.strip()[-200:]!r}")
    devices, shown, *paths = parts
    blocks = [
        dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        for block in shown.split("\n\n")
    ]
    return Live(
        mtus={name: int(mtu) for name, mtu in map(str.split, devices.splitlines())},
        units={block["Id"]: block for block in blocks if "Id" in block},
        paths={
            peer: [line.strip() for line in told.splitlines() if line.strip()]
            for peer, told in zip(peers, paths, strict=True)
        },
    )


async def ask(nodes: Nodes, running: RunningOverlay) -> dict[str, Live]:
    """Every node in turn: their pings would be in each other's flows."""
    found = {}
    for name, node in nodes.items():
        peers = {
            other: (str(nodes[other].spec.underlay_address.ip), endpoint)
            for other in nodes
            if other != name and (endpoint := running.endpoint(other))
        }
        done = await node.sh(script(overlays.units_of(running.variant), list(peers.values())), check=False)
        found[name] = read(done.stdout, list(peers))
    return found


def lines(nodes: Nodes, running: RunningOverlay, live: Mapping[str, Live]) -> list[str]:
    """For people: a block for each node."""
    told = []
    for name, status in running.statuses.items():
        state = "healthy" if status["healthy"] else f"NOT healthy: {status['reason']}"
        told.append(f"{name}: {state}, version {status['version']}")
        told.append(
            f"  endpoint: {status['endpoint_address']} on {status['endpoint_device']}, MTU {status['endpoint_mtu']}"
            + (f"; {status['overlay_mtu']} bytes pass" if status["overlay_mtu"] else "")
        )
        if status["devices"]:
            mtus = (
                f"{device} {live[name].mtus.get(device, 'without an MTU')}" for device in status["devices"]
            )
            told.append(f"  devices and MTUs: {', '.join(mtus)}")
        told += [
            f"  {unit}: {_unit(about)}"
            for unit, about in live[name].units.items()
            if about["LoadState"] != "not-found"
        ]
        peers = {peer["address"]: peer for peer in status["peers"]}
        for other, path in live[name].paths.items():
            address = str(nodes[other].spec.underlay_address.ip)
            told.append(
                f"  to {other} ({address}, endpoint {running.endpoint(other)}): {_peer(peers.get(address))}"
            )
            told += [f"    {line}" for line in path or ["nothing carries packets there"]]
    return told


def _unit(about: Mapping[str, str]) -> str:
    state = f"{about['ActiveState']} ({about['SubState']})"
    if about["ActiveState"] != "active":
        return state
    used = about.get("CPUUsageNSec", "")
    cpu = (
        f", {int(used) / 1e9:.1f} s of CPU" if used.isdigit() and int(used) < 2**63 else ""
    )  # else: not counted
    return f"{state} since {about['ActiveEnterTimestamp']}, process {about['MainPID']}{cpu}"


def _peer(peer: Mapping[str, object] | None) -> str:
    """What the overlay itself says of a peer; it may keep no list."""
    if peer is None:
        return "no word from the overlay"
    sealed = ", encrypted" if peer.get("encrypted") else ""
    return f"{peer.get('state')}{' ' + str(peer['mode']) if peer.get('mode') else ''}{sealed}"
