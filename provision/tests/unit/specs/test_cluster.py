"""Clusters and routes. Wrong ones: test_documents_golden.py."""

import itertools
import re
from ipaddress import IPv4Interface, IPv4Network

import pytest

from overlaylab.core.documents import names_in
from overlaylab.core.errors import UserError
from overlaylab.core.paths import CLUSTERS, ROOT
from overlaylab.providers import lxc_config
from overlaylab.specs.cluster import check_routes, load_cluster
from overlaylab.specs.routes import overlapping_route


def test_pair() -> None:
    pair = load_cluster("pair")
    assert pair.name == "pair"
    assert pair.underlay == IPv4Network("192.168.77.0/24")
    assert pair.zones == ("a",)
    assert [(n.name, n.zone, n.memory_mib, n.cpus, n.cpus_without_kvm) for n in pair.nodes] == [
        ("node1", "a", 1024, 2, 1),
        ("node2", "a", 1024, 2, 1),
    ]
    assert [n.underlay_address for n in pair.nodes] == [
        IPv4Interface("192.168.77.11/24"),
        IPv4Interface("192.168.77.12/24"),
    ]


@pytest.mark.parametrize("name", names_in(CLUSTERS))
def test_every_cluster_in_the_folder_is_right(name: str) -> None:
    assert load_cluster(name).name == name


@pytest.mark.parametrize(
    ("destination", "overlaps"),
    [
        ("192.168.77.0/24", True),
        ("192.168.0.0/16", True),
        ("192.168.77.200", True),
        ("192.168.78.0/24", False),
        ("default", False),
        ("0.0.0.0/0", False),
        ("0.0.0.0/1", False),
        ("128.0.0.0/1", False),
        ("fd00::/8", False),
    ],
)
def test_overlap(destination: str, overlaps: bool) -> None:
    route = {"dst": destination, "dev": "tun0"}
    assert overlapping_route(IPv4Network("192.168.77.0/24"), [route]) == (route if overlaps else None)


def test_the_labs_own_bridge_is_no_obstacle() -> None:
    routes = [
        {"dst": "192.168.77.0/24", "dev": "virbr2", "prefsrc": "192.168.77.1"},
        {"dst": "192.168.77.1", "dev": "virbr2", "table": "local"},
    ]
    check_routes(load_cluster("pair"), routes, {"virbr2"})
    with pytest.raises(UserError, match=r"vagrant/clusters/pair.yml:\d+: underlay.network: must not overlap"):
        check_routes(load_cluster("pair"), routes)


def test_no_cluster_shares_a_network_with_another_or_with_the_management_of_nodes() -> None:
    """All of them can be up at once, whichever provider has made them."""
    vagrantfile = (ROOT / "vagrant" / "Vagrantfile").read_text()
    networks = [
        lxc_config.MANAGEMENT_NETWORK,
        IPv4Network(re.findall(r'management_network_address = "(.+)"', vagrantfile)[0]),
        *(load_cluster(name).underlay for name in names_in(CLUSTERS)),
    ]
    assert [pair for pair in itertools.combinations(networks, 2) if pair[0].overlaps(pair[1])] == []


@pytest.mark.parametrize(("name", "zones"), [("pair-zones", ("a", "b")), ("three-zones", ("a", "b", "c"))])
def test_clusters_of_several_zones(name: str, zones: tuple[str, ...]) -> None:
    spec = load_cluster(name)
    assert tuple(node.zone for node in spec.nodes) == zones
    assert [(n.memory_mib, n.cpus, n.cpus_without_kvm) for n in spec.nodes] == [(1024, 2, 1)] * len(zones)
    assert len(lxc_config.underlay_bridge(name)) <= 15
