"""What the roles' overlay-path prints, with recorded answers of the tools in place of the tools."""

import os
import subprocess
from pathlib import Path

import pytest

from overlaylab.core.paths import ROLES

FIXTURES = Path(__file__).parents[2] / "fixtures" / "weave"
PEER, ENDPOINT = "192.168.77.12", "10.32.0.2"


class Tools:
    """A node on which `ip` and `curl` answer what was recorded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()

    def answer(self, tool: str, text: str) -> None:
        path = self.folder / "bin" / tool
        (self.folder / tool).write_text(text)
        path.write_text(f'#!/bin/sh\necho "$*" >>{self.folder}/asked\ncat {self.folder}/{tool}\n')
        path.chmod(0o755)

    def lines(self, role: str, *, settings: str = "", peer: str = PEER) -> list[str]:
        text = (ROLES / f"overlay_{role}" / "files" / "overlay-path").read_text()
        (self.folder / "settings").write_text(settings)
        script = self.folder / "overlay-path"
        script.write_text(text.replace("state=/run/overlaylab/overlay\n", f"state={self.folder}\n"))
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        argv = ["sh", str(script), peer, ENDPOINT]
        done = subprocess.run(argv, env={"PATH": path}, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.splitlines()

    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text().splitlines()


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(tmp_path)


def weave(mode: str, encrypted: bool = False) -> str:
    return f"MODE={mode}\nENCRYPTED={str(encrypted).lower()}\n"


def test_the_hosts_path_is_its_route(tools) -> None:
    route = "10.32.0.2 dev eth1 src 192.168.77.11 uid 0 \\    cache "
    tools.answer("ip", f"{route}\n")
    assert tools.lines("host") == [route]
    # The node's own network, or a container in it: their endpoint is the node.
    assert tools.asked() == ["-o route get 192.168.77.12"]


def test_fastdps_path_is_the_flows_that_set_a_tunnel_to_the_peer(tools) -> None:
    tools.answer("curl", (FIXTURES / "2.6.5-flows.out").read_text())
    # Of nine flows, five come in from the peer, and three go to groups.
    assert tools.lines("weave", settings=weave("fastdp")) == [
        "InPortFlowKey{vport: 1} EthernetFlowKey{src: 52:81:dd:06:34:9c, dst: 76:00:9d:55:9f:b9} actions "
        "SetTunnelAction{id: 00000000007511e6, ipv4src: 192.168.77.11, ipv4dst: 192.168.77.12, ttl: 64, df: true} "
        "OutputAction{vport: 2} packets 4"
    ]
    assert tools.lines("weave", settings=weave("fastdp"), peer="192.168.77.1") == []


def test_encrypted_flows_are_sealed_by_a_policy(tools) -> None:
    tools.answer("curl", (FIXTURES / "2.6.5-flows.out").read_text())
    tools.answer("ip", (FIXTURES / "6.1-xfrm-policy.out").read_text())
    plain = tools.lines("weave", settings=weave("fastdp"))
    (policy,) = [line for line in tools.lines("weave", settings=weave("fastdp", True)) if line not in plain]
    assert f" dst {PEER}/32 proto udp " in policy and "proto esp" in policy and "dir out" in policy
    assert tools.asked()[-1] == "-o xfrm policy list dir out"


def test_sleeves_path_is_its_established_connection(tools) -> None:
    ours = f"{PEER}:6783 established sleeve mtu 1438 sleeve 02:77:c0:a8:4d:0c(node2)"
    theirs = "192.168.77.1:6783 established sleeve mtu 1438 sleeve 02:77:c0:a8:4d:01(node1)"
    tools.answer("curl", f"{theirs}\n{ours}\n")
    assert tools.lines("weave", settings=weave("sleeve")) == [ours]
    tools.answer("curl", ours.replace("established", "pending"))
    assert tools.lines("weave", settings=weave("sleeve")) == []


@pytest.mark.parametrize("mode", ["fastdp", "sleeve"])
def test_a_daemon_that_does_not_answer_leaves_nothing(tools, mode) -> None:
    tools.answer("curl", "")
    assert tools.lines("weave", settings=weave(mode)) == []


@pytest.mark.parametrize(("mode", "encrypted"), [("fastdp", True), ("fastdp", False), ("sleeve", True)])
def test_a_path_takes_few_processes(tools, mode, encrypted) -> None:
    tools.answer("curl", "")
    tools.answer("ip", "")
    tools.lines("weave", settings=weave(mode, encrypted))
    assert len(tools.asked()) == 1 + (mode == "fastdp" and encrypted)
