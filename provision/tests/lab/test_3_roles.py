"""Roles on real nodes: a second converge changes nothing, a reset leaves no trace, a fallback is noticed."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from overlaylab.core import paths
from overlaylab.core.model import Variant
from overlaylab.nodes import ansible, netstate
from overlaylab.run import evidence
from overlaylab.shaping.shaper import Shaper
from overlaylab.specs import overlays
from overlaylab.specs.profile import load_profile

HOST = Variant("host")
FASTDP = Variant("weave", "fastdp")
ENCRYPTED = Variant("weave", "sleeve", encrypted=True)


def states(nodes) -> dict:
    return {name: netstate.normalise(json.loads(text)) for name, text in nodes.sh(netstate.COLLECT).items()}


def test_converge_twice_then_reset_in_containers(containers) -> None:
    """On VMs, test_7_overlays.py does it."""
    converge_twice_then_reset(containers, HOST)


@pytest.mark.turn("nodes")
def test_the_same_is_changed_on_vms_and_in_containers(nodes, containers) -> None:
    """One cluster, profile and overlay: the underlay, and what else they bring, are the same on every provider."""
    found = {}
    for where in (nodes, containers):
        where.clean()
        before = states(where)
        where.converge(HOST)
        where.do(in_force)
        found[where.provider.name] = {
            name: (underlay(state), brought(before[name], state)) for name, state in states(where).items()
        }
    assert found["lxc"] == found["libvirt"]
    kept, new = found["lxc"]["node1"]
    assert (
        kept["mtu"] == 1500 and "htb on eth1" in kept["qdisc"] and "htb 1:10 on eth1" in kept["traffic class"]
    )
    assert any("namespace endpoint" in said for said in new)


def underlay(state: dict) -> dict:
    """All that concerns eth1 and is not the hardware's."""
    sections = ("address", "route", "qdisc", "traffic class", "traffic filter")
    about = {name: {what: v for what, v in state[name].items() if "eth1" in what} for name in sections}
    return about | {"mtu": state["device"]["eth1"]["mtu"]}


def brought(before: dict, after: dict) -> list[str]:
    """What is new or changed of what an overlay brings; modules and sysctls are the kernel's."""
    sections = ("namespace", "policy rule", "nftables", "iptables", "ipset", "IPsec policy")
    picked = ({name: state[name] for name in sections} for state in (before, after))
    return sorted(netstate.difference(*picked))


async def in_force(provider) -> None:
    """A profile without a latency: not every kernel that nodes share has netem."""
    tier = replace(load_profile("azure-a1"), within_zone=None, between_zones={})
    await provider.nodes.connect()
    assert await Shaper(provider.nodes, tier).apply() == {"node1": True, "node2": True}


def converge_twice_then_reset(nodes, variant: Variant) -> None:
    nodes.clean()
    before = states(nodes)
    arguments = dict(overlays.load(variant.overlay).modes[variant.key].arguments)
    first = ansible.run_playbook(nodes.inventory, variant.overlay, "converge", arguments)
    assert sum(first.changed.values()) > 0
    second = ansible.run_playbook(nodes.inventory, variant.overlay, "converge", arguments)
    assert second.changed == {"node1": 0, "node2": 0}
    ansible.run_playbook(nodes.inventory, variant.overlay, "reset", arguments)
    after = states(nodes)
    assert {name: netstate.difference(before[name], after[name]) for name in before} == {
        "node1": [],
        "node2": [],
    }


@pytest.mark.turn("nodes")
def test_fallback_to_sleeve_is_noticed(nodes) -> None:
    nodes.converge(FASTDP)
    mode = overlays.load("weave").modes["fastdp"]
    block = "iptables -I INPUT -p udp --dport 6784 -j DROP"
    nodes.sh(block)
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        status = json.loads(nodes.sh(evidence.STATUS)["node1"])
        if status["mode"] == "sleeve":
            break
        time.sleep(3)
    judged = evidence.judge_status("node1", mode, status)
    assert not judged.ok
    assert "the data path is sleeve, not fastdp" in judged.reason


@pytest.mark.turn("nodes")
def test_password_is_nowhere_to_be_read(nodes) -> None:
    nodes.converge(FASTDP, ENCRYPTED)
    password = ansible.password_file("weave").read_text().strip()
    assert ansible.password_file("weave").stat().st_mode & 0o777 == 0o600
    for name, text in nodes.sh("cat /proc/*/cmdline | tr '\\0' ' '; journalctl --no-pager --quiet").items():
        assert password not in text, name
    for log in [*paths.cache().glob("logs/**/*.log"), *paths.cache().glob("clusters/*/*.log")]:
        assert password not in log.read_text(errors="replace"), log.name
