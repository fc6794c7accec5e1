"""Whether an overlay's addresses are free: neither the underlay's nor those of a network that the operator reaches."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from ipaddress import IPv4Network

from overlaylab.core.model import JSON
from overlaylab.specs.cluster import ClusterSpec
from overlaylab.specs.overlays import Overlay
from overlaylab.specs.routes import overlapping_route, via


def check_ranges(
    overlay: Overlay,
    cluster: ClusterSpec | IPv4Network,
    routes: Iterable[JSON] = (),
    own_devices: Collection[str] = (),
) -> None:
    """Refuse an overlay whose addresses overlap the underlay or a network that the operator reaches.

    cluster: or its underlay network alone, where the nodes come from an inventory.
    routes: the output of ``ip -j route show table all``.
    """
    if overlay.range is None:
        return
    underlay = cluster if isinstance(cluster, IPv4Network) else cluster.underlay
    remedy = (
        f"Choose another range: ARGUMENTS={overlay.range_argument}=10.200.0.0/16, for example."
        if overlay.range_argument
        else "This overlay's range is fixed: choose another underlay network."
    )
    if overlay.range.overlaps(underlay):
        raise overlay.source.error(
            "range",
            rule="must not overlap the underlay network of the cluster",
            seen=f"{overlay.range} and {underlay}",
            fix=remedy,
        )
    route = overlapping_route(overlay.range, routes, own_devices)
    if route is not None:
        raise overlay.source.error(
            "range",
            rule="must not overlap a network that this machine already reaches",
            seen=f"{overlay.range}, and a route to {via(route)}",
            fix=remedy,
        )
