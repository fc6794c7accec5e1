"""Calico's scripts on a node: what the status says, what carries packets, which rules and routes a reset deletes.

``fixtures/calico/<mode>/<command>.out``: recorded on a node of two, 192.168.92.11, whose peer is 192.168.92.12.
BIRD's template is Calico's own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_netstate_reset import script, traces  # noqa: F401  # a fixture

from overlaylab.core.paths import ROLES
from overlaylab.specs import overlays

CALICO = ROLES / "overlay_calico" / "files"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "calico"
SETTINGS = """MODE={mode}
INTERFACE=lo
NODE=node1
RANGE=172.16.0.0/16
MTU=
PEERS="192.168.92.12"
"""
ENDPOINT = """3: ethcali@if8: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {mtu} qdisc noqueue state UP group default qlen 1000
    inet 172.16.166.129/32 scope global ethcali
       valid_lft forever preferred_lft forever
"""
DEVICES = {"bgp": "lo", "ipip": "tunl0", "ipip-cross-subnet": "lo", "vxlan": "vxlan.calico"}
ESTABLISHED = "Mesh_192_168_92_12 BGP      master   up     14:04:55    Established   "
REFUSED = "Mesh_192_168_92_12 BGP      master   start  14:03:40    Active        Socket: Connection refused"


MODES = tuple(overlays.load("calico").modes)


def recorded(*name: str) -> str:
    return FIXTURES.joinpath(*name).read_text()


class Node:
    """A node's tools, each a script that prints what it is told; the underlay is lo."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        self.net = folder / "net"
        (self.net / "lo").mkdir(parents=True)
        (self.net / "lo" / "mtu").write_text("1500\n")
        (folder / "version").write_text("v3.28.5+20250813\n")
        self.tool("curl", "")

    def tool(self, name: str, answer: str | None) -> None:
        path = self.folder / "bin" / name
        path.write_text(
            f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n" if answer is not None else "#!/bin/sh\nexit 7\n"
        )
        path.chmod(0o755)

    def device(self, *names: str) -> None:
        for name in names:
            (self.net / name).mkdir(exist_ok=True)

    def status(
        self,
        mode: str,
        *,
        routes: str,
        sessions: str | None = ESTABLISHED,
        entries: str = "",
        endpoint: int | str | None = 1500,
        paths: bool = True,
    ) -> dict:
        (self.folder / "settings").write_text(SETTINGS.format(mode=mode))
        if paths:
            (self.folder / "paths").write_text(f"192.168.92.12 {DEVICES[mode]}\n")
        self.tool("birdc", None if sessions is None else f"BIRD 1.6.8 ready.\nAccess restricted\n{sessions}")
        self.tool("bridge", entries)
        address = ENDPOINT.format(mtu=endpoint) if isinstance(endpoint, int) else endpoint or ""
        (self.folder / "bin" / "ip").write_text(
            f"#!/bin/sh\ncase $* in\n'-4 route show') cat <<'END'\n{routes}\nEND\n;;\n"
            f"*) cat <<'END'\n{address}\nEND\n;;\nesac\n"
        )
        (self.folder / "bin" / "ip").chmod(0o755)
        text = (CALICO / "overlay-status").read_text()
        for old, new in (
            ("state=/run/overlaylab/overlay\n", f"state={self.folder}\n"),
            ("net=/sys/class/net\n", f"net={self.net}\n"),
            ("/opt/overlaylab/bin/birdc", "birdc"),
        ):
            assert old in text
            text = text.replace(old, new)
        environment = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        done = subprocess.run(["sh", "-c", text], env=environment, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return json.loads(done.stdout)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


UNDERLAY = "192.168.92.0/24 dev lo proto kernel scope link src 192.168.92.11"
OWN = "blackhole 172.16.166.128/26 proto bird"
BARE = f"{OWN}\n172.16.104.0/26 via 192.168.92.12 dev lo proto bird\n{UNDERLAY}"
TUNNEL = f"{OWN}\n172.16.104.0/26 via 192.168.92.12 dev tunl0 proto bird\n{UNDERLAY}"
LOST = f"{OWN}\nunreachable 172.16.104.0/26 proto bird\n{UNDERLAY}"

VXLAN = f"172.16.104.0/26 via 172.16.104.0 dev vxlan.calico onlink\n{UNDERLAY}"
ENTRIES = "66:0f:8e:58:9a:01 dst 192.168.92.12 self permanent"


SEEN = {  # (peer's mode, devices, MTU) on an underlay of 9001 bytes
    "bgp": ("bgp", ["caliendpoint"], 9001),
    "ipip": ("ipip", ["tunl0", "caliendpoint"], 8981),
    "ipip-cross-subnet": ("bgp", ["tunl0", "caliendpoint"], 8981),
    "vxlan": ("vxlan", ["vxlan.calico", "caliendpoint"], 8951),
}


def converged(node: Node, mode: str) -> dict:
    """What is said of the node that was recorded. lo is the underlay in place of its eth1."""
    (node.net / "lo" / "mtu").write_text("9001\n")
    node.device(*SEEN[mode][1])
    vxlan = mode == "vxlan"
    return node.status(
        mode,
        routes=recorded(mode, "ip--4-route-show.out").replace(" dev eth1 ", " dev lo ").strip(),
        sessions=None
        if vxlan
        else recorded(mode, "birdc-show-protocols.out").partition("since       info\n")[2],
        entries=recorded(mode, "bridge-fdb-show-dev-vxlan-calico.out") if vxlan else "",
        endpoint=recorded(mode, "ip--n-endpoint.out"),
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_converged_node(node, mode):
    how, devices, mtu = SEEN[mode]
    said = converged(node, mode)
    assert said == {
        "overlay": "calico",
        "mode": mode,
        "encrypted": False,
        "version": "3.28.5+20250813",
        "healthy": True,
        "reason": None,
        "endpoint_address": said["endpoint_address"],
        "endpoint_device": "ethcali",
        "endpoint_mtu": mtu,
        "overlay_mtu": mtu,
        "devices": devices,
        "peers": [{"address": "192.168.92.12", "state": "established", "mode": how, "encrypted": False}],
    }
    # Its block begins with the tunnel's address, where there is a tunnel.
    assert said["endpoint_address"] == "172.16.166.128" if mode == "bgp" else "172.16.166.129"


def test_within_one_subnet_cross_subnet_goes_bare_and_keeps_the_tunnels_mtu(node):
    node.device("tunl0")
    said = node.status("ipip-cross-subnet", routes=BARE, endpoint=1480)
    assert (said["healthy"], said["mode"], said["overlay_mtu"]) == (True, "ipip-cross-subnet", 1480)
    assert said["peers"][0]["mode"] == "bgp"


@pytest.mark.parametrize(
    ("mode", "with_", "seen", "reason"),
    [
        ("ipip", {"routes": BARE}, "bgp", "the data path is bgp, not ipip"),
        ("bgp", {"routes": TUNNEL}, "ipip", "the data path is ipip, not bgp"),
        ("bgp", {"routes": LOST}, None, "no route to the endpoints of 192.168.92.12"),
        (
            "bgp",
            {"routes": OWN, "sessions": REFUSED},
            None,
            "no BGP session with 192.168.92.12 on 179/tcp: Active Socket: Connection refused; no route to the endpoints",
        ),
        ("bgp", {"routes": BARE, "sessions": "kernel1  Kernel   master   up     14:04:53"}, "bgp",
         "BIRD has no session with 192.168.92.12"),
        ("bgp", {"routes": BARE, "sessions": None}, "bgp", "BIRD does not answer: see the journal"),
        ("vxlan", {"routes": UNDERLAY}, None, "no route to the endpoints of 192.168.92.12"),
        ("bgp", {"routes": BARE, "endpoint": None}, "bgp", "the endpoint has no address"),
        ("bgp", {"routes": BARE, "paths": False}, None, "Calico was not started to its end on this node"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(node, mode, with_, seen, reason):
    node.device("tunl0")
    said = node.status(mode, **with_)
    assert (said["healthy"], said["mode"]) == (False, seen)
    assert said["reason"].startswith(reason)


def test_without_its_tunnel_cross_subnet_is_bgp(node):
    said = node.status("ipip-cross-subnet", routes=BARE)
    assert (said["healthy"], said["mode"]) == (False, "bgp")
    assert said["reason"] == "there is no tunnel tunl0; the data path is bgp, not ipip-cross-subnet"


def test_a_dead_felix_is_told(node):
    node.tool("curl", None)
    said = node.status("bgp", routes=BARE)
    assert said["reason"].startswith("Felix does not say on 127.0.0.1:9099 that it is ready")


def test_words_of_bird_cannot_break_the_json(node):
    line = REFUSED.replace("Connection refused", 'said "no\\t"')
    said = node.status("bgp", routes=BARE, sessions=line)
    assert said["reason"] == (
        "no BGP session with 192.168.92.12 on 179/tcp: see the journal of overlaylab-calico-bird"
    )
    assert said["peers"][0]["state"] == "down"


def test_a_narrower_underlay_counts_although_felix_looked_once(node):
    (node.net / "lo" / "mtu").write_text("1400\n")
    node.device("tunl0")
    assert node.status("ipip", routes=TUNNEL, endpoint=1480)["overlay_mtu"] == 1380


@pytest.fixture
def reset(traces, monkeypatch):  # noqa: F811
    monkeypatch.syspath_prepend(str(CALICO))
    common = script(CALICO / "calico_traces.py")
    monkeypatch.setitem(sys.modules, "calico_traces", common)
    return script(CALICO / "overlay-reset")


def test_only_felixs_sets_are_destroyed(reset):
    common = sys.modules["calico_traces"]
    assert common.own_sets("cali40all-ipam-pools\nmine\ncali40masq-ipam-pools\nicali\n") == [
        "cali40masq-ipam-pools",
        "cali40all-ipam-pools",
    ]


@pytest.mark.parametrize("mode", MODES)
def test_only_calicos_routes_are_deleted(reset, mode):
    routes = json.loads(recorded(mode, "ip--j--4-route-show.json"))
    # The node's own block, and the peer's: in VXLAN that goes with the device.
    blocks = {"172.16.166.128/26", "172.16.104.0/26"} - ({"172.16.104.0/26"} if mode == "vxlan" else set())
    own = [route for route in routes if route["dst"] in blocks]
    assert len(own) == len(blocks)
    others = [
        # Another BIRD on the node, and an operator's route.
        {"dst": "10.1.0.0/16", "gateway": "192.168.92.1", "dev": "eth1", "protocol": "bird", "flags": []},
        {"dst": "172.16.7.0/24", "gateway": "192.168.92.1", "dev": "eth1", "protocol": "static", "flags": []},
        {"dst": "default", "gateway": "192.168.121.1", "dev": "eth0", "protocol": "dhcp", "flags": []},
    ]
    assert list(reset.own_routes(others + routes, "172.16.0.0/16")) == own


@pytest.mark.parametrize("mode", ["ipip", "vxlan"])
def test_all_of_felixs_rules_and_none_of_others_are_deleted(reset, traces, mode):  # noqa: F811
    own = sys.modules["calico_traces"]
    lines = recorded(mode, "iptables-save.txt").splitlines()
    foreign = [
        ":MINE - [0:0]",
        '-A FORWARD -i calibre0 -m comment --comment "calico: mine" -j ACCEPT',
        "-A OUTPUT -m mark --mark 0x10000/0x10000 -j DROP",
    ]
    begins = lines.index("*filter") + 1
    batch = traces.removal(lines[:begins] + foreign + lines[begins:], own.OWN_RULE.search, own.CHAINS)
    outside = [line for line in lines if line.startswith("-A ") and not line.startswith("-A cali-")]
    assert ["-A" + line[2:] for line in batch if line.startswith("-D")] == outside
    assert len(outside) == 12
    tables = "".join(f"{line}\n" for line in batch).split("COMMIT\n")[:-1]
    assert [table.splitlines()[0] for table in tables] == ["*mangle", "*raw", "*filter", "*nat"]
    for table in tables:
        start = lines.index(table.splitlines()[0])
        there = lines[start : lines.index("COMMIT", start)]
        chains = {line[1:].split()[0] for line in there if line.startswith(":cali-")}
        assert {line[3:] for line in table.splitlines() if line.startswith("-X")} == chains
        assert {line[3:] for line in table.splitlines() if line.startswith("-F")} == chains


def filtered(name: str) -> str:
    """A template of Calico's as overlay-start leaves it for confd."""
    text = (CALICO / "overlay-start").read_text()
    sed = next(line for line in text.splitlines() if line.strip().startswith("sed -e '/krt_tunnel"))
    command = f"{sed.strip().removesuffix(chr(92))} {FIXTURES / name}"
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout


def test_nothing_but_the_choice_of_a_tunnel_is_taken_out_of_birds_template():
    whole = recorded("bird_ipam.cfg.template").splitlines()
    left = filtered("bird_ipam.cfg.template").splitlines()
    gone = [line.split("{{-")[0].strip() for line in whole if line not in left]
    assert gone == [
        "if defined(bgp_next_hop) && ( bgp_next_hop ~ {{$network}} ) then",
        'krt_tunnel = "";',
        "else",
        'krt_tunnel = "{{$data.ipip}}";',
        'krt_tunnel = "{{$data.ipip}}";',
        'krt_tunnel = "{{$data.ipip}}";',
    ]
    assert len(whole) - len(left) == 6


def test_arp_is_said_in_the_words_of_ip_neighbour(tmp_path):
    tool = tmp_path / "ip"
    tool.write_text('#!/bin/sh\necho "$*"\n')
    tool.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    argv = ["sh", str(CALICO / "bin" / "arp")]
    done = subprocess.run(
        [*argv, "-s", "172.16.0.1", "02:00:00:00:00:01", "-i", "cali1"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "neighbour replace 172.16.0.1 lladdr 02:00:00:00:00:01 dev cali1 nud permanent\n"
    assert subprocess.run([*argv, "-d", "172.16.0.1"], env=environment, capture_output=True).returncode == 2
