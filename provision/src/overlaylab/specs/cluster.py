"""Clusters (vagrant/clusters): nodes, their zones, sizes and underlay addresses."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address, IPv4Interface, IPv4Network, NetmaskValueError
from pathlib import Path

from overlaylab.core.documents import Document, load_document, named
from overlaylab.core.model import JSON
from overlaylab.core.paths import CLUSTERS
from overlaylab.specs.routes import overlapping_route, via


@dataclass(frozen=True)
class NodeSpec:
    """One node. memory_mib: MiB; cpus_without_kvm: where QEMU emulates, more vCPUs only slow each other."""

    name: str
    zone: str
    memory_mib: int
    cpus: int
    cpus_without_kvm: int
    underlay_address: IPv4Interface


@dataclass(frozen=True)
class ClusterSpec:
    """A cluster as its file describes it. digest: SHA-256 of the description, in hex."""

    name: str
    description: str
    underlay: IPv4Network
    nodes: tuple[NodeSpec, ...]
    digest: str
    source: Document = field(repr=False, compare=False)

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones that have a node, sorted."""
        return tuple(sorted({node.zone for node in self.nodes}))


def load_cluster(name: str) -> ClusterSpec:
    """The cluster ``vagrant/clusters/<name>.yml``. Raises UserError."""
    return read_cluster(named("cluster", name, CLUSTERS, "CLUSTER"))


def read_cluster(path: Path) -> ClusterSpec:
    """A cluster from any file, schema and cross-checks applied. Raises UserError."""
    document = load_document(path, CLUSTERS / "cluster.schema.json")
    network = _network(document)
    nodes = tuple(
        NodeSpec(
            name=node["name"],
            zone=node["zone"],
            memory_mib=node["memory_mib"],
            cpus=node["cpus"],
            cpus_without_kvm=node["cpus_without_kvm"],
            underlay_address=_address(document, index, network),
        )
        for index, node in enumerate(document.data["nodes"])
    )
    _check_distinct(document, nodes)
    return ClusterSpec(path.stem, document.data["description"], network, nodes, document.digest, document)


def check_routes(cluster: ClusterSpec, routes: Iterable[JSON], own_devices: Collection[str] = ()) -> None:
    """Refuse an underlay that overlaps a route of the machine the nodes run on.

    routes: the output of ``ip -j route show table all``; own_devices: the lab's own bridges.
    """
    route = overlapping_route(cluster.underlay, routes, own_devices)
    if route is not None:
        raise cluster.source.error(
            "underlay",
            "network",
            rule="must not overlap a network that this machine already reaches",
            seen=f"{cluster.underlay}, and a route to {via(route)}",
            fix="Choose another private network here and addresses in it for the nodes.",
        )


def _network(document: Document) -> IPv4Network:
    text = document.data["underlay"]["network"]
    at = ("underlay", "network")
    try:
        network = IPv4Network(text)
    except (AddressValueError, NetmaskValueError, ValueError) as wrong:
        fix = "Write the network's first address and its length, such as 192.168.77.0/24."
        raise document.error(
            *at, rule="must be an IPv4 network", seen=f'"{text}": {wrong}', fix=fix
        ) from None
    if not network.is_private or network.is_loopback or network.is_link_local:
        raise document.error(
            *at,
            rule="must be a private network",
            seen=f'"{text}"',
            fix="Take one out of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16.",
        )
    if network.prefixlen > 28:
        raise document.error(
            *at, rule="must have room for nodes: /28 or larger", seen=f'"{text}"', fix="Take a /24."
        )
    return network


def _address(document: Document, index: int, network: IPv4Network) -> IPv4Interface:
    text = document.data["nodes"][index]["underlay_address"]

    def wrong(rule: str) -> Exception:
        example = network.network_address + 11 + index
        fix = f"Choose a free host address in it, such as {example}."
        return document.error("nodes", index, "underlay_address", rule=rule, seen=f'"{text}"', fix=fix)

    try:
        address = IPv4Address(text)
    except AddressValueError:
        raise wrong(f"must be an IPv4 address in {network}") from None
    if address not in network:
        raise wrong(f"must lie in the underlay network {network}")
    if address == network.network_address:
        raise wrong(f"must not be the network address of {network}")
    if address == network.broadcast_address:
        raise wrong(f"must not be the broadcast address of {network}")
    if address == network.network_address + 1:
        raise wrong(f"must not be the first address of {network}, which libvirt's bridge has")
    return IPv4Interface(f"{address}/{network.prefixlen}")


def _check_distinct(document: Document, nodes: tuple[NodeSpec, ...]) -> None:
    names: dict[str, int] = {}
    addresses: dict[IPv4Address, str] = {}
    for index, node in enumerate(nodes):
        if node.name in names:
            raise document.error(
                "nodes",
                index,
                "name",
                rule="must be a name that no other node has",
                seen=f'"{node.name}", also nodes[{names[node.name]}]',
                fix="Give each node its own name.",
            )
        other = addresses.get(node.underlay_address.ip)
        if other is not None:
            raise document.error(
                "nodes",
                index,
                "underlay_address",
                rule="must be an address that no other node has",
                seen=f"{node.underlay_address.ip}, also {other}",
                fix="Give each node its own address.",
            )
        names[node.name] = index
        addresses[node.underlay_address.ip] = node.name
