"""What tc is told, as text."""

from dataclasses import replace

from lab_builders import inventory
from test_shaping import A1, PEER, told

from overlaylab.shaping.sizes import NodeShaping, node_shaping
from overlaylab.shaping.tc import rate_batch, tc_batch
from overlaylab.specs.inventory import Inventory
from overlaylab.specs.profile import load_profile

TWO_RATES = replace(A1, rate=972e6, sustained=125e6, bucket=1e9, mtu=9001)


def test_batch_of_azure_a1_on_a_pair() -> None:
    assert tc_batch(told()) == (
        "qdisc add dev eth1 root handle 1: htb default 10\n"
        "class add dev eth1 parent 1: classid 1:1 htb rate 100000000bit ceil 100000000bit"
        " burst 100000b cburst 100000b quantum 1514\n"
        "class add dev eth1 parent 1:1 classid 1:10 htb rate 100000000bit ceil 100000000bit"
        " burst 100000b cburst 100000b quantum 1514\n"
        "qdisc add dev eth1 parent 1:10 handle 10: netem delay 250us limit 20000\n"
        "qdisc add dev eth1 parent 10: handle 110: bfifo limit 250000\n"
        "filter add dev eth1 parent 1: protocol ip prio 10 u32 match ip dst 192.168.77.12/32 flowid 1:10\n"
    )


def test_nothing_is_said_where_nothing_is_shaped() -> None:
    assert tc_batch(told(load_profile("none"))) == ""


def test_what_crosses_the_underlay_as_it_is_is_led_by_the_endpoints_address_too() -> None:
    lab = inventory("a", "b", "c")
    endpoints = {"node1": "10.50.0.1", "node2": "192.168.77.12", "node3": "10.50.0.3"}
    lines = tc_batch(node_shaping(A1, lab, lab.nodes[0], {}, endpoints)).splitlines()
    assert [line.split(" ip dst ")[1] for line in lines if line.startswith("filter")] == [
        "192.168.77.12/32 flowid 1:10",
        "192.168.77.13/32 flowid 1:11",
        "10.50.0.3/32 flowid 1:11",
    ]


def rates(shaped: NodeShaping) -> list[str]:
    lines = tc_batch(shaped).splitlines()
    return [line.split(" rate ")[1].split(" burst")[0] for line in lines if line.startswith("class")]


def test_the_rates_of_the_peers_add_up_to_the_cap_and_no_more() -> None:
    """A class may always send its own rate, whatever its parent has left (tc-htb(8))."""
    shaped = told(A1, inventory("a", "a", "b", "c"), {})
    assert rates(shaped) == ["100000000bit ceil 100000000bit"] + ["33333333bit ceil 100000000bit"] * 3


def test_of_two_rates_a_peer_is_sure_of_the_lower_one_only() -> None:
    """Else it would go on at the rate while the bucket is empty."""
    assert rates(told(TWO_RATES)) == ["972000000bit ceil 972000000bit", "125000000bit ceil 972000000bit"]


def test_an_empty_bucket_changes_the_cap_and_the_queues() -> None:
    shaped = told(TWO_RATES, baseline={})
    assert rate_batch(shaped, 125e6) == (
        "class change dev eth1 parent 1: classid 1:1 htb rate 125000000bit ceil 125000000bit"
        " burst 125000b cburst 125000b quantum 9015\n"
        "qdisc change dev eth1 parent 10: handle 110: bfifo limit 312500\n"
    )
    assert rate_batch(shaped, 972e6) == (
        "class change dev eth1 parent 1: classid 1:1 htb rate 972000000bit ceil 972000000bit"
        " burst 972000b cburst 972000b quantum 9015\n"
        "qdisc change dev eth1 parent 10: handle 110: bfifo limit 2430000\n"
    )


def test_without_delay_the_queue_is_the_classs_own() -> None:
    lines = tc_batch(replace(told(), peers=(replace(PEER, delay=0.0),))).splitlines()
    assert not [line for line in lines if "netem" in line]
    assert "qdisc add dev eth1 parent 1:10 handle 110: bfifo limit 250000" in lines


def test_batch_of_three_zones_leads_each_address_to_its_own_delay() -> None:
    tier = replace(A1, within_zone=0.0005, between_zones={("a", "b"): 0.002, ("a", "c"): 0.004})
    lines = tc_batch(told(tier, inventory("a", "b", "a", "c"), {})).splitlines()
    assert [line for line in lines if "netem" in line or "bfifo" in line] == [
        "qdisc add dev eth1 parent 1:10 handle 10: netem delay 1000us limit 20000",
        "qdisc add dev eth1 parent 10: handle 110: bfifo limit 250000",
        "qdisc add dev eth1 parent 1:11 handle 11: netem delay 250us limit 20000",
        "qdisc add dev eth1 parent 11: handle 111: bfifo limit 250000",
        "qdisc add dev eth1 parent 1:12 handle 12: netem delay 2000us limit 20000",
        "qdisc add dev eth1 parent 12: handle 112: bfifo limit 250000",
    ]
    match = "filter add dev eth1 parent 1: protocol ip prio 10 u32 match ip dst"
    assert [line for line in lines if line.startswith("filter")] == [
        f"{match} 192.168.77.12/32 flowid 1:10",
        f"{match} 192.168.77.13/32 flowid 1:11",
        f"{match} 192.168.77.14/32 flowid 1:12",
    ]


def netem(shaped: NodeShaping) -> str:
    (line,) = (line for line in tc_batch(shaped).splitlines() if "netem" in line)
    return line.split("netem ", 1)[1]


def test_jitter_comes_with_the_rate_that_keeps_packets_in_order() -> None:
    shaped = replace(told(), peers=(replace(PEER, jitter=0.0001),))
    assert netem(shaped) == "delay 250us 100us rate 100000000000bit limit 20000"


def test_loss_is_a_percentage_to_tc_and_needs_no_delay() -> None:
    assert netem(replace(told(), peers=(replace(PEER, loss=0.00125),))) == (
        "delay 250us loss 0.125% limit 20000"
    )
    assert netem(replace(told(), peers=(replace(PEER, delay=0.0, loss=0.01),))) == (
        "delay 0us loss 1% limit 20000"
    )


def test_delay_without_a_cap_takes_a_rate_above_any_nic() -> None:
    shaped = told(replace(A1, rate=None))
    assert (shaped.rate, shaped.burst, shaped.queueing) == (None, 0, True)
    lines = tc_batch(shaped).splitlines()
    assert lines[1].endswith(
        "htb rate 100000000000bit ceil 100000000000bit burst 100000000b cburst 100000000b quantum 1514"
    )
    assert netem(shaped) == "delay 250us limit 20000"


def test_overhead_and_mtu_reach_the_classes() -> None:
    shaped = told(replace(A1, overhead=24.0, mtu=9001))
    assert tc_batch(shaped).splitlines()[1].endswith("quantum 9015 overhead 24")


def test_ssh_goes_before_the_peers_in_a_class_without_a_cap() -> None:
    assert tc_batch(replace(told(), exempt_ssh=22)).splitlines()[-2:] == [
        "class add dev eth1 parent 1: classid 1:2 htb rate 100000000000bit quantum 1514",
        "filter add dev eth1 parent 1: protocol ip prio 1 u32"
        " match ip protocol 6 0xff match ip sport 22 0xffff flowid 1:2",
    ]


def test_ssh_on_another_port_is_exempt_there() -> None:
    nodes = (replace(PAIR_NODES[0], ssh_host="192.168.77.11", ssh_port=2222), PAIR_NODES[1])
    shaped = told(lab=Inventory("pair", "external", nodes))
    assert tc_batch(shaped).splitlines()[-1].endswith("match ip sport 2222 0xffff flowid 1:2")


PAIR_NODES = inventory("a", "a").nodes


def test_what_comes_in_is_queued_in_a_device_of_its_own_but_for_ssh() -> None:
    shaped = replace(told(), ingress=True, exempt_ssh=22)
    assert tc_batch(shaped).splitlines()[-6:] == [
        "qdisc add dev overlaylab-in root handle 1: htb default 10",
        "class add dev overlaylab-in parent 1: classid 1:10 htb rate 100000000bit ceil 100000000bit"
        " burst 100000b cburst 100000b quantum 1514",
        "qdisc add dev overlaylab-in parent 1:10 handle 110: bfifo limit 250000",
        "qdisc add dev eth1 handle ffff: ingress",
        "filter add dev eth1 parent ffff: protocol all prio 10 u32 match u32 0 0"
        " action mirred egress redirect dev overlaylab-in",
        "filter add dev eth1 parent ffff: protocol ip prio 1 u32"
        " match ip protocol 6 0xff match ip dport 22 0xffff action pass",
    ]
