"""Overlap of address ranges with the routes that a machine already has."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from ipaddress import IPv4Network

from overlaylab.model import JSON


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
