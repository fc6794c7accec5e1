"""What goes wrong while an overlay is set up: told by its cause and in time, and nothing is left of it.

Every fault is tried on every overlay that it concerns, in containers where they can carry both, else on VMs. One of
them is taken, another one after each commit, and one of those that take minutes once in five commits; OVERLAYLAB_FAULTS=all
takes all, and OVERLAYLAB_FAULTS=weave,macvlan/overlap some.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from conftest import Cluster
from lab_turns import EVERY, PASSED_OVER, turn
from test_3_roles import states
from test_7_overlays import TIER

from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.nodes import ansible, netstate
from overlaylab.providers import requirements
from overlaylab.shaping import scripts
from overlaylab.specs import overlays

UNDERLAY = "192.168.77.0/24"
OURS, THEIRS = "192.168.77.11", "192.168.77.12"


@dataclass(frozen=True)
class Fault:
    """What is done to node2 beforehand, and taken back; what the error has to say, one of each row."""

    name: str
    begin: str
    end: str
    says: tuple[tuple[str, ...], ...]
    arguments: dict[str, str]


def faults(overlay: overlays.Overlay) -> Iterator[Fault]:
    """Those that concern an overlay."""
    if overlay.range and overlay.range_argument:
        yield Fault(
            "overlap",
            "",
            "",
            (("overlaps the route to 192.168.77.0/24 through eth1",), (overlay.range_argument,)),
            {overlay.range_argument: UNDERLAY},
        )
    yield Fault("down", "ip link set eth1 down", "ip link set eth1 up", (("node2",), ("eth1 is down",)), {})
    if modules := overlays.modules_of(default(overlay.name)):
        yield Fault(
            "module",
            "mount -t tmpfs none /lib/modules",
            "umount /lib/modules",
            (("node2",), tuple(f"has no module {name}:" for name in modules)),
            {},
        )
    if overlay.ports:
        rules = [f"PREROUTING -i eth1 {matches(port)} -j DROP" for port in overlay.ports]
        yield Fault(
            "blocked",
            "\n".join(f"iptables -w -t raw -I {rule}" for rule in rules),
            "\n".join(f"iptables -w -t raw -D {rule}" for rule in rules),
            ((THEIRS, OURS, "does not answer", *overlay.ports),),
            {},
        )
    yield Fault(
        "unreachable",
        "nft add table netdev fault; "
        "nft add chain netdev fault everything '{ type filter hook ingress device eth1 priority 0; policy drop; }'",
        "nft delete table netdev fault",
        ((THEIRS, OURS, "does not answer"),),
        {},
    )


def matches(port: str) -> str:
    """``6783/tcp``, ``8000-8010/udp`` or ``protocol 50`` for iptables."""
    number, _, protocol = port.partition("/")
    if not protocol:
        return f"-p {port.split()[1]}"
    return f"-p {protocol} --dport {number.replace('-', ':')}"


def cases() -> list[tuple[str, Fault]]:
    every = [
        (name, fault)
        for name in overlays.names()
        if requirements.verdict(default(name), TIER, "libvirt").runs
        for fault in faults(overlays.load(name))
    ]
    wanted = os.environ.get("OVERLAYLAB_FAULTS", "")
    if wanted == "all":
        return every
    if wanted:
        words = wanted.split(",")
        return [(name, fault) for name, fault in every if name in words or f"{name}/{fault.name}" in words]
    # For an answer that does not come, an overlay waits one minute and a half: once in EVERY commits.
    slow = [(name, fault) for name, fault in every if fault.name in ("blocked", "unreachable")]
    quick = [one for one in every if one not in slow]
    rounds, place = divmod(turn(), EVERY)
    group, number = (quick, turn() - rounds) if place else (slow, rounds)
    PASSED_OVER.append(f"{len(every) - 1} of {len(every)} faults, another one taken after each commit")
    return [group[number % len(group)]]


def default(name: str) -> Variant:
    overlay = overlays.load(name)
    return overlay.variant(overlay.default_modes[0])


def where(name: str, fault: Fault, request: pytest.FixtureRequest) -> Cluster:
    """Containers answer in seconds; their kernel's modules are this machine's, and stay there."""
    shared = fault.name != "module" and requirements.verdict(default(name), TIER, "lxc").runs
    return request.getfixturevalue("containers" if shared else "nodes")


@pytest.mark.parametrize(("name", "fault"), cases(), ids=lambda value: getattr(value, "name", value))
def test_a_fault_is_named_and_leaves_nothing(request, name: str, fault: Fault) -> None:
    nodes = where(name, fault, request)
    nodes.clean()
    nodes.sh(scripts.mtu_script("eth1", TIER.mtu))
    arguments = {**overlays.load(name).modes[default(name).key].arguments, **fault.arguments}
    if fault.begin:
        nodes.sh(fault.begin, only=["node2"])
    before = states(nodes)
    with pytest.raises(UserError) as caught:
        ansible.run_playbook(nodes.inventory, name, "converge", arguments)
    told = str(caught.value)
    print(told)
    ansible.run_playbook(nodes.inventory, name, "reset", arguments)
    after = states(nodes)
    if fault.end:
        nodes.sh(fault.end, only=["node2"])
    for row in fault.says:
        assert any(word in told for word in row), told
    assert {name: netstate.difference(before[name], after[name]) for name in before} == {
        "node1": [],
        "node2": [],
    }
