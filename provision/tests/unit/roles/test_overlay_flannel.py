"""What Flannel's scripts on a node read out of its tools, and which routes and rules its reset takes away.

``fixtures/flannel/<mode>/<command>.out``: recorded on a node of two, 192.168.91.11, whose peer is 192.168.91.12.
"""

import importlib
import importlib.machinery
import importlib.util
import ipaddress
import json
import os
import subprocess
from pathlib import Path

import pytest

from overlaylab.core.paths import ROLES

FIXTURES = Path(__file__).parents[2] / "fixtures" / "flannel"
FILES = ROLES / "overlay_flannel" / "files"
PEER = "192.168.91.12"
SETTINGS = f'OVERLAY=flannel\nDEVICE=ethfl\nUNITS=overlaylab-flannel.service\nMODE={{mode}}\nINTERFACE=lo\nRANGE=10.244.0.0/16\nMTU=\nPEERS="{PEER}"\n'
ETCD = f'MEMBERS="192.168.91.11 {PEER}"\nENDPOINTS=http://192.168.91.11:2379,http://{PEER}:2379\nADDRESS=192.168.91.11\n'
MODES = ("vxlan", "host-gw", "udp", "ipip", "wireguard")
TOOL = """#!/bin/sh
name=$(printf '%s' "${0##*/} $*" | tr -c 'A-Za-z0-9\\n' -)
for file in "$ANSWERS"/*.out; do
    base=${file##*/}
    case $name in "${base%.out}"*) cat "$file"; exit ;; esac
done
exit 1
"""


class Node:
    """A node in one mode: tools that answer with what was recorded, unless a test says otherwise."""

    def __init__(
        self,
        folder: Path,
        mode: str,
        fixtures: Path | None = None,
        settings: str = SETTINGS,
        version: str = "0.28.4",
    ) -> None:
        self.folder, self.mode, self.settings, self.version = folder, mode, settings, version
        self.answers = folder / "answers"
        self.answers.mkdir()
        (folder / "bin").mkdir()
        (folder / "net").mkdir()
        for recorded in (fixtures or FIXTURES / mode).glob("*.out"):
            # The status reads the MTU of a device that is here as it was there: lo.
            text = recorded.read_text().replace(" dev eth1", " dev lo")
            (self.answers / recorded.name).write_text(text)
        for name in ("ip", "bridge", "wg", "curl", "etcdctl", "systemctl"):
            (folder / "bin" / name).write_text(TOOL)
            (folder / "bin" / name).chmod(0o755)
        self.device("lo", 9001)
        self.says("systemctl-is-active", "active\nactive\n")

    def device(self, name: str, mtu: int) -> None:
        (self.folder / "net" / name).mkdir(exist_ok=True)
        (self.folder / "net" / name / "mtu").write_text(f"{mtu}\n")

    def says(self, command: str, text: str) -> None:
        (self.answers / f"{command}.out").write_text(text)

    def run(self, script: str, *arguments: str, mode: str | None = None) -> subprocess.CompletedProcess[str]:
        (self.folder / "settings").write_text(self.settings.format(mode=mode or self.mode))
        (self.folder / "version").write_text(f"{self.version}\n")
        (self.folder / "etcd").write_text(ETCD)
        text = (FILES / script).read_text()
        text = text.replace("state=/run/overlaylab/overlay\n", f"state={self.folder}\n")
        text = text.replace("/run/overlaylab/etcd/settings", str(self.folder / "etcd"))
        text = text.replace("/sys/class/net", str(self.folder / "net"))
        environment = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "ANSWERS": str(self.answers)}
        return subprocess.run(
            ["sh", "-c", text, script, *arguments], env=environment, capture_output=True, text=True
        )

    def status(self, mode: str | None = None) -> dict:
        done = self.run("overlay-status", mode=mode)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)


@pytest.fixture
def node(tmp_path: Path, request: pytest.FixtureRequest) -> Node:
    """In the mode that the test's parameter names, vxlan where it has none."""
    mode = getattr(request, "param", "vxlan")
    node = Node(tmp_path, mode)
    device, mtu = DEVICES[mode]
    if device:
        node.device(device, mtu)
    node.device("cni0", mtu)
    return node


DEVICES = {
    "vxlan": ("flannel.1", 8951),
    "host-gw": (None, 9001),
    "udp": ("flannel0", 8973),
    "ipip": ("flannel.ipip", 8981),
    "wireguard": ("flannel-wg", 8921),
}


@pytest.mark.parametrize("node", MODES, indirect=True)
def test_a_converged_node(node):
    device, mtu = DEVICES[node.mode]
    said = node.status()
    address = said.pop("endpoint_address")
    assert address.startswith("10.244.")
    sealed = node.mode == "wireguard"
    assert said == {
        "overlay": "flannel",
        "mode": node.mode,
        "encrypted": sealed,
        "version": "0.28.4",
        "healthy": True,
        "reason": None,
        "endpoint_device": "ethfl",
        "endpoint_mtu": mtu,
        "overlay_mtu": mtu,
        "devices": ["cni0"] + ([device] if device else []),
        "peers": [{"address": PEER, "state": "known", "mode": node.mode, "encrypted": sealed}],
    }


@pytest.mark.parametrize("node", MODES, indirect=True)
def test_another_mode_than_the_one_asked_for_is_not_healthy(node):
    asked = "ipip" if node.mode != "ipip" else "vxlan"
    said = node.status(mode=asked)
    assert (said["healthy"], said["mode"]) == (False, node.mode)
    assert said["reason"] == f"the data path is {node.mode}, not {asked}"


@pytest.mark.parametrize("node", ["vxlan", "udp", "wireguard"], indirect=True)
def test_a_peer_that_packets_are_not_sent_to_is_missing(node):
    for recorded in list(node.answers.iterdir()):
        recorded.write_text(
            recorded.read_text()
            .replace(PEER, "192.168.91.13")
            .replace("eyJQdWJsaWNJUCI6IjE5Mi4xNjguOTEuMTIi", "eyJQdWJsaWNJUCI6IjE5Mi4xNjguOTEuMTMi")
        )
    said = node.status()
    assert said["peers"] == []
    assert (
        said["reason"] == f"no path to {PEER}: flanneld there has no subnet yet, or etcd does not pass it on"
    )


@pytest.mark.parametrize("node", ["host-gw", "ipip"], indirect=True)
def test_without_routes_there_is_no_path(node):
    node.says(
        "ip--4-route-show", "default via 192.168.76.1 dev eth0 proto dhcp src 192.168.76.5 metric 1024 \n"
    )
    said = node.status()
    assert (said["mode"], said["healthy"]) == (None, False)
    assert said["reason"] == "no route leads to another node's subnet"


@pytest.mark.parametrize(
    ("states", "reason"),
    [
        ("failed\nactive\n", "overlaylab-flannel.service is failed: see its journal"),
        ("active\ninactive\n", "overlaylab-etcd.service is inactive: see its journal"),
    ],
)
def test_a_daemon_that_does_not_run_is_named(node, states, reason):
    node.says("systemctl-is-active", states)
    said = node.status()
    assert (said["healthy"], said["reason"]) == (False, reason)


def test_an_endpoint_without_address_is_not_healthy(node):
    node.says("ip--n-endpoint", "")
    said = node.status()
    assert said["reason"] == "the endpoint has no address"
    assert (said["endpoint_address"], said["endpoint_mtu"], said["overlay_mtu"]) == (None, None, None)


@pytest.mark.parametrize(
    ("node", "headers"), [("vxlan", 50), ("host-gw", 0), ("wireguard", 60)], indirect=["node"]
)
def test_a_narrower_underlay_counts(node, headers):
    node.device("lo", 1300)
    assert node.status()["overlay_mtu"] == 1300 - headers


@pytest.mark.parametrize(
    ("node", "kinds"),
    [
        ("vxlan", [" via 10.244.", "lladdr ", f" dst {PEER} "]),
        ("host-gw", [f" via {PEER} dev lo "]),
        ("udp", [" dev flannel0 ", "/coreos.com/network/subnets/10.244."]),
        ("ipip", [f" via {PEER} dev flannel.ipip "]),
        ("wireguard", [" dev flannel-wg ", f"{PEER}:51820", "10.244."]),
    ],
    indirect=["node"],
)
def test_the_path_to_a_peer(node, kinds):
    done = node.run("overlay-path", PEER, "10.244.0.2")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == len(kinds)
    for line, kind in zip(lines, kinds, strict=True):
        assert kind in line


@pytest.mark.parametrize("node", ["vxlan", "wireguard"], indirect=True)
def test_where_no_path_leads_to_a_peer_only_its_route_is_told(node):
    done = node.run("overlay-path", "192.168.91.99", "10.244.0.2")
    assert not any("192.168.91.99" in line or PEER in line for line in done.stdout.splitlines())


@pytest.fixture
def reset(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROLES / "overlay_common" / "files"))
    monkeypatch.syspath_prepend(str(FILES))
    return importlib.import_module("flannel_traces")


def test_only_routes_through_other_nodes_are_deleted(reset):
    recorded = json.loads((FIXTURES / "host-gw" / "ip--j--4-route-show.json").read_text())
    foreign = [
        {"dst": "10.245.1.0/24", "gateway": PEER, "dev": "eth1", "flags": []},
        {"dst": "10.244.0.0/16", "gateway": PEER, "dev": "eth1", "flags": []},
        {"dst": "10.244.9.0/24", "dev": "dummy0", "flags": []},
    ]
    own = list(reset.own_routes([*foreign, *recorded], "10.244.0.0/16"))
    assert [(route["gateway"], route["dev"]) for route in own] == [(PEER, "eth1")]


def test_all_rules_of_flannel_and_none_of_others_are_deleted(reset):
    recorded = (FIXTURES / "vxlan" / "iptables-save.txt").read_text().splitlines()
    foreign = [
        "-A FORWARD -s 10.244.0.0/16 -j ACCEPT",
        '-A FORWARD -m comment --comment "flanneld forward" -j ACCEPT',
    ]
    lines = [part for line in recorded for part in ([line, *foreign] if line == "*filter" else [line])]
    batch = reset.traces.removal(lines, reset.own_rule, "FLANNEL-")
    deleted = {"-A" + line[2:] for line in batch if line.startswith("-D")}
    assert deleted == {
        line for line in recorded if line.startswith("-A ") and not line.startswith("-A FLANNEL-")
    }
    assert len(deleted) == 2
    assert {line for line in batch if line.startswith("-X")} == {"-X FLANNEL-FWD", "-X FLANNEL-POSTRTG"}


@pytest.mark.parametrize(
    ("wanted", "only", "told"),
    [
        ("10.244.0.0/16", None, "overlaps the route to 10.244."),
        # Its own routes, where it runs.
        ("10.244.0.0/16", "eth1", None),
        ("192.168.91.0/24", "eth1", "overlaps the route to 192.168.91.0/24 through eth1: choose another range with x"),
        ("192.168.76.0/24", "eth1", None),
    ],
)  # fmt: skip
def test_a_range_in_the_underlay_is_told_also_where_the_overlay_runs(monkeypatch, wanted, only, told):
    path = ROLES / "overlay_common" / "library" / "overlay_check.py"
    loader = importlib.machinery.SourceFileLoader("overlay_check", str(path))
    check = importlib.util.module_from_spec(importlib.util.spec_from_loader("overlay_check", loader))
    loader.exec_module(check)
    recorded = (FIXTURES / "host-gw" / "ip--j--4-route-show.json").read_text()
    monkeypatch.setattr(check, "output", lambda *_: recorded)
    problems = check.overlaps(ipaddress.ip_network(wanted), "x", only)
    assert len(problems) == bool(told)
    assert all(told in problem for problem in problems)
