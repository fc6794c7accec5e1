"""A second endpoint on a node: what each role's overlay-start does when it is asked for one, with a node's tools faked."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from lab_node import Scripts, interface
from lab_scripts import script

from overlaylab.core.paths import ROLES
from overlaylab.run import evidence_local

LIBRARY = "/opt/overlaylab/overlay"
# Neither the second endpoint nor its device is there.
IP = 'case $* in *"link show"* | *"address show"*) exit 1 ;; esac'

ETCD = "MEMBERS=192.0.2.11\nENDPOINTS=http://192.0.2.11:2379\nADDRESS=192.0.2.11\n"
WIREGUARD = 'ADDRESS=10.50.0.1\nSECOND_ADDRESS=10.50.0.3\nNODE_ADDRESS=192.0.2.11\nLENGTH=16\nMTU=\nPEERS="\nkey 192.0.2.12 10.50.0.2\n"\n'

# What the role's settings say, its device in an endpoint, and its words where nothing runs.
ATTACHED = {
    "weave": ('MODE=fastdp\nOPTIONS="--ipalloc-range 10.32.0.0/12"\n', "ethwe", "weaver does not run"),
    "flannel": ("MODE=vxlan\nMTU=\nRANGE=10.244.0.0/16\n", "ethfl", "flanneld does not run"),
    "canal": ("MODE=vxlan\nMTU=\nNODE=node1\nNETWORK=overlaylab\n", "ethcanal", "flanneld and Felix do not run"),
    "calico": ('MODE=vxlan\nMTU=\nNODE=node1\nPEERS=""\n', "ethcali", "Calico does not run"),
    "macvlan": ("INTERFACE=eth1\nMTU=\nRANGE=10.61.0.0/16\nFIRST=10.61.1.1\nLAST=10.61.1.254\n", "mac0", None),
    "ipvlan": (
        'MODE=l3\nINTERFACE=eth1\nMTU=\nRANGE=10.62.0.0/16\nBLOCK=10.62.1.0/24\nPEERS="\n192.0.2.12 10.62.2.0/24\n"\n',
        "ipvl0", None,
    ),
}  # fmt: skip


DAEMONS = [name for name, (*_, words) in ATTACHED.items() if words]


class Start(Scripts):
    """A role's overlay-start with the files that it sources, on a node where the overlay runs."""

    def __init__(self, overlay: str, folder: Path, settings: str) -> None:
        super().__init__(ROLES / f"overlay_{overlay}", folder)
        self.settings(settings)
        library = self.place(LIBRARY)
        for path in (
            "/run/overlaylab/etcd",
            "/run/overlaylab/calico",
            "/run/netns",
            "/opt/overlaylab/bin/cni",
        ):
            self.place(path)
        net = self.place("/sys/class/net")
        interface(net, "cali2endpoint2")
        (net / "cali2endpoint2" / "address").write_text("ee:ee:ee:ee:ee:ee\n")
        (self.places["/run/overlaylab/etcd"] / "settings").write_text(ETCD)
        (self.places["/run/overlaylab/calico"] / "mtu").write_text("1450\n")
        for role, names in {
            "common": ("common.sh", "etcd.sh"),
            "flannel": ("flannel.sh",),
            "calico": ("calico.sh",),
        }.items():
            for name in names:
                text = (ROLES / f"overlay_{role}" / "files" / name).read_text()
                for path, ours in self.places.items():
                    text = text.replace(path, str(ours))
                (library / name).write_text(text)
        for name in ("calico/calico", "calico/calico-node", "flannel/flannel", "weave/weaveutil"):
            self.program(library / name)
        for name in ("macvlan", "ipvlan"):
            self.program(self.places["/opt/overlaylab/bin/cni"] / name)
        self.tool("ip", IP)
        self.tool("systemctl", "")
        self.tool("curl", """case $* in *--output*) ;; *) echo '{"health":"true"}' ;; esac""")
        # Of a plugin, its environment.
        self.tool(
            "timeout",
            'cat >/dev/null; echo "$CNI_COMMAND $CNI_CONTAINERID $CNI_NETNS $CNI_IFNAME" >>"$FOLDER/calls"',
        )

    def program(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)

    def second(self) -> subprocess.CompletedProcess[str]:
        return self.run("overlay-start", evidence_local.SECOND)


@pytest.fixture(params=ATTACHED)
def start(request, tmp_path) -> Start:
    settings, device, words = ATTACHED[request.param]
    made = Start(request.param, tmp_path, settings)
    made.device, made.words = device, words
    return made


def test_it_is_attached_as_the_first_is_and_no_daemon_is_started(start: Start) -> None:
    done = start.second()
    assert (done.returncode, done.stdout, done.stderr) == (0, "changed\n", "")
    netns = start.places["/run/netns"]
    (added,) = [call for call in start.calls if call.startswith("ADD ")]
    assert added == f"ADD 2endpoint2 {netns}/endpoint2 {start.device}"
    assert "ip netns add endpoint2" in start.calls
    touched = [call for call in start.calls if " start " in call or call.startswith(("ip route", "modprobe"))]
    assert touched == []


def test_one_that_is_there_is_left_alone(start: Start) -> None:
    address = {"mac0": "10.61.1.2", "ipvl0": "10.62.1.2"}.get(start.device, "10.32.0.2")
    start.tool("ip", f'echo "    inet {address}/24 scope global"')
    done = start.second()
    assert (done.returncode, done.stdout, done.stderr) == (0, "unchanged\n", "")
    assert not [call for call in start.calls if call.startswith("ADD ")]


@pytest.mark.parametrize("start", DAEMONS, indirect=True)
def test_where_the_overlay_does_not_run_that_is_said(start: Start) -> None:
    start.tool("systemctl", "exit 3")
    done = start.second()
    assert done.returncode == 1
    assert done.stderr.startswith(f"overlay-start: {start.words} on this node: converge it first\n")
    assert not [call for call in start.calls if call.startswith(("ADD ", "ip netns"))]


# -- romana, which has no plugin of its own to call -------------------------------------------------


def test_romana_is_asked_for_a_second_address(tmp_path) -> None:
    start = Start("romana", tmp_path, "NODE=node1\nSERVER=192.0.2.11\nMTU=1500\nPEERS=192.0.2.12\n")
    start.tool("curl", """echo '"10.64.0.3"'""")
    (start.place("/proc/sys/net/ipv4/neigh") / "romana-second").mkdir()
    done = start.second()
    assert (done.returncode, done.stdout, done.stderr) == (0, "changed\n", "")
    (asked,) = [call for call in start.calls if call.startswith("curl")]
    assert '"name":"endpoint2-1.node1"' in asked
    assert (
        "ip link add name romana0 mtu 1500 netns endpoint2 type veth peer name romana-second mtu 1500"
        in start.calls
    )
    assert "ip route add 10.64.0.3/32 dev romana-second" in start.calls


# -- wireguard, which connects nodes and not containers ----------------------------------------------


def test_wireguard_gets_a_second_device_that_is_a_peer_of_the_first_alone(tmp_path) -> None:
    start = Start("wireguard", tmp_path, WIREGUARD)
    start.tool(
        "ip",
        f'{IP}; case $* in *"exec endpoint wg show"*) echo FIRST ;; *"exec endpoint2 wg"*) echo SECOND ;; esac',
    )
    start.tool("wg", '[ "$1" != genkey ] || echo secret')
    done = start.second()
    assert (done.returncode, done.stdout, done.stderr) == (0, "changed\n", "")
    state = start.places["/run/overlaylab/overlay"]
    assert (
        f"wg set ovlab-wg listen-port 51821 private-key {state}/second.key"
        " peer FIRST endpoint 192.0.2.11:51820 allowed-ips 10.50.0.1/32" in start.calls
    )
    assert "ip link set dev ovlab-wg netns endpoint2 name wg0" in start.calls
    assert (
        "ip netns exec endpoint wg set wg0 peer SECOND endpoint 192.0.2.11:51821 allowed-ips 10.50.0.3/32"
        in start.calls
    )
    assert (state / "second.key").stat().st_mode & 0o777 == 0o600
    assert not any("secret" in call for call in start.calls)


def test_wireguard_without_a_first_device_says_so(tmp_path) -> None:
    start = Start("wireguard", tmp_path, WIREGUARD)
    start.tool("ip", "exit 1")
    done = start.second()
    assert (done.returncode, done.stderr) == (
        1,
        "overlay-start: there is no WireGuard device in the endpoint: converge it first\n",
    )


# -- docker ------------------------------------------------------------------------------------------


@pytest.fixture
def docker(engine, tmp_path, monkeypatch):
    """A Docker that notes what it is asked; the first container runs, the second does not."""
    asked = []

    def call(method, path, body=None, **_):
        asked.append((method, path, body))
        return {
            "Id": "78a9",
            "State": {"Pid": 812},
            "NetworkSettings": {"Networks": {"bridge": {"IPAddress": "172.17.0.3", "Gateway": "172.17.0.1"}}},
        }

    def run(argv, **how):
        asked.append((*argv, how.get("input")))
        return SimpleNamespace(stdout='[{"gateway": "172.18.0.1"}]', returncode=0)

    monkeypatch.setattr(engine, "call", call)
    monkeypatch.setattr(engine, "endpoint_runs", lambda name="endpoint": name == "endpoint")
    monkeypatch.setattr(engine.subprocess, "run", run)
    engine.asked = asked
    return engine


def test_docker_runs_a_second_container_on_the_bridge_with_nothing_published(
    docker, tmp_path, capsys
) -> None:
    script(ROLES / "overlay_bridge" / "files" / "overlay-start").second()
    assert capsys.readouterr().out == "changed\n"
    assert [item[:2] for item in docker.asked[:4]] == [
        ("DELETE", "/containers/endpoint2?force=true"),
        ("POST", "/containers/create?name=endpoint2"),
        ("POST", "/containers/endpoint2/start"),
        ("GET", "/containers/endpoint2/json"),
    ]
    assert docker.asked[1][2]["HostConfig"] == {}
    assert docker.asked[4][:5] == ("ip", "netns", "attach", "endpoint2", "812")
    assert docker.asked[5][:3] == ("ip", "-n", "endpoint2")
    assert "link set eth0 name ethbr\n" in docker.asked[5][-1]
    assert docker.read_container("endpoint2") == {"id": "78a9", "pid": 812, "address": "172.17.0.3"}
    assert docker.read_container() is None


def test_docker_attaches_a_second_container_to_the_swarms_network(docker, capsys) -> None:
    assert script(ROLES / "overlay_docker_overlay" / "files" / "overlay-start").second({})
    assert docker.asked[1][2]["HostConfig"] == {"NetworkMode": "overlaylab"}
    assert docker.asked[-1][:3] == ("ip", "-n", "endpoint2")
    for line in ("link set eth0 name ethdo\n", "route replace default via 172.18.0.1\n"):
        assert line in docker.asked[-1][-1]


def test_docker_leaves_a_second_container_that_runs_alone(docker, monkeypatch) -> None:
    monkeypatch.setattr(docker, "endpoint_runs", lambda name="endpoint": True)
    assert docker.run_second({}) is None
    assert docker.asked == []


def test_docker_without_a_first_container_says_so(docker, monkeypatch, capsys) -> None:
    monkeypatch.setattr(docker, "endpoint_runs", lambda name="endpoint": False)
    with pytest.raises(SystemExit):
        docker.run_second({})
    assert "the endpoint's container does not run on this node: converge it first" in capsys.readouterr().err


# -- host --------------------------------------------------------------------------------------------


def test_the_hosts_second_endpoint_is_the_nodes_own_network_too(tmp_path, monkeypatch) -> None:
    start = script(ROLES / "overlay_host" / "files" / "overlay-start")
    ran = []
    monkeypatch.setattr(start, "NETNS", str(tmp_path))
    monkeypatch.setattr(start.subprocess, "run", lambda argv, **how: ran.append(argv))
    with pytest.raises(SystemExit, match="the node's network is not the endpoint: converge it first"):
        start.second()
    (tmp_path / "endpoint").touch()
    assert start.second()
    assert ran == [["ip", "netns", "attach", "endpoint2", "1"]]
    (tmp_path / "endpoint2").touch()
    assert not start.second()
