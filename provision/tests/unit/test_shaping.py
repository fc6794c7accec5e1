"""From a profile to tc: sizes, text, digests, and what a node says back."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest
from lab_builders import inventory, node

from overlaylab import shaping_readback
from overlaylab.errors import UserError
from overlaylab.inventory import Inventory
from overlaylab.profile import load_profile
from overlaylab.shaping import (
    NodeShaping,
    ZoneClass,
    applied_delay,
    check_supported,
    node_shaping,
    tc_batch,
)
from overlaylab.shaping_readback import readback_problems

FIXTURES = Path(__file__).parents[1] / "fixtures" / "tc"
A1 = load_profile("azure-a1")
PAIR = inventory("a", "a")
BASELINE = {frozenset(("node1", "node2")): 0.000466}
ZONE = ZoneClass("a", ("192.168.77.12",), 0.00025, 0.0, 0.0)


def told(profile=A1, lab: Inventory = PAIR, baseline=BASELINE, name: str = "node1") -> NodeShaping:
    (one,) = (n for n in lab.nodes if n.name == name)
    return node_shaping(profile, lab, one, baseline)


# -- sizes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "baseline", "one_way"),
    [
        (0.000966, 0.000466, 0.00025),  # half on each end
        (0.000966, 0.0, 0.000483),
        (0.000966, 0.000966, 0.0),
        (0.000966, 0.0015, 0.0),  # what the accelerator exceeds is never taken away
        (None, 0.0, 0.0),
    ],
)
def test_each_end_delays_by_half_of_what_the_baseline_lacks_to_the_target(target, baseline, one_way) -> None:
    assert applied_delay(target, baseline) == pytest.approx(one_way)


def test_azure_a1_on_a_pair() -> None:
    assert told() == NodeShaping(
        interface="eth1",
        mtu=1500,
        segmented=True,
        rate=100e6,
        burst=100_000,  # 8 ms
        queue=250_000,  # 20 ms
        overhead=0,
        zones=(ZoneClass("a", ("192.168.77.12",), pytest.approx(0.00025), 0.0, 0.0),),
        exempt_ssh=None,
    )


def test_both_ends_of_a_pair_add_the_same_delay() -> None:
    assert told(name="node1").zones[0].delay == told(name="node2").zones[0].delay


@pytest.mark.parametrize(
    ("rate", "mtu", "queue", "burst", "bytes_queued"),
    [
        (5e6, 1500, 0.02, 5000, 12_500),
        # 8 ms of 5 Mbit/s are 5000 bytes: less than two frames, which would drop everything.
        (5e6, 9001, 0.02, 18_030, 18_030),
        (5e6, None, 0.001, 5000, 3028),  # without an MTU of its own, sizes are for 1500
        (400e6, 1500, 0.02, 400_000, 1_000_000),
    ],
)
def test_burst_and_queue_hold_two_frames_at_least(rate, mtu, queue, burst, bytes_queued) -> None:
    seen = told(replace(A1, rate=rate, mtu=mtu, queue=queue))
    assert (seen.burst, seen.queue) == (burst, bytes_queued)


def test_zones_get_the_delay_between_them_and_the_slowest_pair_counts() -> None:
    lab = inventory("b", "a", "c", "a", "b")
    tier = replace(A1, within_zone=0.0005, between_zones={("a", "b"): 0.002, ("b", "c"): 0.004})
    baseline = {frozenset(("node1", f"node{n}")): n * 1e-4 for n in (2, 3, 4, 5)}
    assert [(z.zone, z.addresses, z.delay) for z in told(tier, lab, baseline).zones] == [
        ("a", ("192.168.77.12", "192.168.77.14"), pytest.approx((0.002 - 0.0004) / 2)),
        ("b", ("192.168.77.15",), 0.0),
        ("c", ("192.168.77.13",), pytest.approx((0.004 - 0.0003) / 2)),
    ]


def test_ssh_is_exempt_where_the_underlay_carries_it() -> None:
    over_underlay = Inventory("pair", "external", (node(1, ssh_host="192.168.77.11"), node(2)))
    assert told(lab=over_underlay).exempt_ssh == 22
    assert told(lab=over_underlay, name="node2").exempt_ssh is None


def test_ssh_on_another_port_is_exempt_there() -> None:
    nodes = (replace(node(1, ssh_host="192.168.77.11"), ssh_port=2222), node(2))
    shaped = told(lab=Inventory("pair", "external", nodes))
    assert tc_batch(shaped).splitlines()[-1].endswith("match ip sport 2222 0xffff flowid 1:2")


@pytest.mark.parametrize(("field", "value"), [("quota", 0.2), ("sustained", 50e6)])
def test_what_cannot_be_put_in_force_is_refused(field, value) -> None:
    with pytest.raises(UserError, match=rf"profile azure-a1: {field}: .* cannot put it in force"):
        check_supported(replace(A1, **{field: value}))


def test_vcpus_and_quota_are_for_nodes_that_are_made_with_them() -> None:
    check_supported(replace(A1, vcpus=1, quota=0.5), cpu_limits=True)
    with pytest.raises(UserError, match="sustained"):
        check_supported(replace(A1, sustained=50e6), cpu_limits=True)
    with pytest.raises(UserError, match="or measure with PROVIDER=lxc, which can"):
        check_supported(replace(A1, vcpus=1))


def test_none_needs_no_qdisc() -> None:
    seen = told(load_profile("none"))
    assert (seen.queueing, tc_batch(seen), seen.mtu, seen.segmented) == (False, "", None, False)


# -- text -------------------------------------------------------------------------------------------


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


def test_the_rates_of_the_zones_add_up_to_the_cap_and_no_more() -> None:
    """A class may always send its own rate, whatever its parent has left (tc-htb(8))."""
    lines = tc_batch(told(A1, inventory("a", "a", "b", "c"), {})).splitlines()
    rates = [line.split(" rate ")[1].split(" burst")[0] for line in lines if line.startswith("class")]
    assert rates == ["100000000bit ceil 100000000bit"] + ["33333333bit ceil 100000000bit"] * 3


def test_without_delay_the_queue_is_the_classs_own() -> None:
    lines = tc_batch(replace(told(), zones=(replace(ZONE, delay=0.0),))).splitlines()
    assert not [line for line in lines if "netem" in line]
    assert "qdisc add dev eth1 parent 1:10 handle 110: bfifo limit 250000" in lines


def test_batch_of_three_zones_leads_each_address_to_its_zones_delay() -> None:
    tier = replace(A1, within_zone=0.0005, between_zones={("a", "b"): 0.002, ("a", "c"): 0.004})
    lines = tc_batch(told(tier, inventory("a", "b", "a", "c", "b"), {})).splitlines()
    assert [line for line in lines if "netem" in line or "bfifo" in line] == [
        "qdisc add dev eth1 parent 1:10 handle 10: netem delay 250us limit 20000",
        "qdisc add dev eth1 parent 10: handle 110: bfifo limit 250000",
        "qdisc add dev eth1 parent 1:11 handle 11: netem delay 1000us limit 20000",
        "qdisc add dev eth1 parent 11: handle 111: bfifo limit 250000",
        "qdisc add dev eth1 parent 1:12 handle 12: netem delay 2000us limit 20000",
        "qdisc add dev eth1 parent 12: handle 112: bfifo limit 250000",
    ]
    match = "filter add dev eth1 parent 1: protocol ip prio 10 u32 match ip dst"
    assert [line for line in lines if line.startswith("filter")] == [
        f"{match} 192.168.77.13/32 flowid 1:10",
        f"{match} 192.168.77.12/32 flowid 1:11",
        f"{match} 192.168.77.15/32 flowid 1:11",
        f"{match} 192.168.77.14/32 flowid 1:12",
    ]


def netem(shaped: NodeShaping) -> str:
    (line,) = (line for line in tc_batch(shaped).splitlines() if "netem" in line)
    return line.split("netem ", 1)[1]


def test_jitter_comes_with_the_rate_that_keeps_packets_in_order() -> None:
    shaped = replace(told(), zones=(replace(ZONE, jitter=0.0001),))
    assert netem(shaped) == "delay 250us 100us rate 100000000bit limit 20000"


def test_loss_is_a_percentage_to_tc_and_needs_no_delay() -> None:
    assert netem(replace(told(), zones=(replace(ZONE, loss=0.00125),))) == (
        "delay 250us loss 0.125% limit 20000"
    )
    assert netem(replace(told(), zones=(replace(ZONE, delay=0.0, loss=0.01),))) == (
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


def test_ssh_goes_before_the_zones_in_a_class_without_a_cap() -> None:
    assert tc_batch(replace(told(), exempt_ssh=22)).splitlines()[-2:] == [
        "class add dev eth1 parent 1: classid 1:2 htb rate 100000000000bit quantum 1514",
        "filter add dev eth1 parent 1: protocol ip prio 1 u32"
        " match ip protocol 6 0xff match ip sport 22 0xffff flowid 1:2",
    ]


# -- digest -----------------------------------------------------------------------------------------

CHANGED = {
    "interface": "eth2",
    "mtu": 1400,
    "segmented": False,
    "rate": 200e6,
    "burst": 100_001,
    "queue": 250_001,
    "overhead": 24,
    "zones": (),
    "exempt_ssh": 22,
}
ZONE_CHANGED = {"zone": "b", "addresses": ("192.168.77.13",), "delay": 0.0003, "jitter": 1e-5, "loss": 0.01}


def test_digest_names_everything_that_is_applied() -> None:
    assert set(CHANGED) == {f.name for f in fields(NodeShaping)}
    assert set(ZONE_CHANGED) == {f.name for f in fields(ZoneClass)}
    base = replace(told(), zones=(ZONE,))
    others = [replace(base, **{name: value}) for name, value in CHANGED.items()]
    others += [replace(base, zones=(replace(ZONE, **{name: v}),)) for name, v in ZONE_CHANGED.items()]
    digests = {shaping.digest for shaping in (base, *others)}
    assert len(digests) == 1 + len(CHANGED) + len(ZONE_CHANGED)
    assert base.digest == replace(told(), zones=(ZONE,)).digest


# -- reading back -----------------------------------------------------------------------------------

IN_FORCE = replace(told(), zones=(replace(ZONE, delay=0.000482),))


def recorded(name: str, shaped: NodeShaping = IN_FORCE, **settings) -> str:
    """A recorded read-back; its digest is that of `shaped`, or what is given."""
    text, cut, classes = (FIXTURES / f"{name}.out").read_text().partition(shaping_readback._CUT)
    seen = json.loads(text) | {"digest": shaped.digest} | settings
    return json.dumps(seen) + cut + classes


def test_what_was_asked_for_is_in_force() -> None:
    assert readback_problems(IN_FORCE, recorded("pair-100mbit")) == []


def test_netems_microseconds_are_near_enough() -> None:
    near = replace(IN_FORCE, zones=(replace(ZONE, delay=0.0004835),))
    assert readback_problems(near, recorded("pair-100mbit", near)) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"mtu": 1400}, "eth1 has MTU 1500, not 1400"),
        ({"rate": 100.2e6}, "the cap of eth1 is 100000000 bit/s, not 100200000"),
        (
            {"zones": (replace(ZONE, delay=0.000485),)},
            "traffic to zone a is delayed by 0.000482 s, not 0.000485",
        ),
        ({"zones": (replace(ZONE, delay=0.0),)}, "traffic to zone a is delayed by 0.000482 s, not 0.0"),
        (
            {"rate": None, "zones": (replace(ZONE, delay=0.0),)},
            "eth1 is still shaped",
        ),
    ],
)
def test_each_setting_that_differs_is_named(change, problem) -> None:
    other = replace(IN_FORCE, **change)
    assert readback_problems(other, recorded("pair-100mbit", other)) == [problem]


def test_another_profiles_digest_and_offloads_are_named() -> None:
    printed = recorded("pair-100mbit", digest="0123456789abcdef", offloads_on="tcp generic ")
    assert readback_problems(IN_FORCE, printed) == [
        f"the node says that profile 0123456789abcdef is in force, not {IN_FORCE.digest}",
        "eth1 still has tcp generic offload on",
    ]


def test_a_node_that_was_not_shaped_lacks_everything() -> None:
    assert readback_problems(IN_FORCE, recorded("unshaped", digest="")) == [
        f"the node says that profile none is in force, not {IN_FORCE.digest}",
        "eth1 has MTU 9001, not 1500",
        "eth1 still has tcp generic offload on",
        "the root qdisc of eth1 is ['noqueue'], not htb",
        "the cap of eth1 is None bit/s, not 100000000",
        "traffic to zone a is delayed by 0.0 s, not 0.000482",
    ]


def test_three_zones_without_delay() -> None:
    zones = tuple(ZoneClass(name, (f"192.168.77.1{n}",), 0.0, 0.0, 0.0) for n, name in enumerate("bcd", 2))
    shaped = replace(IN_FORCE, rate=5e6, zones=zones)
    assert readback_problems(shaped, recorded("three-zones-5mbit", shaped)) == []


def netems(*options: tuple[str, dict]) -> str:
    """A read-back in which each parent's netem has these options."""
    settings, cut, classes = recorded("pair-100mbit").partition(shaping_readback._CUT)
    seen = json.loads(settings)
    seen["qdisc"] = [q for q in seen["qdisc"] if q["kind"] != "netem"]
    seen["qdisc"] += [{"kind": "netem", "parent": p, "options": {"limit": 20000, **o}} for p, o in options]
    return json.dumps(seen) + cut + classes


def test_the_netem_of_each_zone_is_known_by_its_class_not_by_its_place() -> None:
    """tc lists them in the order of the kernel's hash: 11, 10, 12."""
    zones = [ZoneClass(name, (f"192.168.77.1{n}",), n * 1e-3, 0.0, 0.0) for n, name in enumerate("bcd", 2)]
    shaped = replace(IN_FORCE, zones=tuple(zones))
    delays = {f"1:1{n}": {"delay": {"delay": zone.delay, "jitter": 0}} for n, zone in enumerate(zones)}
    order = [(parent, delays[parent]) for parent in ("1:11", "1:10", "1:12")]
    shown = netems(*order).replace(IN_FORCE.digest, shaped.digest)
    assert readback_problems(shaped, shown) == []


def test_loss_without_delay_which_tc_then_does_not_print() -> None:
    shaped = replace(IN_FORCE, zones=(replace(ZONE, delay=0.0, loss=0.01),))
    shown = netems(("1:10", {"loss-random": {"loss": 0.01, "correlation": 0}}))
    assert readback_problems(shaped, shown.replace(IN_FORCE.digest, shaped.digest)) == []
    assert readback_problems(shaped, netems(("1:10", {})).replace(IN_FORCE.digest, shaped.digest)) == [
        "of the packets to zone a, 0.0 are lost, not 0.01"
    ]


def test_output_that_cannot_be_read_is_a_problem_and_no_traceback() -> None:
    (problem,) = readback_problems(IN_FORCE, "ethtool: not found")
    assert problem == "the node's settings could not be read: 'ethtool: not found'"


@pytest.mark.parametrize(
    ("printed", "rate"),
    [
        ("class htb 1:1 root rate 4780Kbit ceil 4780Kbit burst 5000b cburst 5000b", 4.78e6),
        ("class htb 1:1 root rate 100Mbit ceil 1Gbit", 100e6),
        ("class htb 1:1 root rate 9600bit ceil 9600bit", 9600),
        ("class htb 1:1 root rate 2Gbit ceil 2Gbit", 2e9),
        ("class htb 1:10 parent 1:1 leaf 10: prio 0 rate 7Mbit ceil 7Mbit", None),
        ("", None),
    ],
)
def test_the_rate_of_a_class_in_tcs_words(printed, rate) -> None:
    assert (
        shaping_readback._class_rate(f"class htb 1:12 parent 1:1 prio 0 rate 1Mbit\n{printed}\n", "1:1")
        == rate
    )


# -- super-packets ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "changes", "size"),
    [
        ("azure-a0", {}, 3125),  # a quarter of 12,500 bytes
        ("azure-a0", {"mtu": 9001}, 18030),  # two frames, which is all that its queue holds
        ("azure-a1", {}, None),  # 250,000 bytes hold any
        ("azure-a0", {"offloads": "default"}, None),
        ("none", {}, None),
    ],
)
def test_no_packet_is_larger_than_its_queue(name, changes, size) -> None:
    """At 5 Mbit/s and an RTT of 15 µs TCP sent 64 KiB at once, the queue dropped each, and 0.06 Mbit/s were left."""
    assert told(replace(load_profile(name), **changes)).gso_max_size == size
