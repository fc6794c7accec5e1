"""macvlan, ipvlan and SR-IOV on a node: what their status says of the endpoint's device, and how a card is judged.

``fixtures/macvlan``, ``fixtures/ipvlan``: ip(8) of iproute2 6.1 on nodes with kernel 6.1.
"""

import importlib.machinery
import importlib.util
from pathlib import Path

import pytest
from lab_node import Scripts, interface

from overlaylab.core.paths import ROLES

FIXTURES = Path(__file__).parents[2] / "fixtures"
KERNEL = Path("/proc/sys/kernel/osrelease").read_text().strip()
HERE = {"overlay_mtu": 9001, "endpoint_mtu": 9001, "version": KERNEL, "encrypted": False, "devices": []}


def recorded(name: str) -> str:
    return (FIXTURES / name).read_text()


def role(tmp_path: Path, name: str) -> Scripts:
    scripts = Scripts(ROLES / f"overlay_{name}", tmp_path)
    scripts.net = scripts.place("/sys/class/net")
    interface(scripts.net, "eth1", index=3)
    return scripts


# -- macvlan ----------------------------------------------------------------------------------------


@pytest.fixture
def macvlan(tmp_path: Path) -> Scripts:
    scripts = role(tmp_path, "macvlan")
    scripts.settings("INTERFACE=eth1\nMTU=\nRANGE=10.61.0.0/16\nFIRST=10.61.1.1\nLAST=10.61.1.254\n")
    scripts.prints("ip", recorded("macvlan/6.1-address.out"))
    return scripts


def test_macvlan_of_a_converged_node(macvlan: Scripts) -> None:
    assert macvlan.status() == HERE | {
        "overlay": "macvlan",
        "mode": "bridge",
        "healthy": True,
        "reason": None,
        "endpoint_address": "10.61.1.1",
        "endpoint_device": "mac0",
        "peers": [],
    }
    assert macvlan.calls == ["ip -n endpoint -d address show dev mac0 up"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("macvlan mode bridge", "macvlan mode vepa", "the interface of the endpoint is no macvlan in mode bridge but vepa"),
        ("macvlan mode bridge", "veth", "the interface of the endpoint is no macvlan in mode bridge"),
        ("mac0@if3", "mac0@if7", "the interface of the endpoint is not on eth1"),
        ("inet 10.61", "inet6 10.61", "the endpoint has no address"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_macvlan_is_named(macvlan: Scripts, old: str, new: str, reason: str) -> None:
    macvlan.prints("ip", recorded("macvlan/6.1-address.out").replace(old, new))
    said = macvlan.status()
    assert (said["healthy"], said["reason"]) == (False, reason)


@pytest.mark.parametrize("name", ["macvlan", "ipvlan", "sr_iov"])
def test_before_the_start_nothing_is_claimed(tmp_path: Path, name: str) -> None:
    scripts = role(tmp_path, name)
    scripts.tool("ip", "exit 1")
    said = scripts.status()
    assert (said["healthy"], said["mode"], said["endpoint_address"], said["overlay_mtu"]) == (False, None, None, None)  # fmt: skip
    assert "that is up" in said["reason"]


NEIGHBOUR = "10.61.2.1 lladdr 12:30:a0:51:f5:2c STALE \n"
ROUTE = "10.61.2.1 dev mac0 src 10.61.1.1 uid 0 \\    cache \n"


def test_the_path_of_macvlan_is_a_route_and_a_neighbour(macvlan: Scripts) -> None:
    macvlan.tool("ip", f"case $* in *neighbour*) printf %s '{NEIGHBOUR}' ;; *) printf %s '{ROUTE}' ;; esac")
    assert macvlan.run("overlay-path", "192.168.77.12", "10.61.2.1").stdout == ROUTE + NEIGHBOUR


def test_without_a_neighbour_there_is_no_path(macvlan: Scripts) -> None:
    macvlan.tool("ip", "case $* in *neighbour*) echo '10.61.2.1  FAILED' ;; *) exit 1 ;; esac")
    assert macvlan.run("overlay-path", "192.168.77.12", "10.61.2.1").stdout == ""
    assert "ip netns exec endpoint ping -n -q -c 1 -W 1 10.61.2.1" in macvlan.calls


# -- ipvlan -----------------------------------------------------------------------------------------

ROUTED = "10.62.2.0/24 via 192.168.94.12 dev eth1 \n"


@pytest.fixture
def ipvlan(tmp_path: Path) -> Scripts:
    return role(tmp_path, "ipvlan")


def converged(ipvlan: Scripts, mode: str, recorded_mode: str | None = None, routes: str = ROUTED) -> Scripts:
    """A node where one mode was asked for, and what is there is what was recorded in the same, or in another one."""
    ipvlan.settings(
        f'MODE={mode}\nINTERFACE=eth1\nBLOCK=10.62.1.0/24\nPEERS="\n192.168.94.12 10.62.2.0/24\n"\n'
    )
    (ipvlan.folder / "address").write_text(recorded(f"ipvlan/6.1-{recorded_mode or mode}-address.out"))
    (ipvlan.folder / "routes").write_text(routes)
    ipvlan.tool(
        "ip", 'case $* in *address*) cat "$FOLDER/address" ;; *protocol*) cat "$FOLDER/routes" ;; esac'
    )
    return ipvlan


def test_ipvlan_l2_of_a_converged_node(ipvlan: Scripts) -> None:
    assert converged(ipvlan, "l2").status() == HERE | {
        "overlay": "ipvlan",
        "mode": "l2",
        "healthy": True,
        "reason": None,
        "endpoint_address": "10.62.1.1",
        "endpoint_device": "ipvl0",
        "peers": [],
    }
    assert ipvlan.calls == ["ip -n endpoint -d address show dev ipvl0 up"]


def test_ipvlan_l3_of_a_converged_node(ipvlan: Scripts) -> None:
    said = converged(ipvlan, "l3").status()
    assert (said["healthy"], said["mode"], said["endpoint_address"]) == (True, "l3", "10.62.1.2")
    assert said["peers"] == [
        {"address": "192.168.94.12", "state": "routed", "mode": "l3", "encrypted": False}
    ]


def test_a_mode_that_was_not_asked_for_and_a_missing_route_are_named(ipvlan: Scripts) -> None:
    assert converged(ipvlan, "l2", "l3").status()["reason"] == "the interface of the endpoint is l3, not l2"
    said = converged(ipvlan, "l3", routes="").status()
    assert said["reason"] == "the node has no route to 10.62.2.0/24 through the peer 192.168.94.12"
    assert said["peers"][0]["state"] == "unreachable"


def test_the_path_of_ipvlan_is_the_nodes_route_or_the_peers_own_mac_address(ipvlan: Scripts) -> None:
    inside, neighbour = "10.62.2.2 via 10.62.1.1 dev ipvl0", "10.62.2.1 lladdr 52:54:00:5a:85:bb REACHABLE"
    answer = f"case $* in *neighbour*) echo '{neighbour}' ;; *get*) echo '{inside}' ;; *match*) cat $FOLDER/routes ;; esac"
    converged(ipvlan, "l3").tool("ip", answer)
    assert ipvlan.run("overlay-path", "192.168.94.12", "10.62.2.2").stdout == f"{inside}\n{ROUTED}"
    # The same block through another node is no path to this one.
    assert ipvlan.run("overlay-path", "192.168.94.13", "10.62.2.2").stdout == ""
    converged(ipvlan, "l2").tool("ip", answer)
    assert ipvlan.run("overlay-path", "192.168.94.12", "10.62.2.1").stdout == f"{inside}\n{neighbour}\n"


# -- SR-IOV -----------------------------------------------------------------------------------------

# As ip(8) prints a device of a PCI card; no card with virtual functions was at hand to record it.
FUNCTION = """7: vf0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP group default qlen 1000
    link/ether 3a:11:22:33:44:55 brd ff:ff:ff:ff:ff:ff promiscuity 0  allmulti 0 minmtu 68 maxmtu 9710 numtxqueues 4 numrxqueues 4 gso_max_size 65536 gso_max_segs 65535 tso_max_size 65536 tso_max_segs 65535 gro_max_size 65536 parentbus pci parentdev 0000:03:02.0
    inet 10.63.1.1/16 brd 10.63.255.255 scope global vf0
       valid_lft forever preferred_lft forever
"""


@pytest.fixture
def sr_iov(tmp_path: Path) -> Scripts:
    """A card with two virtual functions; sysfs as Documentation/ABI/testing/sysfs-bus-pci describes it."""
    scripts = role(tmp_path, "sr_iov")
    scripts.settings("INTERFACE=eth1\nMTU=\nRANGE=10.63.0.0/16\nFIRST=10.63.1.1\nLAST=10.63.1.254\n")
    card = tmp_path / "pci" / "0000:03:00.0"
    card.mkdir(parents=True)
    (scripts.net / "eth1" / "device").symlink_to(card)
    for number in (0, 1):
        slot = card.parent / f"0000:03:02.{number}"
        slot.mkdir()
        (card / f"virtfn{number}").symlink_to(slot)
    (card / "sriov_totalvfs").write_text("8\n")
    (card / "sriov_numvfs").write_text("2\n")
    scripts.prints("ip", FUNCTION)
    return scripts


def test_sr_iov_of_a_converged_node(sr_iov: Scripts) -> None:
    assert sr_iov.status() == HERE | {
        "overlay_mtu": 1500,
        "endpoint_mtu": 1500,
        "overlay": "sr-iov",
        "mode": None,
        "healthy": True,
        "reason": None,
        "endpoint_address": "10.63.1.1",
        "endpoint_device": "vf0",
        "peers": [],
    }


def test_a_device_that_is_no_function_of_the_card_is_noticed(sr_iov: Scripts) -> None:
    sr_iov.prints("ip", FUNCTION.replace("0000:03:02.0", "0000:04:00.0"))
    assert sr_iov.status()["reason"] == "the device of the endpoint is no virtual function of eth1"


def start(sr_iov: Scripts, *functions: str, arguments: tuple[str, ...] = ()) -> str:
    """What overlay-start says where these virtual functions are network devices of the node."""
    device = sr_iov.net / "eth1" / "device"
    for number, name in enumerate(functions):
        (device / f"virtfn{number}" / "net" / name).mkdir(parents=True)
        interface(sr_iov.net, name, index=10 + number)
    common = sr_iov.folder / "common.sh"
    common.write_text(
        f'state={sr_iov.folder / "state"}\nleases=/nowhere\nrecord_before() {{ :; }}\nnamespace=${{1:-endpoint}}\nmake_namespace() {{ echo "make $namespace" >>$FOLDER/calls; }}\ncni() {{ echo "$*" >>$FOLDER/calls; }}\n'
    )
    sr_iov.places["/opt/overlaylab/overlay/common.sh"] = common
    sr_iov.places["/run/netns"] = sr_iov.folder / "netns"
    sr_iov.tool("sleep", ":")
    done = sr_iov.run("overlay-start", *arguments)
    return done.stdout + done.stderr


def test_a_function_that_nobody_uses_goes_into_the_endpoint(sr_iov: Scripts) -> None:
    sr_iov.tool("ip", 'case $* in *" ens3f0v0") echo "10: ens3f0v0 inet 10.9.9.9/24" ;; esac')
    (sr_iov.net / "eth1" / "mtu").write_text("9000\n")
    assert start(sr_iov, "ens3f0v0", "ens3f0v1") == "changed\n"
    assert (sr_iov.folder / "state" / "function").read_text() == "ens3f0v1 1500\n"
    assert not (sr_iov.folder / "state" / "functions").exists()
    assert "ip link set dev ens3f0v1 mtu 9000" in sr_iov.calls
    (called,) = [line for line in sr_iov.calls if line.startswith("ADD")]
    assert '"type":"host-device","device":"ens3f0v1"' in called
    assert called.endswith(" vf0 /opt/overlaylab/bin/cni")


def test_where_a_card_has_no_function_one_is_made(sr_iov: Scripts) -> None:
    number = sr_iov.net / "eth1" / "device" / "sriov_numvfs"
    number.write_text("0\n")
    sr_iov.tool("ip", "")
    assert start(sr_iov, "ens3f0v0") == "changed\n"
    assert number.read_text() == "2\n"
    assert (sr_iov.folder / "state" / "functions").read_text() == "eth1\n"


def test_a_second_endpoint_gets_another_function(sr_iov: Scripts) -> None:
    # That of the first is in the endpoint, and no device of the node any more.
    sr_iov.tool("ip", "")
    (sr_iov.net / "eth1" / "mtu").write_text("9000\n")
    assert start(sr_iov, "ens3f0v1", arguments=("endpoint2",)) == "changed\n"
    assert (sr_iov.folder / "state" / "function2").read_text() == "ens3f0v1 1500\n"
    assert "make endpoint2" in sr_iov.calls


def test_functions_that_are_all_in_use_are_an_error(sr_iov: Scripts) -> None:
    sr_iov.tool("ip", 'case $* in *address*) echo "10: x inet 10.9.9.9/24" ;; esac')
    assert start(sr_iov, "ens3f0v0") == (
        "overlay-start: no virtual function of eth1 is free: each is in use, or has no driver of the kernel's\n"
    )


# -- the check --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def check():
    """The module overlay_check as Python."""
    path = ROLES / "overlay_common" / "library" / "overlay_check.py"
    loader = importlib.machinery.SourceFileLoader("overlay_check", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A folder that stands for /sys/class/net."""
    interface(tmp_path, "eth1")
    return tmp_path


def test_an_underlay_that_is_down_is_named_before_its_address_is_missed(
    check, net: Path, monkeypatch
) -> None:
    monkeypatch.setattr(check, "output", lambda *_: "[]")
    (net / "eth1" / "flags").write_text("0x1002\n")
    assert check.underlay("eth1", "192.168.77.12", str(net)) == [
        "eth1 is down: `ip link set eth1 up` on the node"
    ]
    (net / "eth1" / "flags").write_text("0x1003\n")
    assert check.underlay("eth1", "192.168.77.12", str(net)) == [
        "eth1 has not the address 192.168.77.12 (it has none): correct the inventory or the node"
    ]


def test_ethernet_takes_devices_on_top(check, net: Path) -> None:
    assert check.ethernet("eth1", str(net)) == []
    assert check.ethernet("absent", str(net)) == []


def test_what_takes_no_devices_on_top_is_refused(check, net: Path) -> None:
    (net / "eth1" / "type").write_text("65534\n")
    (said,) = check.ethernet("eth1", str(net))
    assert said.startswith("eth1 is no Ethernet (its type is 65534), and only Ethernet takes further devices")


def test_wireless_and_ports_of_a_bridge_are_refused(check, net: Path) -> None:
    interface(net, "br0")
    (net / "eth1" / "master").symlink_to(net / "br0")
    assert check.ethernet("eth1", str(net)) == [
        "eth1 is a port of br0 already: write br0 as underlay_interface"
    ]
    (net / "eth1" / "phy80211").mkdir()
    assert check.ethernet("eth1", str(net))[0].startswith("eth1 is wireless")


def card(net: Path, total: str | None, made: str = "0", functions: int = 0) -> Path:
    device = net / "eth1" / "device"
    device.mkdir()
    if total is not None:
        (device / "sriov_totalvfs").write_text(f"{total}\n")
        (device / "sriov_numvfs").write_text(f"{made}\n")
    for number in range(functions):
        (device / f"virtfn{number}" / "net" / f"ens3f0v{number}").mkdir(parents=True)
    return device


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"total": "8"}, None),
        ({"total": "8", "made": "2", "functions": 2}, None),
        ({"total": None}, "the card of eth1 has no virtual functions: SR-IOV runs only on hosts whose underlay card has them"),
        ({"total": "0"}, "the card of eth1 may have no virtual functions (its sriov_totalvfs is 0): switch SR-IOV on in"),
        ({"total": "8", "made": "2"}, "none of the 2 virtual functions of eth1 is a network device here"),
    ],
)  # fmt: skip
def test_a_card_is_judged_by_its_virtual_functions(check, net: Path, about: dict, said: str | None) -> None:
    card(net, **about)
    found = check.virtual_functions("eth1", False, str(net))
    assert (found == []) if said is None else found[0].startswith(said)


def test_a_device_without_a_card_has_no_virtual_functions(check, net: Path) -> None:
    assert check.virtual_functions("eth1", False, str(net))[0].startswith(
        "the card of eth1 has no virtual functions"
    )


def test_the_overlays_own_function_is_no_lack(check, net: Path) -> None:
    card(net, "8", made="1")
    assert check.virtual_functions("eth1", True, str(net)) == []
