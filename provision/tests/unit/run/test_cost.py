"""What a trial cost: CPU time per what it carried, packets, segments sent again, stolen time."""

from dataclasses import replace

import pytest

from overlaylab.core.model import PlannedTrial, Sample, Variant
from overlaylab.providers import lxc_host, virsh
from overlaylab.run import cost

IDLE = {"user": 0, "nice": 0, "system": 0, "idle": 0, "iowait": 0, "irq": 0, "softirq": 0, "steal": 0}


def state(before: dict, after: dict, **counters) -> dict:
    """A node's two states: ticks beside none, and {counter: (before, after)}."""
    return {
        # What reading the states cost lies outside: it would be 1000 ticks.
        "before": {"cpu": IDLE, "cpu_end": IDLE | before, **{k: v[0] for k, v in counters.items()}},
        "after": {
            "cpu": IDLE | after,
            "cpu_end": IDLE | {"user": 1000},
            **{k: v[1] for k, v in counters.items()},
        },
    }


# 1.5 s at work on each node; 0.4 s of 4.4 s stolen from node2.
STATES = {
    "node1": state(
        {"user": 100}, {"user": 150, "system": 100, "idle": 300, "iowait": 9}, tx_packets=(10, 4010)
    ),
    "node2": state({"system": 7, "steal": 5}, {"system": 57, "softirq": 100, "idle": 250, "steal": 45}),
}
# Half a gigabyte.
HALF = cost.Work(0.5e9, None)
TRIAL = PlannedTrial(
    1, 0, Variant("host"), "tcp-goodput", "iperf3", {"protocol": "tcp", "duration": 4, "omit": 1}
)


def told(found: list[Sample]) -> dict[str, float]:
    return {one.metric: pytest.approx(one.value) for one in found}


def test_cpu_time_is_told_per_gigabyte_by_nodes_and_by_their_machine() -> None:
    found = cost.samples(HALF, STATES, {"node1": 4.0, "node2": 6.0, "node3": 50.0}, "tcg")
    assert told(found) == {"cpu_per_gigabyte": 6.0, "machine_cpu_per_gigabyte": 20.0}
    # A tick on each of two nodes, over half a gigabyte.
    assert [one.resolution for one in found] == [pytest.approx(0.04), None]


def test_and_per_transaction() -> None:
    found = cost.samples(cost.Work(None, 1500), STATES, {"node1": 1.5, "node2": 1.5}, "tcg")
    assert told(found) == {"cpu_per_transaction": 0.002, "machine_cpu_per_transaction": 0.002}


def test_what_was_carried_is_told_by_the_trial_and_what_it_measured() -> None:
    second = Sample("goodput", 1e6, 0, 1)
    assert cost.work(TRIAL, [Sample("goodput", 80e6), second]) == cost.Work(50e6, None)
    rr = replace(TRIAL, tool="netperf", parameters={"test": "tcp_rr", "transactions": 900, "request": 1})
    assert cost.work(rr, [Sample("latency_rtt", 0.001)]) == cost.Work(None, 900)
    latency = replace(TRIAL, tool="qperf", parameters={"test": "tcp_lat", "duration": 2})
    assert cost.work(latency, [Sample("latency_one_way", 0.0005)]) == cost.Work(None, 2000)
    assert cost.work(TRIAL, [Sample("loss", 1.0)]) == cost.Work(None, None)


def test_what_carried_nothing_that_is_counted_has_no_cost() -> None:
    assert cost.samples(cost.Work(None, None), STATES, {"node1": 1.0, "node2": 1.0}, "tcg") == []
    assert cost.samples(cost.Work(0.0, None), STATES, {}, "tcg") == []


def test_containers_do_not_count_their_own_cpu_time() -> None:
    found = cost.samples(HALF, STATES, {"node1": 4.0, "node2": 6.0}, "shared-kernel")
    assert told(found) == {"machine_cpu_per_gigabyte": 20.0}


@pytest.mark.parametrize(("accelerator", "told_there"), [("kvm", True), ("bare", True), ("tcg", False)])
def test_stolen_time_is_told_where_it_means_something(accelerator, told_there) -> None:
    found = cost.samples(cost.Work(None, None), STATES, {}, accelerator)
    # node2: 0.5 + 1 + 2.5 s of its own, 0.4 s stolen
    assert told(found) == ({"steal": 0.4 / 4.4} if told_there else {})


def test_a_node_that_was_booted_meanwhile_has_no_cost() -> None:
    states = STATES | {"node2": state({"user": 500}, {"user": 3})}
    assert cost.samples(HALF, states, {}, "tcg") == []


def test_packets_are_the_senders() -> None:
    assert told(cost.traffic([], STATES, "node1", 2.0, TRIAL)) == {"packet_rate": 2000}
    assert cost.traffic([], STATES, "node2", 2.0, TRIAL) == []


def test_what_stays_within_a_node_has_no_traffic_on_the_underlay() -> None:
    states = {"node1": state({}, {}, tx_packets=(10, 14), tcp_retransmits=(3, 5))}
    assert cost.traffic([], states, "node1", 2.0, replace(TRIAL, placement="local")) == []


def test_segments_sent_again_are_the_kernels_where_a_tool_counts_none() -> None:
    states = {name: state({}, {}, tcp_retransmits=(3, 5)) for name in ("node1", "node2")}
    assert told(cost.traffic([], states, "node1", 2.0, TRIAL)) == {"retransmits": 4}
    own = [Sample("retransmits", 9.0)]
    assert cost.traffic(own, states, "node1", 2.0, TRIAL) == []
    without = states | {"node2": state({}, {}, tcp_retransmits=(None, None))}
    assert cost.traffic([], without, "node1", 2.0, TRIAL) == []


@pytest.mark.parametrize(
    ("tool", "parameters", "expected"),
    [
        ("iperf3", {"protocol": "udp"}, False),
        ("qperf", {"test": "tcp_lat"}, True),
        ("netperf", {"test": "udp_rr"}, False),
        ("ping", {}, False),
        ("connect", {"count": 1}, True),
    ],
)
def test_tcp_is_told_by_the_parameters(tool, parameters, expected) -> None:
    assert cost.is_tcp(PlannedTrial(1, 0, Variant("host"), "x", tool, parameters)) is expected


def test_a_machine_that_began_anew_used_nothing_that_is_known() -> None:
    assert cost.machine_used({"a": 1.0}, {"a": 3.5}) == {"a": 2.5}
    assert cost.machine_used({"a": 1.0}, {"a": 0.5}) == {}
    assert cost.machine_used({"a": 1.0, "b": 1.0}, {"a": 2.0}) == {}
    assert cost.machine_used({}, {}) == {}


async def test_libvirt_counts_its_domains(monkeypatch) -> None:
    async def asked(*arguments: str, check: bool = True) -> str:
        assert arguments == ("domstats", "--cpu-total", "lab-node1", "lab-node2")
        return (
            "Domain: 'lab-node1'\n  cpu.time=21732741000\n  cpu.user=18037301000\n  cpu.system=3695440000\n"
            "  cpu.cache.monitor.count=0\n\nDomain: 'lab-node2'\n  cpu.time=1500000000\n\n"
        )

    monkeypatch.setattr(virsh, "virsh", asked)
    assert await virsh.cpu_seconds(["lab-node1", "lab-node2"]) == {"lab-node1": 21.732741, "lab-node2": 1.5}


def test_control_groups_count_containers_in_either_version(tmp_path) -> None:
    assert lxc_host.cpu_seconds("box", tmp_path) is None
    group = tmp_path / "lxc.payload.box"
    group.mkdir()
    (group / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\nsystem_usec 2\n")
    assert lxc_host.cpu_seconds("box", tmp_path) == 2.5
    group = tmp_path / "cpuacct" / "lxc.payload.box"
    group.mkdir(parents=True)
    (group / "cpuacct.usage").write_text("2728046563\n")
    assert lxc_host.cpu_seconds("box", tmp_path) == 2.728046563
