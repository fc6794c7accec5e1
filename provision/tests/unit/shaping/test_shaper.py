"""A profile on nodes: putting it in force, and bringing each pair to its target RTT."""

import math
from dataclasses import replace

import pytest
from lab_fakes import failed, ping
from lab_shaper import A1, BASELINE, PAIR, PING, READBACK, network, readback, shaper

from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import ProfileCheck
from overlaylab.shaping import scripts
from overlaylab.shaping.checks import Rtt, cpu_problems, judge_cpu, judge_rtt, standard_error
from overlaylab.shaping.cpu import CpuState
from overlaylab.shaping.shaper import Shaper, problems
from overlaylab.specs.profile import load_profile

# -- in force ---------------------------------------------------------------------------------------


async def test_apply_says_where_it_changed_anything() -> None:
    found = shaper()
    found.nodes["node2"].answers["tc -batch"] = "unchanged\n"
    assert await found.apply() == {"node1": True, "node2": False}
    assert found.nodes["node1"].log == [scripts.apply_script(found.shaping_of("node1"))]


async def test_none_is_applied_by_clearing() -> None:
    found = shaper(load_profile("none"))
    assert await found.apply() == {"node1": False, "node2": False}
    assert found.nodes["node1"].log == [scripts.clear_script("eth1")]


async def test_applying_and_reading_back_is_one_exchange() -> None:
    found = shaper()
    assert await found.apply_and_read_back() == {"node1": [], "node2": []}
    assert len(found.nodes["node1"].log) == 1


async def test_what_is_not_in_force_is_named_with_its_node() -> None:
    found = shaper()
    found.nodes["node2"].answers[READBACK] = readback(found.shaping_of("node2"), mtu=9001)
    said = await found.apply_and_read_back()
    assert said == {"node1": [], "node2": ["eth1 has MTU 9001, not 1500"]}
    assert problems(said) == "node2: eth1 has MTU 9001, not 1500"
    assert problems({"node1": [], "node2": []}) is None


async def test_each_node_is_told_half_of_what_the_baseline_lacks() -> None:
    found = shaper()
    assert found.shaping_of("node1").peers[0].delay == pytest.approx((0.000966 - BASELINE) / 2)


# -- RTTs -------------------------------------------------------------------------------------------


async def test_the_pings_go_over_the_underlay() -> None:
    found = shaper(**{PING: lambda script: ping([0.001, 0.002], script)})
    assert await found.rtts("node1", "node2", 200, 0.01) == [0.001, 0.002]
    (script,) = found.nodes["node1"].log
    assert script == "ping -n -D -c 200 -i 0.01 -s 56 -W 2 192.168.77.12"


async def test_pings_that_nobody_answers_are_the_nodes_failure() -> None:
    lost = failed(1, stdout="500 packets transmitted, 0 received, 100% packet loss, time 9ms\n")
    found = shaper(**{PING: lost})
    with pytest.raises(NodeError, match="ping from node1 to node2: ping got no reply to 500 requests"):
        await found.calibrate()


@pytest.mark.parametrize(
    ("rtts", "error"),
    [
        ([0.001] * 200, 0.0),
        # Batches of 20: five medians of 1 ms and five of 2 ms; their spread over √10.
        ([0.001] * 100 + [0.002] * 100, 0.5e-3 * math.sqrt(10 / 9) / math.sqrt(10)),
        # The same RTTs mixed: every batch has the same median.
        ([0.001, 0.002] * 100, 0.0),
        # A single late ping moves no median.
        ([0.001] * 199 + [1.0], 0.0),
        ([0.001], math.inf),
        ([0.001, 0.003], 1e-3),
    ],
)
def test_the_error_of_a_median_is_that_of_its_batches(rtts, error) -> None:
    assert standard_error(rtts) == pytest.approx(error, abs=1e-12)


# -- calibrating ------------------------------------------------------------------------------------


async def test_what_a_pair_lacks_to_its_target_is_added_half_on_each_end() -> None:
    found = network(0.000466)
    baseline, idle = await found.calibrate()
    assert (
        found.shaping_of("node1").peers[0].delay
        == found.shaping_of("node2").peers[0].delay
        == pytest.approx(0.00025)
    )
    assert baseline == ProfileCheck(
        "rtt-baseline", "node1", "node2", 0.000966, pytest.approx(0.000466), None, "s", "pass", None
    )
    assert idle == ProfileCheck(
        "rtt-idle", "node1", "node2", 0.000966, pytest.approx(0.000966), 50e-6, "s", "pass", None
    )
    assert found.idle[PAIR] == pytest.approx(0.000966)


async def test_the_baseline_is_measured_with_all_in_force_but_the_delay() -> None:
    found = network(0.000466)
    await found.calibrate()
    first, *_ = (script for script in found.nodes["node2"].log if "tc -batch" in script)
    assert "htb rate 100000000bit" in first and "ip link set dev $underlay mtu 1500" in first
    assert "netem" not in first
    assert found.nodes.answers[PING].delays == pytest.approx([0.0, 0.0005])


async def test_the_rtt_is_that_of_dense_traffic() -> None:
    """Pings 10 ms apart measured how long an emulated CPU takes to wake: the delay came out too small."""
    found = network(0.000466)
    await found.calibrate()
    pings = [script for script in found.nodes["node1"].log if script.startswith("ping")]
    assert set(pings) == {"ping -n -D -c 500 -i 0.002 -s 56 -W 2 192.168.77.12"}


async def test_what_the_timers_cost_is_taken_off_the_delay() -> None:
    found = network(0.000466, cost=0.0002)
    _, idle = await found.calibrate()
    assert found.nodes.answers[PING].delays == pytest.approx([0.0, 0.0005, 0.0003])
    assert idle.measured == pytest.approx(0.000966)
    assert idle.verdict == "pass"


async def test_a_delay_that_falls_short_is_raised() -> None:
    found = network(0.000466, cost=-0.0001)
    _, idle = await found.calibrate()
    assert found.nodes.answers[PING].delays == pytest.approx([0.0, 0.0005, 0.0006])
    assert idle.verdict == "pass"


async def test_where_delaying_costs_more_than_is_lacking_none_is_added() -> None:
    found = network(0.000466, cost=0.0008)
    baseline, idle = await found.calibrate()
    assert found.nodes.answers[PING].delays == pytest.approx([0.0, 0.0005, 0.0])
    assert (baseline.verdict, idle.verdict) == ("pass", "not-applicable")
    assert idle.measured == pytest.approx(0.000466)
    assert idle.reason == "delaying takes longer than what is lacking on this accelerator: no delay is added"


async def test_a_baseline_that_was_above_the_target_for_a_moment_is_measured_again() -> None:
    """Nodes that had just been started were slow at first; the latency was then left out, and the RTT was 0.54 ms."""
    found = network(0.000466)
    settled = found.nodes.answers[PING]
    found.nodes.answers[PING] = lambda script: settled(script) if settled.delays else first(script)

    def first(script: str) -> str:
        settled(script)
        return ping([0.0014] * 500, script)

    baseline, idle = await found.calibrate()
    assert settled.delays == pytest.approx([0.0, 0.0, 0.0005])
    assert (baseline.verdict, baseline.measured) == ("pass", pytest.approx(0.000466))
    assert (idle.verdict, idle.measured) == ("pass", pytest.approx(0.000966))


async def test_a_baseline_above_the_target_is_recorded_and_no_failure() -> None:
    found = network(0.0015)
    baseline, idle = await found.calibrate()
    assert (baseline.verdict, baseline.measured) == ("not-applicable", pytest.approx(0.0015))
    assert baseline.reason == "exceeds the target of 0.966 ms: no delay is added"
    assert (idle.verdict, idle.expected) == ("pass", pytest.approx(0.0015))
    assert found.shaping_of("node1").peers[0].delay == 0


async def test_what_cannot_be_corrected_fails_with_what_was_measured() -> None:
    found = network(0.000466)
    answers = [0.000466, 0.0012, 0.0007, 0.0012, 0.0007, 0.0012]
    found.nodes.answers[PING] = lambda script: ping([answers.pop(0)] * 200, script)
    _, idle = await found.calibrate()
    assert answers == []  # five rounds, and no more
    assert (idle.verdict, idle.measured) == ("fail", pytest.approx(0.0012))
    assert idle.reason == "median of many pings; without delay 0.466 ms"


async def test_each_pair_has_its_own_delay() -> None:
    tier = replace(A1, within_zone=0.001, between_zones={("a", "b"): 0.004})
    found = network(0.0004, tier, zones=("a", "a", "b"))
    found.nodes.answers[PING] = lambda script: ping([0.0004] * 200, script)  # whatever is added
    await found.calibrate()
    assert [peer.node for peer in found.shaping_of("node1").peers] == ["node2", "node3"]
    assert [peer.node for peer in found.shaping_of("node3").peers] == ["node1", "node2"]
    assert set(found.baseline) == {
        frozenset(p) for p in (("node1", "node2"), ("node1", "node3"), ("node2", "node3"))
    }


async def test_settings_that_do_not_take_stop_it() -> None:
    found = network(0.0004, **{READBACK: "tc: not found"})
    with pytest.raises(
        NodeError, match="profile azure-a1 is not in force: node1: the node's settings could not"
    ):
        await found.calibrate()


# -- judging ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "undelayed", "idle", "expected", "tolerance", "verdict"),
    [
        # 5 % of 0.966 ms are 48 µs: the floor of 50 µs counts.
        (0.000966, (0.0004, 0), (0.001015, 0), 0.000966, 50e-6, "pass"),
        (0.000966, (0.0004, 0), (0.001017, 0), 0.000966, 50e-6, "fail"),
        (0.000966, (0.0004, 0), (0.000915, 0), 0.000966, 50e-6, "fail"),
        # Three standard errors of the RTT; that of the baseline has no part in a target.
        (0.000966, (0.0004, 1), (0.001265, 1e-4), 0.000966, 3e-4, "pass"),
        (0.000966, (0.0004, 1), (0.001267, 1e-4), 0.000966, 3e-4, "fail"),
        # The baseline exceeds the target: 5 % of it, or three times both errors.
        (0.000966, (0.0020, 0), (0.002099, 0), 0.0020, 100e-6, "pass"),
        (0.000966, (0.0020, 0), (0.002101, 0), 0.0020, 100e-6, "not-applicable"),
        (0.000966, (0.0020, 3e-4), (0.003499, 4e-4), 0.0020, 15e-4, "pass"),
    ],
)
def test_idle_rtt(target, undelayed, idle, expected, tolerance, verdict) -> None:
    _, check = judge_rtt("node1", "node2", target, 1e-4, Rtt(*undelayed), Rtt(*idle))
    assert (check.name, check.unit, check.expected, check.measured) == ("rtt-idle", "s", expected, idle[0])
    assert check.tolerance == pytest.approx(tolerance)
    assert check.verdict == verdict
    assert (check.reason is None) == (verdict == "pass")


def test_what_asks_for_no_rtt_is_not_judged_by_one() -> None:
    (check,) = judge_rtt("node1", "node2", None, 0.0, Rtt(0.002, 0.0), Rtt(0.004, 0.0))
    assert (check.name, check.expected, check.measured, check.verdict) == (
        "rtt-baseline",
        None,
        0.002,
        "pass",
    )


def test_an_rtt_that_nothing_was_added_to_cannot_fail() -> None:
    for target, undelayed, reason in (
        (0.001, 0.002, "no delay is added, so this is how far the machine itself drifts"),
        (0.001, 0.0005, "delaying takes longer than what is lacking on this accelerator: no delay is added"),
    ):
        check = judge_rtt("node1", "node2", target, 0.0, Rtt(undelayed, 0.0), Rtt(0.004, 0.0))[1]
        assert (check.verdict, check.reason) == ("not-applicable", reason)


WITHOUT_NETEM = {"unshare --net tc": failed(2, "Error: Specified qdisc kind is unknown.")}


async def test_where_the_kernel_has_no_netem_the_latency_is_recorded_as_not_applied() -> None:
    found = network(0.000466, **WITHOUT_NETEM)
    baseline, idle = await found.calibrate()
    assert not any("netem" in script for script in found.nodes["node1"].log if "tc -batch" in script)
    assert (baseline.verdict, baseline.measured) == ("pass", pytest.approx(0.000466))
    assert (idle.name, idle.verdict, idle.expected) == ("rtt-idle", "not-applicable", 0.000966)
    assert idle.reason == "latency is not applied: the kernel of the nodes has no netem"
    assert found.shaping_of("node1").peers[0].delay == 0
    assert found.idle[PAIR] == pytest.approx(0.000466)


@pytest.mark.parametrize("what", ["jitter", "loss"])
async def test_where_the_kernel_has_no_netem_jitter_and_loss_are_refused(what) -> None:
    found = network(0.000466, replace(A1, **{what: 0.001}), **WITHOUT_NETEM)
    with pytest.raises(
        UserError, match=f"profile azure-a1: {what}: takes netem, which the kernel of the nodes"
    ):
        await found.calibrate()


async def test_netem_is_not_asked_for_where_nothing_is_delayed() -> None:
    found = network(0.000466, replace(A1, within_zone=None, between_zones={}))
    found.nodes.answers.pop("unshare --net tc")
    (baseline,) = await found.calibrate()
    assert baseline.name == "rtt-baseline"


# -- CPU and bucket ---------------------------------------------------------------------------------


class Cpu:
    """Holds nodes to what they are told, but for those that have fewer vCPUs."""

    def __init__(self, **have: int) -> None:
        self.have = have
        self.told: list[tuple[int | None, float | None]] = []

    async def hold(self, vcpus: int | None, quota: float | None) -> None:
        self.told.append((vcpus, quota))

    async def held(self) -> dict[str, CpuState]:
        vcpus, quota = self.told[-1]
        return {name: CpuState(min(vcpus or have, have), quota) for name, have in self.have.items()}

    def after_reboot(self, vcpus: int | None, quota: float | None) -> str:
        return f"again {vcpus} {quota}\n"


def on_cpu(cpu: Cpu, **numbers) -> Shaper:
    found = shaper(replace(A1, within_zone=None, **numbers))
    found.cpu = cpu  # type: ignore[assignment]
    return found


async def test_vcpus_and_quota_are_put_in_force_with_the_profile_and_kept_for_a_reboot() -> None:
    cpu = Cpu(node1=2, node2=2)
    found = on_cpu(cpu, vcpus=1, quota=0.2)
    assert await found.apply_and_read_back() == {"node1": [], "node2": []}
    assert cpu.told == [(1, 0.2)]
    assert "(again 1 0.2\n)" in found.nodes["node1"].log[0]
    await found.clear()
    assert cpu.told[-1] == (None, None)


async def test_a_profile_that_holds_no_cpu_lifts_what_another_held() -> None:
    cpu = Cpu(node1=2, node2=2)
    await on_cpu(cpu, vcpus=None).apply()
    assert cpu.told == [(None, None)]


async def test_a_quota_that_did_not_take_is_named() -> None:
    cpu = Cpu(node1=2, node2=2)
    found = on_cpu(cpu, vcpus=1, quota=0.2)

    async def held() -> dict[str, CpuState]:
        return {"node1": CpuState(1, 0.2), "node2": CpuState(2, None)}

    cpu.held = held  # type: ignore[method-assign]
    assert await found.apply_and_read_back() == {
        "node1": [],
        "node2": ["2 vCPUs are in use, not 1", "all of the vCPUs' time may be used, not 20%"],
    }


def test_fewer_vcpus_than_the_tier_has_are_recorded() -> None:
    tier = replace(A1, vcpus=4, quota=0.5)
    checks = judge_cpu({"node1": CpuState(1, 0.5), "node2": CpuState(4, None)}, tier)
    assert [(c.name, c.client_node, c.expected, c.measured, c.unit, c.verdict) for c in checks] == [
        ("vcpus", "node1", 4, 1, "1", "not-applicable"),
        ("quota", "node1", 0.5, 0.5, "ratio", "pass"),
        ("vcpus", "node2", 4, 4, "1", "pass"),
        ("quota", "node2", 0.5, 1.0, "ratio", "fail"),
    ]
    assert cpu_problems(CpuState(1, 0.5), tier) == []


async def test_a_bucket_is_filled_on_every_node_of_a_tier_with_two_rates() -> None:
    found = shaper(replace(A1, sustained=10e6, bucket=1e9), **{"kill -USR1": ""})
    await found.fill_bucket()
    assert [node.log for node in found.nodes.values()] == [[scripts.FILL_BUCKET]] * 2
    one_rate = shaper()
    await one_rate.fill_bucket()
    assert one_rate.nodes["node1"].log == []


@pytest.mark.parametrize(
    ("quota", "idle", "spare"), [(None, 0.3, 0.3), (0.2, 0.8, 0.0), (0.2, 0.72, 0.0), (0.5, 0.75, 0.5)]
)
def test_what_a_quota_withholds_is_no_idle_time(quota, idle, spare) -> None:
    assert shaper(replace(A1, quota=quota)).spare_cpu(idle) == pytest.approx(spare)
