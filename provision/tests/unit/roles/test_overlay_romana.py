"""Romana on a node: what its status says of agent, routes and endpoint."""

import pytest
from lab_node import Scripts, interface

from overlaylab.core.paths import ROLES

ROUTES = "throw 192.0.2.0/24\n10.64.0.8/29 via 192.168.94.12 dev eth1 \n"
ADDRESS = """2: romana0@if9: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default qlen 1000 link-netnsid 0
    inet 10.64.0.0/32 scope global romana0
       valid_lft forever preferred_lft forever
"""


@pytest.fixture
def romana(tmp_path) -> Scripts:
    scripts = Scripts(ROLES / "overlay_romana", tmp_path)
    net = scripts.place("/sys/class/net")
    interface(net, "eth1")
    interface(net, "romana-endpoint")
    scripts.settings('NODE=node1\nINTERFACE=eth1\nMTU=1500\nSERVER=192.168.94.11\nPEERS="192.168.94.12"\n')
    answers(scripts)
    scripts.tool("systemctl", "exit 0")
    return scripts


def answers(scripts: Scripts, routes: str = ROUTES, address: str = ADDRESS) -> None:
    (scripts.folder / "routes").write_text(routes)
    (scripts.folder / "address").write_text(address)
    scripts.tool("ip", 'case $* in *route*) cat "$FOLDER/routes" ;; *address*) cat "$FOLDER/address" ;; esac')


def test_a_converged_node(romana: Scripts) -> None:
    assert romana.status() == {
        "overlay": "romana",
        "mode": None,
        "encrypted": False,
        "version": "2.0.2",
        "healthy": True,
        "reason": None,
        "endpoint_address": "10.64.0.0",
        "endpoint_device": "romana0",
        "endpoint_mtu": 1500,
        "overlay_mtu": 1500,
        "devices": ["romana-endpoint"],
        "peers": [{"address": "192.168.94.12", "state": "routed", "mode": None, "encrypted": False}],
    }


@pytest.mark.parametrize(("underlay", "passes"), [(9001, 1500), (1500, 1500), (1400, 1400)])
def test_the_mtu_is_its_own_or_a_narrower_underlays(romana: Scripts, underlay: int, passes: int) -> None:
    (romana.places["/sys/class/net"] / "eth1" / "mtu").write_text(f"{underlay}\n")
    said = romana.status()
    assert (said["endpoint_mtu"], said["overlay_mtu"]) == (1500, passes)


def test_what_is_wrong_is_named(romana: Scripts) -> None:
    answers(romana, routes="")
    assert (
        romana.status()["reason"] == "the node has no route to a block of the peer 192.168.94.12 in table 10"
    )
    answers(romana, address="")
    assert romana.status()["reason"] == "the endpoint has no address"
    romana.tool("systemctl", "exit 3")
    said = romana.status()
    assert (said["healthy"], said["version"], said["reason"]) == (False, None, "Romana's agent does not run")


def test_the_path_is_the_route_to_the_block_and_its_rule(romana: Scripts) -> None:
    romana.tool(
        "ip",
        """case $* in
            "-o route show table 10 match 10.64.0.8") echo "10.64.0.8/29 via 192.168.94.12 dev eth1" ;;
            rule*) echo "32765: from all lookup romana" ;;
        esac""",
    )
    found = romana.run("overlay-path", "192.168.94.12", "10.64.0.8").stdout
    assert found == "10.64.0.8/29 via 192.168.94.12 dev eth1\n32765: from all lookup romana\n"
    assert romana.run("overlay-path", "192.168.94.13", "10.64.0.8").stdout == ""
