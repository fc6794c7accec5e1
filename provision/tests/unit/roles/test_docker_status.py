"""What the status scripts of overlays on Docker say, from what Docker and the kernel answered on real nodes."""

from pathlib import Path

import pytest
from lab_scripts import Status

FIXTURES = Path(__file__).parents[2] / "fixtures" / "docker"
SERVER = "\nDocker/20.10.24+dfsg1 (linux)"
PEER = "192.168.93.12"
ADDRESS = """15: {device}@if16: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {mtu} qdisc noqueue state UP group default  link-netnsid 0
    inet {address} brd 10.0.1.255 scope global {device}
       valid_lft forever preferred_lft forever"""
MODULE = "/sys/module/xfrm_user"


def recorded(name: str) -> str:
    return (FIXTURES / name).read_text()


# -- the swarm's network ----------------------------------------------------------------------------


@pytest.fixture
def swarm(tmp_path):
    def run(
        network="network-vxlan.json", *, encrypted=False, policies=False, mtu=1450, change=("", "")
    ) -> dict:
        status = Status(tmp_path, "docker_overlay")
        answer = recorded(network).strip().replace(*change) + SERVER if network else ""
        (tmp_path / "answer").write_text(answer)
        (tmp_path / "policies").write_text(recorded("xfrm-policy.txt") if policies else "")
        (tmp_path / "address").write_text(
            ADDRESS.format(device="ethdo", mtu=mtu, address="10.0.1.2/24") if mtu else ""
        )
        status.tool("curl", f"cat {tmp_path}/answer")
        status.tool("ip", f"case $* in *xfrm*) cat {tmp_path}/policies ;; *) cat {tmp_path}/address ;; esac")
        settings = f'ENCRYPTED="{str(encrypted).lower()}"\nPEERS="{PEER}"\n'
        said = status.run(settings, **{MODULE: str(tmp_path)})
        assert said.pop("devices") == []
        return said

    return run


def test_a_node_of_the_swarm(swarm):
    assert swarm() == {
        "overlay": "docker-overlay",
        "mode": "vxlan",
        "encrypted": False,
        "version": "20.10.24+dfsg1",
        "healthy": True,
        "reason": None,
        "endpoint_address": "10.0.1.2",
        "endpoint_device": "ethdo",
        "endpoint_mtu": 1450,
        "overlay_mtu": 1450,
        "peers": [{"address": PEER, "state": "established", "mode": "vxlan", "encrypted": False}],
    }


def test_encryption_is_what_the_kernel_has_and_not_what_docker_was_asked_for(swarm):
    said = swarm(encrypted=True, policies=True, mtu=1424)
    assert (said["healthy"], said["encrypted"], said["overlay_mtu"]) == (True, True, 1424)
    assert said["peers"][0]["encrypted"] is True


@pytest.mark.parametrize(
    ("asked", "mode", "encrypted", "reason"),
    [
        ({"network": None}, None, False, "dockerd does not answer: its unit is overlaylab-docker"),
        (
            {"network": "network-none.json"},
            None,
            False,
            "this node does not know the swarm's network: it is in no swarm, or its container is not attached",
        ),
        (
            {"change": (f'"{PEER}"', '"192.168.93.13"')},
            "vxlan",
            False,
            f"no endpoint of {PEER} in the swarm's network: its Docker has ended, or 7946/tcp or 7946/udp is blocked "
            "on the way",
        ),
        (
            {"change": ('"Name":"endpoint.', '"Name":"other.')},
            "vxlan",
            False,
            "the container has ended, or is not on the swarm's network",
        ),
        (
            {"encrypted": True, "mtu": 1424},
            "vxlan",
            False,
            "there is no IPsec policy for what goes to a peer: it would leave in the clear",
        ),
        (
            {"policies": True},
            "vxlan",
            True,
            "there is an IPsec policy though encryption was not asked for",
        ),
        ({"mtu": None}, "vxlan", False, "the endpoint has no address"),
    ],
)
def test_what_is_wrong_with_the_swarm_is_named(swarm, asked, mode, encrypted, reason):
    said = swarm(**asked)
    assert (said["healthy"], said["mode"], said["encrypted"]) == (False, mode, encrypted)
    assert said["reason"] == reason


# -- the bridge -------------------------------------------------------------------------------------


@pytest.fixture
def bridge(tmp_path):
    def run(*, docker=True, container=True, peer=True, mtu: int | None = 1500, underlay=1500) -> dict:
        status = Status(tmp_path, "bridge")
        answer = recorded("network-bridge.json").strip() + SERVER
        if not container:
            answer = answer.replace('"Name":"endpoint"', '"Name":"other"')
        (tmp_path / "answer").write_text(answer if docker else "")
        (tmp_path / "address").write_text(
            ADDRESS.format(device="ethbr", mtu=mtu, address="172.17.0.2/16") if mtu else ""
        )
        (tmp_path / "net" / "eth1").mkdir(parents=True)
        (tmp_path / "net" / "eth1" / "mtu").write_text(f"{underlay}\n")
        status.tool("curl", f"cat {tmp_path}/answer")
        status.tool("ip", f"case $* in *bash*) exit {int(not peer)} ;; *) cat {tmp_path}/address ;; esac")
        settings = f'ADDRESS="192.168.93.11"\nINTERFACE="eth1"\nPEERS="{PEER}"\n'
        said = status.run(settings, **{"/sys/class/net": str(tmp_path / "net")})
        assert said.pop("devices") == []
        return said

    return run


def test_a_container_behind_published_ports(bridge):
    assert bridge() == {
        "overlay": "bridge",
        "mode": None,
        "encrypted": False,
        "version": "20.10.24+dfsg1",
        "healthy": True,
        "reason": None,
        "endpoint_address": "192.168.93.11",
        "endpoint_device": "ethbr",
        "endpoint_mtu": 1500,
        "overlay_mtu": 1500,
        "peers": [{"address": PEER, "state": "established", "mode": None, "encrypted": False}],
    }


@pytest.mark.parametrize(
    ("mtu", "underlay", "passes"), [(1500, 9001, 1500), (1500, 1400, 1400), (9001, 9001, 9001)]
)
def test_what_passes_is_the_smaller_mtu(bridge, mtu, underlay, passes):
    said = bridge(mtu=mtu, underlay=underlay)
    assert (said["endpoint_mtu"], said["overlay_mtu"]) == (mtu, passes)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"docker": False}, "dockerd does not answer: its unit is overlaylab-docker"),
        ({"container": False}, "the container has ended, or is not on the bridge"),
        ({"mtu": None}, "the endpoint has no address"),
        (
            {"peer": False},
            f"the container on {PEER} does not answer at port 5199/udp: its node does not publish it, or the port is "
            "blocked on the way",
        ),
    ],
)
def test_what_is_wrong_with_the_bridge_is_named(bridge, asked, reason):
    said = bridge(**asked)
    assert (said["healthy"], said["reason"]) == (False, reason)
