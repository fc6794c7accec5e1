"""`lab mtu` and `lab explain`: of an overlay that runs on nodes, of one that does not, and of none; the nodes in a table."""

import json
from dataclasses import asdict
from ipaddress import IPv4Interface
from types import SimpleNamespace

import pytest
from lab_builders import inventory
from lab_commands import lab, refused
from lab_fakes import FakeNodes
from test_running_overlay import FLOW, printed, status

from overlaylab.cli.commands import cluster, measure
from overlaylab.core.errors import NodeError
from overlaylab.core.lock import cluster_lock
from overlaylab.core.model import Variant
from overlaylab.live import overlay_live
from overlaylab.live.mtu_probe import _CUT
from overlaylab.providers import registry
from overlaylab.report.profile_table import SPARSE
from overlaylab.shaping import record as profile_record

pytestmark = pytest.mark.usefixtures("machine")

SNMP = "Ip: InDelivers FragCreates\nIp: 1 {}\n"


class Provider:
    """Two VMs with Weave on an underlay of 9001 bytes; what passes between endpoints is `passes`."""

    name, cluster = "libvirt", "pair"
    capabilities = registry.capabilities(name)

    def __init__(self, folder) -> None:
        self.folder = folder
        (folder / "inventory.yml").touch()
        self.state = "running"
        self.passes, self.told, self.pieces = 1410, True, 0
        self.did: list[object] = []
        self.nodes = FakeNodes(
            inventory("a", "a"),
            {
                "/proc/net/snmp": lambda script: f"{SNMP.format(3)}{_CUT}\n{SNMP.format(3 + self.pieces)}",
                "endpoint ping -n -c 2": lambda script: self.ping(script, self.passes),
                "ping -n -c 2": lambda script: self.ping(script, 9001),
                "cat /sys/class/net/eth1/mtu": "9001\n",
            },
        )
        for number, node in enumerate(self.nodes.values(), 1):
            said = status(number, endpoint_mtu=1410, overlay_mtu=1410)
            node.answers["overlay-path"] = printed(FLOW)
            node.answers["overlay-status"] = json.dumps(said)

    def ping(self, script: str, limit: int) -> str:
        size = int(script.partition(" -s ")[2].split()[0]) + 28
        refusal = (
            "" if size <= limit or not self.told else f"ping: local error: message too long, mtu={limit}\n"
        )
        return f"{refusal}2 packets transmitted, {2 * (size <= limit)} received, 0% packet loss\n"

    async def status(self) -> dict[str, str]:
        return dict.fromkeys(self.nodes, self.state)

    async def prepare(self, variants, say) -> None:
        self.did.append(variants)

    async def enter(self, variant) -> None:
        self.did.append(variant)

    async def leave(self) -> None:
        self.did.append("left")


@pytest.fixture
def provider(monkeypatch, tmp_path) -> Provider:
    found = Provider(tmp_path)
    monkeypatch.setattr(cluster, "provider_of", lambda name, asked, tier=None: found)
    monkeypatch.setattr(cluster, "has_nodes", lambda name, asked: True)
    return found


# -- mtu --------------------------------------------------------------------------------------------


def test_weave_with_1410_on_a_jumbo_underlay_is_called_out(provider) -> None:
    result = lab("mtu")
    assert result.exit_code == 0, result.exception
    words = " ".join(result.stdout.split())
    assert words.startswith(
        "MTU of weave fastdp underlay MTU 9001 of the nodes' devices headers 50 VXLAN (6784/udp)"
    )
    assert "fits 8951 9001 - 50 device MTU 1410 of ethwe" in words
    assert "passes 1410 node1 to node2, with DF passes 1410 node2 to node1, with DF" in words
    assert "wasted: the underlay would carry 8951 bytes, 7541 more than the 1410 that pass" in words
    assert words.endswith("→ Set ARGUMENTS=overlay_weave_mtu=8951.")
    assert provider.did == []  # what runs is only looked at
    assert provider.nodes.dropped == 1


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"passes": 1376, "told": False}, "black hole: packets of 1377 to 1410 bytes vanish"),
        ({"pieces": 2}, "fragmented: 1410 bytes pass, but not in one piece"),
        ({"passes": 0, "told": False}, "unreachable: nothing passes from node1 to node2, node2 to node1"),
    ],
)
def test_what_loses_packets_ends_with_one(provider, changes, verdict) -> None:
    for name, value in changes.items():
        setattr(provider, name, value)
    result = lab("mtu")
    assert result.exit_code == 1
    assert verdict in " ".join(result.stdout.split())


def test_where_none_runs_it_says_how_to_bring_one_up(provider) -> None:
    for node in provider.nodes.values():
        node.answers["overlay-status"] = ""
    wrong = refused("mtu")
    assert (wrong.where, wrong.seen) == ("overlay", "none does")
    assert "./task lab:mtu OVERLAY=weave" in wrong.fix


@pytest.mark.parametrize("state", ["shut off", "absent"])
def test_nodes_that_are_off_are_not_started(provider, state) -> None:
    provider.state = state
    assert refused("mtu").seen == "none does"
    assert provider.nodes["node1"].log == []


def test_one_that_is_named_is_brought_up_first(provider, monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(measure, "provider_for", lambda request: seen.append(request) or provider)
    result = lab(
        "mtu", OVERLAY="weave", MODES="fastdp", ARGUMENTS="overlay_weave_mtu=1410", PROFILE="aws-t2.small"
    )
    assert result.exit_code == 0, result.exception
    variant = Variant("weave", "fastdp")
    assert provider.did == [[variant], variant, "left"]
    (request,) = seen
    assert (request.variants, request.profile.mtu) == ((variant,), 9001)
    assert request.role_arguments == {"weave": {"overlay_weave_mtu": 1410}}


@pytest.mark.parametrize(
    ("variables", "where"),
    [
        ({"MODES": "fastdp"}, "MODES"),
        ({"PROFILE": "none"}, "PROFILE"),
        ({"ARGUMENTS": "overlay_weave_mtu=1410"}, "ARGUMENTS"),
        ({"OVERLAY": "weave", "MODES": "fastdp,sleeve"}, "MODES"),
        ({"OVERLAY": "weeve"}, "overlay"),
    ],
)
def test_what_means_nothing_is_refused(provider, variables, where) -> None:
    assert refused("mtu", **variables).where == where
    assert provider.nodes["node1"].log == []


def test_a_cluster_that_is_measured_on_is_left_alone(provider) -> None:
    with cluster_lock("pair", "measuring weave"):
        assert "measuring weave" in refused("mtu").seen
    assert provider.nodes["node1"].log == []


# -- explain ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("variables", [{}, {"OVERLAY": "weave"}])
def test_the_one_that_runs_is_told_with_its_live_values_and_its_page(provider, variables) -> None:
    lines = lab("explain", **variables).stdout.splitlines()
    assert lines[0] == "Weave Net, mode fastdp, runs on pair"
    assert lines[1:3] == [
        "node1: healthy, version 2.6.5",
        "  endpoint: 10.32.0.1 on ethwe, MTU 1410; 1410 bytes pass",
    ]
    assert f"    {FLOW}" in lines
    assert lines.index("### How it works") > lines.index(f"    {FLOW}")
    assert "### What people run into" in lines
    assert not any(line.startswith("./task lab:weave converges") for line in lines)


def test_another_one_is_told_with_what_would_be_started(provider) -> None:
    lines = lab("explain", OVERLAY="host").stdout.splitlines()
    assert lines[:2] == [
        "Weave Net, mode fastdp, runs on pair",
        "./task lab:host converges host; known are host, again, container (MODES)",
    ]
    assert "### How it works" in lines
    assert not [
        s for s in provider.nodes["node1"].log if overlay_live._CUT in s
    ]  # nor is the one that runs looked at


def test_nodes_that_are_off_have_their_page_all_the_same(provider) -> None:
    provider.state = "shut off"
    lines = lab("explain", OVERLAY="weave").stdout.splitlines()
    assert lines[0] == "the nodes of pair are not up"
    assert "  daemons: overlaylab-weave.service" in lines
    assert refused("explain").where == "OVERLAY"


def test_a_cluster_that_is_measured_on_is_not_asked(provider) -> None:
    with cluster_lock("pair", "measuring weave"):
        lines = lab("explain", OVERLAY="weave").stdout.splitlines()
    assert lines[0].startswith("what runs could not be asked: cluster pair: is used by one command at a time")
    assert "### How it works" in lines
    assert provider.nodes["node1"].log == []


def test_an_overlay_that_there_is_not_is_refused(provider) -> None:
    assert refused("explain", OVERLAY="weeve").where == "overlay"


# -- status -----------------------------------------------------------------------------------------


def test_addresses_are_whole_on_a_narrow_screen(monkeypatch, tmp_path) -> None:
    names = ("node1", "node2")
    addresses = {name: IPv4Interface(f"192.168.177.1{number}/24") for number, name in enumerate(names)}
    there = SimpleNamespace(
        name="lxc",
        capabilities=registry.capabilities("lxc"),
        accelerator="shared-kernel",
        folder=tmp_path,
        spec=SimpleNamespace(
            description="two nodes",
            nodes=[SimpleNamespace(name=name, zone="a", underlay_address=addresses[name]) for name in names],
        ),
        inventory=SimpleNamespace(
            nodes=[
                SimpleNamespace(name=name, ssh_user="lab", ssh_host="192.168.176.101", ssh_port=2222)
                for name in names
            ]
        ),
        describe=lambda: {name: {"cpus": 1, "memory_mib": 1024} for name in names},
    )

    async def states() -> dict[str, str]:
        return dict.fromkeys(names, "running")

    there.status = states
    there.nodes = FakeNodes(inventory("a", "a"), {"|| echo null": "null\nabc\n"})
    (tmp_path / "inventory.yml").touch()
    monkeypatch.setattr(cluster, "provider_of", lambda name, asked: there)
    monkeypatch.setattr(cluster, "has_nodes", lambda name, asked: True)
    monkeypatch.setenv("COLUMNS", "40")
    told = lab("cluster", "status").stdout
    assert told.count("lab@192.168.176.101:2222") == 2
    assert "192.168.177.10/24" in told and "192.168.177.11/24" in told
    assert "profile in force: one that a run put in force, without a proof that is kept\n" in told
    assert SPARSE not in told
    record = profile_record.Record(
        "azure-a1", "d", "2026-01-02T03:04:05+00:00", True, (), {"pass": 9}, {"a b": 0.5e-3}, "abc"
    )
    there.accelerator = "tcg"
    there.nodes.answers["|| echo null"] = f"{json.dumps(asdict(record))}\nabc\n"
    told = lab("cluster", "status").stdout
    assert "profile in force: azure-a1, since 2026-01-02 03:04 UTC; of its checks 9 passed\n" in told
    assert f"{SPARSE}\n" in told
    there.nodes.answers["|| echo null"] = NodeError("node1 does not answer")
    assert "profile in force: not known: node1 does not answer\n" in lab("cluster", "status").stdout
    assert there.nodes.dropped == 3
    asked = len(there.nodes["node1"].log)
    with cluster_lock("pair", "a run"):
        assert (
            "profile in force: not asked for, as another command uses the nodes\n"
            in lab("cluster", "status").stdout
        )
    assert len(there.nodes["node1"].log) == asked
