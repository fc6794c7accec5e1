"""Canal's own part: Flannel's status with Calico's Felix beside it, and what its reset takes away of both.

``fixtures/canal/<command>.out``: recorded on a node of two, 192.168.91.11, whose peer is 192.168.91.12.
"""

import importlib
import sys
from pathlib import Path

import pytest
from test_overlay_flannel import PEER, Node

from overlaylab.core.paths import ROLES

FIXTURES = Path(__file__).parents[2] / "fixtures" / "canal"
SETTINGS = (
    'OVERLAY=canal\nDEVICE=ethcanal\nUNITS="overlaylab-flannel.service overlaylab-calico-felix.service"\n'
    "READY=http://127.0.0.1:9099/readiness\nMODE={mode}\nINTERFACE=lo\nNETWORK=overlaylab\nNODE=node1\n"
    f'RANGE=10.244.0.0/16\nMTU=\nPEERS="{PEER}"\n'
)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    node = Node(tmp_path, "vxlan", FIXTURES, SETTINGS, "0.28.4+3.28.5")
    node.says("systemctl-is-active", "active\nactive\nactive\n")
    node.says("curl", "")
    node.device("flannel.1", 8951)
    node.device("caliendpoint", 8951)
    return node


def test_a_converged_node(node) -> None:
    said = node.status()
    assert said.pop("endpoint_address").startswith("10.244.")
    assert said == {
        "overlay": "canal",
        "mode": "vxlan",
        "encrypted": False,
        "version": "0.28.4+3.28.5",
        "healthy": True,
        "reason": None,
        "endpoint_device": "ethcanal",
        "endpoint_mtu": 8951,
        "overlay_mtu": 8951,
        "devices": ["flannel.1", "caliendpoint"],
        "peers": [{"address": PEER, "state": "known", "mode": "vxlan", "encrypted": False}],
    }


def test_felix_that_is_not_ready_is_named(node) -> None:
    (node.answers / "curl.out").unlink()
    assert (
        node.status()["reason"] == "a daemon does not say on http://127.0.0.1:9099/readiness that it is ready"
    )


def test_felix_that_ended_is_named(node) -> None:
    node.says("systemctl-is-active", "active\nfailed\nactive\n")
    assert node.status()["reason"] == "overlaylab-calico-felix.service is failed: see its journal"


def test_the_path_to_a_peer(node) -> None:
    done = node.run("overlay-path", PEER, "10.244.0.2")
    assert (done.returncode, done.stderr) == (0, "")
    route, neighbour, entry = done.stdout.splitlines()
    assert " dev flannel.1 " in route and "lladdr " in neighbour and f" dst {PEER} " in entry


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch):
    """The modules of its reset: Flannel's and Calico's."""
    for name in ("overlay_common", "overlay_flannel", "overlay_calico"):
        monkeypatch.syspath_prepend(str(ROLES / name / "files"))
    return tuple(importlib.import_module(name) for name in ("traces", "flannel_traces", "calico_traces"))


def test_rules_of_both_and_none_of_others_are_deleted(parts) -> None:
    traces, flannel, calico = parts
    recorded = (FIXTURES / "iptables-save.txt").read_text().splitlines()
    foreign = ["-A FORWARD -s 10.244.0.0/16 -j ACCEPT", "-A INPUT -i caliendpoint -j ACCEPT"]
    lines = [part for line in recorded for part in ([line, *foreign] if line == "*filter" else [line])]
    own = ("-A FLANNEL-", "-A cali-")
    jumps = {line for line in recorded if line.startswith("-A ") and not line.startswith(own)}
    found = [
        {"-A" + line[2:] for line in traces.removal(lines, is_own, prefix) if line.startswith("-D")}
        for is_own, prefix in ((flannel.own_rule, "FLANNEL-"), (calico.OWN_RULE.search, calico.CHAINS))
    ]
    assert found[0] and found[1] and found[0].isdisjoint(found[1])
    # Each takes its own jumps, and of the other's chains what is gone with them.
    assert {rule for rules in found for rule in rules if not rule.startswith(own)} == jumps


def test_policy_goes_before_what_carries_the_packets(parts, monkeypatch) -> None:
    """Rules name sets, routes name devices: the reset takes them in that order, the modules last."""
    traces, flannel, calico = parts
    done = []
    for module, prefix in ((traces, ""), (flannel, "flannel "), (calico, "calico ")):
        for name in vars(module):
            if name.startswith(("stop_", "remove_", "restore_", "unload_", "forget")):
                monkeypatch.setattr(module, name, lambda *_, said=prefix + name: done.append(said) or True)
    source = (ROLES / "overlay_canal" / "files" / "overlay-reset").read_text()
    for arguments, etcd in (([], True), (["keep-etcd"], False)):
        done.clear()
        monkeypatch.setattr(sys, "argv", ["overlay-reset", *arguments])
        exec(compile(source, "overlay-reset", "exec"), {"__name__": "__main__"})
        assert ("stop_etcd" in done) == etcd
        assert done[:2] == ["calico stop_felix", "flannel stop_flanneld"]
        assert done.index("calico remove_endpoint") < done.index("flannel remove_devices")
        assert done.index("calico remove_rules") < done.index("remove_empty_tables")
        assert done.index("unload_modules") < done.index("forget")
