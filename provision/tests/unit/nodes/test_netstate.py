"""Comparing a node's network: on what real nodes printed, clean, with an overlay, and after its reset."""

import copy
import json
from pathlib import Path

import pytest

from overlaylab.nodes.netstate import difference, normalise

FIXTURES = Path(__file__).parents[2] / "fixtures" / "netstate"


def recorded(name: str) -> dict:
    return json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture
def clean() -> dict:
    return recorded("clean")


def test_reset_of_an_overlay_leaves_no_difference(clean):
    assert difference(normalise(clean), normalise(recorded("weave-reset"))) == []


def test_nothing_is_the_same_by_being_left_out(clean):
    state = normalise(clean)
    assert state["device"].keys() == {"lo", "eth0", "eth1"}
    assert state["device"]["eth1"]["mtu"] == 9001
    assert "192.168.77.11/24 on eth1" in state["address"]
    assert "192.168.77.0/24 dev eth1 in table main (IPv4)" in state["route"]
    assert "local 192.168.77.11 dev eth1 in table local (IPv4)" in state["route"]
    assert state["sysctl"]["net.ipv4.ip_forward"] == "0"
    assert {key.split()[0] for key in state["policy rule"]} == {"4", "6"}


def test_a_converged_overlay_is_told_in_words(clean):
    told = difference(normalise(clean), normalise(recorded("weave-fastdp-encrypted")))
    for sentence in (
        "module openvswitch is new",
        "namespace endpoint is new",
        "device vxlan-6784 is new",
        "qdisc noqueue on weave is new",
        "nftables chain ip filter WEAVE-EXPOSE is new",
        "iptables nat is new",
        "sysctl net.ipv4.neigh.weave.delay_first_probe_time is new (2)",
        "IPsec state esp 192.168.77.12 to 192.168.77.11 spi 0xf83ed0c7 mode transport is new",
        "IPsec policy src 192.168.77.11/32 dst 192.168.77.12/32 proto udp dir out priority 0 ptype main "
        "mark 0x20000/0x20000 tmpl src 192.168.77.11 dst 192.168.77.12 proto esp spi 0x11919f03 reqid 0 "
        "mode transport is new",
    ):
        assert sentence in told
    assert not [sentence for sentence in told if sentence.endswith("is gone")]


def test_the_kernels_own_random_generator_is_no_trace(clean):
    after = copy.deepcopy(clean)
    clean["modules"].remove("drbg")
    assert difference(normalise(clean), normalise(after)) == []


def test_the_other_way_round_everything_is_gone(clean):
    told = difference(normalise(recorded("weave-fastdp-encrypted")), normalise(clean))
    assert "namespace endpoint is gone" in told
    assert not [sentence for sentence in told if "is new" in sentence]


def test_counters_ages_and_numbers_do_not_count():
    before = recorded("weave-fastdp-encrypted")
    after = copy.deepcopy(before)
    for item in after["nft"]["nftables"]:
        for value in item.values():
            if "handle" in value:
                value["handle"] += 100
        for expression in item.get("rule", {}).get("expr", ()):
            if "counter" in expression:
                expression["counter"] = {"packets": 7, "bytes": 700}
    after["iptables"] = [line.replace("[0:0]", "[5:420]") for line in after["iptables"]]
    for link in after["link"]:
        link["ifindex"] += 1
    for device in after["addr"]:
        for info in device["addr_info"]:
            info["valid_life_time"] -= 10
    after["modules"].reverse()
    assert before != after
    assert difference(normalise(before), normalise(after)) == []


def changed_mtu(document):
    document["link"][2]["mtu"] = 1500


def changed_sysctl(document):
    document["sysctl"] = [
        "net.ipv4.ip_forward = 1" if line.startswith("net.ipv4.ip_forward =") else line
        for line in document["sysctl"]
    ]


def second_default_route(document):
    document["route4"].append(
        {"dst": "default", "gateway": "192.168.77.1", "dev": "eth1", "table": "77", "flags": []}
    )


def lost_rule(document):
    document["rule4"] = [rule for rule in document["rule4"] if rule.get("table") != "default"]


def shaped(document):
    document["qdisc"].append(
        {"kind": "htb", "handle": "1:", "dev": "eth1", "root": True, "options": {"r2q": 10}}
    )
    document["class"]["eth1"] = [
        "class htb 1:1 root rate 100Mbit ceil 100Mbit burst 100000b cburst 100000b ",
        "class fq_codel 8001:2a4 parent 8001: ",
    ]


def left_set(document):
    document["ipset"] = ["create left hash:ip family inet hashsize 1024 maxelem 65536"]


def lost_address(document):
    document["addr"][2]["addr_info"] = [i for i in document["addr"][2]["addr_info"] if i["family"] != "inet"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (changed_mtu, ["device eth1 has changed: mtu was 9001, is 1500"]),
        (changed_sysctl, ["sysctl net.ipv4.ip_forward was 0, is 1"]),
        (second_default_route, ["route default via 192.168.77.1 dev eth1 in table 77 (IPv4) is new"]),
        (lost_rule, ["policy rule 4 priority 32767 src all table default is gone"]),
        (
            shaped,
            [
                "qdisc htb on eth1 is new",
                "traffic class htb 1:1 on eth1 is new (root rate 100Mbit ceil 100Mbit burst 100000b cburst 100000b)",
            ],
        ),
        (left_set, ["ipset create left hash:ip family inet hashsize 1024 maxelem 65536 is new"]),
        (lost_address, ["address 192.168.77.11/24 on eth1 is gone"]),
    ],
)
def test_a_single_change_is_one_sentence(clean, change, told):
    after = copy.deepcopy(clean)
    change(after)
    assert difference(normalise(clean), normalise(after)) == told


def test_the_order_of_firewall_rules_counts():
    before = recorded("weave-fastdp-encrypted")
    after = copy.deepcopy(before)
    first, second = (n for n, line in enumerate(after["iptables"]) if line.startswith("-A FORWARD -i weave"))
    lines = after["iptables"]
    lines[first], lines[second] = lines[second], lines[first]
    assert difference(normalise(before), normalise(after)) == ["iptables filter has changed: another order"]


def test_two_things_of_one_name_do_not_hide_each_other(clean):
    after = copy.deepcopy(clean)
    again = copy.deepcopy(next(r for r in clean["route4"] if r["dst"] == "192.168.77.0/24"))
    after["route4"].append(again | {"metric": 50})
    told = difference(normalise(clean), normalise(after))
    assert len(told) == 1
    assert told[0].startswith("route 192.168.77.0/24 dev eth1 in table main (IPv4)")


def test_a_legacy_table_that_was_only_looked_into_is_no_trace(clean):
    after = copy.deepcopy(clean)
    idle = ["# Generated", "*mangle", ":PREROUTING ACCEPT [3:180]", ":INPUT ACCEPT [0:0]", "COMMIT"]
    after["iptables_legacy"] = idle
    assert difference(normalise(clean), normalise(after)) == []
    for trace in ("-A INPUT -j MARK --set-xmark 0x1/0x1", ":OWN - [0:0]", ":OUTPUT DROP [0:0]"):
        after["iptables_legacy"] = [*idle[:-1], trace, "COMMIT"]
        assert difference(normalise(clean), normalise(after)) == ["iptables legacy mangle is new"]
