"""What a repair must not break: packet filters, daemons, the overlay."""

import pytest
from lab_drills import FLANNEL, NODES, PLACES
from lab_fakes import FakeNodes

from overlaylab.drills import guards
from overlaylab.nodes import netstate
from overlaylab.nodes.netstate import firewall
from overlaylab.specs import drill as drills

KEPT = [":INPUT DROP [7:420]", ":OUTPUT ACCEPT [1:2]", ":WEB - [0:0]", "-A INPUT -j WEB"]
RULES = [*KEPT, '-A WEB -p tcp -m comment --comment "cali:a1b2" -j ACCEPT']


def filters(lines: list[str], nft: dict | None = None) -> dict:
    names = ("ip6tables", "iptables_legacy", "ip6tables_legacy")
    return firewall(dict.fromkeys(names) | {"nft": nft, "iptables": ["*filter", *lines, "COMMIT"]})


@pytest.mark.parametrize(
    ("now", "reasons"),
    [
        (RULES, []),
        # Hashed anew by the daemon whose rule it is; and more of them.
        ([*KEPT, "-A WEB -s 10.0.0.1/32 -j DROP", RULES[-1].replace("a1b2", "ffff")], []),
        # Stricter than before.
        ([RULES[0], ":OUTPUT DROP [0:0]", *RULES[2:]], []),
        (KEPT, [f"iptables: in filter, {RULES[-1]} is gone"]),
        ([":INPUT ACCEPT [0:0]", *RULES[1:]], ["iptables: in filter, the policy DROP of INPUT is gone"]),
        ([*RULES[:2], *RULES[3:]], ["iptables: in filter, chain WEB is gone"]),
    ],
)
def test_what_was_filtered_still_is(now, reasons) -> None:
    assert guards.opened(filters(RULES), filters(now)) == reasons


def test_the_same_rule_twice_is_two_rules() -> None:
    twice = ["-A INPUT -p icmp -j DROP"] * 2
    assert len(guards.opened(filters(twice), filters(twice[:1]))) == 1


def rule(chain: str, table: str = "own") -> dict:
    return {"rule": {"family": "inet", "table": table, "chain": chain, "handle": 4, "expr": [{"drop": None}]}}


def test_so_do_rules_and_chains_of_nftables() -> None:
    chain = {"chain": {"family": "inet", "table": "own", "name": "in", "handle": 1, "policy": "drop"}}
    open_ = {"chain": chain["chain"] | {"policy": "accept"}}
    was = filters([], {"nftables": [chain, rule("in")]})
    assert guards.opened(was, was) == []
    assert guards.opened(was, filters([], {"nftables": [open_]})) == [
        "nftables: chain inet own in drops no more what no rule names",
        "nftables: one of the rules of inet own in is gone",
    ]


def test_units_are_as_they_were() -> None:
    was = ["runs flanneld.service", "enabled flanneld.service", "runs web.service"]
    assert guards.ended(was, ["runs web.service", "runs more.service", "enabled flanneld.service"]) == [
        "flanneld.service does not run"
    ]
    assert guards.ended(was, was[:1] + was[2:]) == ["flanneld.service is not enabled any more"]


async def test_only_what_the_guards_ask_for_is_noted() -> None:
    printed = "runs flanneld.service\nruns systemd-hostnamed.service\nenabled ssh.service\n"
    nodes = FakeNodes(NODES, {"list-units": printed})
    healthy = await guards.note(nodes, ("overlay", "daemons"))
    assert healthy.units["node2"] == ["runs flanneld.service", "enabled ssh.service"]
    assert (healthy.firewall, healthy.policy) == ({}, {})
    assert guards.Healthy(**healthy.as_json()) == healthy


async def test_an_overlay_that_is_gone_is_not_the_same() -> None:
    nodes = FakeNodes(NODES, {"overlay-status": ""})
    assert await guards.overlay(nodes, PLACES, FLANNEL) == ["flannel vxlan does not run any more"]
    other = '{"overlay": "flannel", "mode": "host-gw", "encrypted": false, "healthy": true}'
    nodes = FakeNodes(NODES, {"overlay-status": other})
    assert await guards.overlay(nodes, PLACES, FLANNEL) == ["flannel host-gw runs, and not flannel vxlan"]
    sick = (
        '{"overlay": "flannel", "mode": "vxlan", "encrypted": false, "healthy": false, "reason": "no lease"}'
    )
    nodes = FakeNodes(NODES, {"overlay-status": sick})
    assert await guards.overlay(nodes, PLACES, FLANNEL) == ["node1: no lease", "node2: no lease"]


async def test_every_guard_of_the_drill_is_asked() -> None:
    drill = drills.load("large-downloads-hang")
    nodes = FakeNodes(
        NODES, {netstate.FIREWALL: '{"nft": null, "iptables": ["*filter"], "ip6tables": null,'
                ' "iptables_legacy": null, "ip6tables_legacy": null}',
                "list-units": "", "overlay-status": ""},
    )  # fmt: skip
    healthy = guards.Healthy(
        firewall=dict.fromkeys(nodes, filters(["-A INPUT -j DROP"])),
        units={name: ["runs x.service"] for name in nodes},
    )
    found = await guards.judge(nodes, PLACES, drill, FLANNEL, healthy)
    assert [one.guard for one in found] == list(drill.guards) == ["overlay", "firewall", "daemons"]
    assert found[2].reason == "node1: x.service does not run; node2: x.service does not run"


def test_many_reasons_are_a_few_in_words() -> None:
    assert guards.told(["a", "b"]) == "a; b"
    assert guards.told(list("abcde")) == "a; b; c; and 2 more"
