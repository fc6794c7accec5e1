"""Overlap of address ranges with the routes that a machine already has."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Iterable
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from overlaylab.core.model import JSON
from overlaylab.machine.packages import find_program

_MAIN_TABLE = Path("/proc/net/route")


def known() -> list[JSON]:
    """This machine's IPv4 routes as ``ip -j route show table all`` prints them.

    Where iproute2 is not installed yet, before a first run's packages, only those of the main table.
    """
    ip = find_program("ip")
    if ip is None:
        return parse_main_table(_MAIN_TABLE.read_text(encoding="ascii"))
    argv = [ip, "-j", "route", "show", "table", "all"]
    routes: list[JSON] = json.loads(subprocess.run(argv, capture_output=True, check=False).stdout or "[]")
    return routes


def parse_main_table(text: str) -> list[JSON]:
    """Routes of /proc/net/route (proc(5)): addresses as hexadecimal numbers in the machine's own byte order."""
    found: list[JSON] = []
    for line in text.splitlines()[1:]:
        device, destination, _, _, _, _, _, mask, *_ = line.split()
        address, netmask = (
            IPv4Address(int(word, 16).to_bytes(4, sys.byteorder)) for word in (destination, mask)
        )
        network = IPv4Network(f"{address}/{netmask}", strict=False)
        found.append({"dst": str(network) if network.prefixlen else "default", "dev": device})
    return found


def overlapping_route(
    network: IPv4Network, routes: Iterable[JSON], own_devices: Collection[str] = ()
) -> JSON | None:
    """The first route that shares an address with ``network``, or None.

    routes: as ``ip -j route show table all`` prints them. Default routes do not count, whole or in the two
    halves (0.0.0.0/1, 128.0.0.0/1) that VPNs set: every network overlaps them. own_devices: interfaces of
    the lab itself.
    """
    for route in routes:
        destination = str(route.get("dst", "default"))
        if destination == "default" or ":" in destination or route.get("dev") in own_devices:
            continue
        reached = IPv4Network(destination, strict=False)
        if reached.prefixlen > 1 and reached.overlaps(network):
            return route
    return None


def via(route: JSON) -> str:
    """A route in few words: ``10.0.0.0/8 (dev tun0)``."""
    device = f" (dev {route['dev']})" if route.get("dev") else ""
    return f"{route['dst']}{device}"
