"""A profile on nodes: putting it in force, and judging what was sent and counted."""

import json
from dataclasses import replace

import pytest
from lab_builders import inventory
from lab_fakes import Completed, Counters, FakeNodes, failed, iperf3, ping

from overlaylab import shaper as module
from overlaylab import shaping, theory
from overlaylab.errors import NodeError, UserError
from overlaylab.model import ProfileCheck
from overlaylab.profile import load_profile
from overlaylab.shaper import Shaper, problems, readable

A1 = load_profile("azure-a1")
THEORY = 100e6 * 1448 / 1514
BASELINE = 0.000466
PAIR = frozenset(("node1", "node2"))
COUNTERS = "</proc/stat"
PING, IPERF3, READBACK = "ping -n", "iperf3 --client", "tc -j qdisc show"


def readback(shaped: shaping.NodeShaping, **changes) -> str:
    """What a node prints on which `shaped` is in force, but for `changes`."""
    netem = {"kind": "netem", "parent": "1:10", "options": {"delay": {"delay": shaped.zones[0].delay}}}
    qdiscs = [{"kind": "htb", "root": True, "handle": "1:"}, netem]
    seen = {"digest": shaped.digest, "mtu": 1500, "offloads_on": "", "qdisc": qdiscs} | changes
    rate = f"{(shaped.rate or shaping.UNCAPPED) / 1e3:.0f}Kbit"
    return f"{json.dumps(seen)}\n{shaping._CUT}\nclass htb 1:1 root rate {rate} ceil {rate}\n"


def shaper(profile=A1, *, zones=("a", "a"), **answers) -> Shaper:
    """On nodes where everything goes right, but for `answers`."""
    nodes = FakeNodes(inventory(*zones), {})
    found = Shaper(nodes, profile, {PAIR: BASELINE}, {PAIR: 0.0})
    nodes.answers |= {
        PING: ping([BASELINE + 0.0005] * 200),
        IPERF3: iperf3(THEORY),
        COUNTERS: Counters(),
        "tc -batch": "changed\n",
        '[ -d "$state" ] || exit 0': "",
        "systemctl": "",
    }
    for name, node in nodes.items():
        node.answers |= answers
        node.answers.setdefault(READBACK, lambda _, name=name: readback(found.told(name)))
    return found


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(seconds: float) -> None: ...

    monkeypatch.setattr(module.asyncio, "sleep", at_once)


# -- in force ---------------------------------------------------------------------------------------


async def test_apply_says_where_it_changed_anything() -> None:
    found = shaper()
    found.nodes["node2"].answers["tc -batch"] = "unchanged\n"
    assert await found.apply() == {"node1": True, "node2": False}
    assert found.nodes["node1"].log == [shaping.apply_script(found.told("node1"))]


async def test_none_is_applied_by_clearing() -> None:
    found = shaper(load_profile("none"))
    assert await found.apply() == {"node1": False, "node2": False}
    assert found.nodes["node1"].log == [shaping.clear_script("eth1")]


async def test_applying_and_reading_back_is_one_exchange() -> None:
    found = shaper()
    assert await found.apply_and_read_back() == {"node1": [], "node2": []}
    assert len(found.nodes["node1"].log) == 1


async def test_what_is_not_in_force_is_named_with_its_node() -> None:
    found = shaper()
    found.nodes["node2"].answers[READBACK] = readback(found.told("node2"), mtu=9001)
    said = await found.apply_and_read_back()
    assert said == {"node1": [], "node2": ["eth1 has MTU 9001, not 1500"]}
    assert problems(said) == "node2: eth1 has MTU 9001, not 1500"
    assert problems({"node1": [], "node2": []}) is None


async def test_each_node_is_told_half_of_what_the_baseline_lacks() -> None:
    found = shaper()
    assert found.told("node1").zones[0].delay == pytest.approx((0.000966 - BASELINE) / 2)


# -- baseline ---------------------------------------------------------------------------------------


async def test_baseline_is_the_median_of_each_pair() -> None:
    found = shaper(zones=("a", "a", "a"))
    found.nodes["node2"].answers[PING] = ping([0.0004] * 100 + [0.0006] * 101)
    checks = await found.measure_baseline()
    assert found.baseline[frozenset(("node1", "node2"))] == pytest.approx(0.000966)
    assert found.baseline[frozenset(("node2", "node3"))] == pytest.approx(0.0006)
    assert [(c.client_node, c.server_node) for c in checks] == [
        ("node1", "node2"),
        ("node1", "node3"),
        ("node2", "node3"),
    ]
    assert checks[2] == ProfileCheck(
        "rtt-baseline", "node2", "node3", 0.000966, pytest.approx(0.0006), None, "s", "pass", None
    )


async def test_a_baseline_above_the_target_is_recorded_and_no_failure() -> None:
    found = shaper(**{PING: ping([0.0015] * 200)})
    (check,) = await found.measure_baseline()
    assert (check.verdict, check.measured) == ("not-applicable", pytest.approx(0.0015))
    assert check.reason == "exceeds the target of 0.97 ms: no delay is added"
    assert found.told("node1").zones[0].delay == 0


async def test_the_pings_go_over_the_underlay() -> None:
    found = shaper()
    await found.rtts("node1", "node2", 200, 0.01)
    (script,) = found.nodes["node1"].log
    assert script == "ping -n -D -c 200 -i 0.01 -s 56 -W 2 192.168.77.12"


async def test_pings_that_nobody_answers_are_the_nodes_failure() -> None:
    lost = failed(1, stdout="20 packets transmitted, 0 received, 100% packet loss, time 9ms\n")
    found = shaper(**{PING: lost})
    with pytest.raises(NodeError, match="ping from node1 to node2: ping got no reply to 20 requests"):
        await found.measure_baseline()


# -- idle RTT ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("baseline", "rtts", "expected", "tolerance", "verdict"),
    [
        # 5 % of 0.966 ms are 48 µs: the floor of 50 µs counts.
        (0.0004, [0.001015] * 200, 0.000966, 50e-6, "pass"),
        (0.0004, [0.001017] * 200, 0.000966, 50e-6, "fail"),
        (0.0004, [0.000915] * 200, 0.000966, 50e-6, "fail"),
        # The baseline exceeds the target: 5 % of it.
        (0.0020, [0.002099] * 200, 0.0020, 100e-6, "pass"),
        (0.0020, [0.002101] * 200, 0.0020, 100e-6, "fail"),
        # Quartiles 1 ms apart: σ = 1/1.349 ms, and the median's error 1.2533 σ/√200 = 65.7 µs, three times.
        (0.0004, [0.00066, 0.00166] * 100, 0.000966, 3 * 1.2533e-3 / 1.349 / 200**0.5, "pass"),
        (0.0004, [0.00068, 0.00168] * 100, 0.000966, 3 * 1.2533e-3 / 1.349 / 200**0.5, "fail"),
    ],
)
async def test_idle_rtt(baseline, rtts, expected, tolerance, verdict) -> None:
    found = shaper(**{PING: ping(rtts)})
    found.baseline[PAIR] = baseline
    median, check = await found._idle_rtt("node1", "node2")
    assert median == check.measured == pytest.approx(sum(sorted(rtts)[99:101]) / 2)
    assert (check.name, check.unit, check.expected) == ("rtt-idle", "s", expected)
    assert check.tolerance == pytest.approx(tolerance, rel=1e-3)
    assert check.verdict == verdict
    if verdict == "fail":
        assert check.reason == f"median of 200 pings; baseline {baseline * 1e3:.3f} ms"


async def test_the_baselines_own_error_counts_too() -> None:
    found = shaper(**{PING: ping([0.001066] * 200)})
    assert (await found._idle_rtt("node1", "node2"))[1].verdict == "fail"
    found.baseline_error[PAIR] = 40e-6
    check = (await found._idle_rtt("node1", "node2"))[1]
    assert (check.verdict, check.tolerance) == ("pass", pytest.approx(120e-6))


# -- goodput ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "busy", "verdict", "reason"),
    [
        (1.0, 50, "pass", None),
        (0.991, 50, "pass", None),
        (1.009, 50, "pass", None),
        (0.989, 50, "fail", "50% of the busier node's CPU was idle"),
        (1.011, 50, "fail", "50% of the busier node's CPU was idle"),
        (1.011, 97, "fail", "3% of the busier node's CPU was idle"),  # too much is never the CPU's doing
        (0.5, 97, "not-applicable", "the nodes' CPU carries 48 Mbit/s and no more on this accelerator"),
        # A node that was never idle.
        (0.5, 100, "not-applicable", "the nodes' CPU carries 48 Mbit/s and no more on this accelerator"),
        (0.5, 95, "fail", "5% of the busier node's CPU was idle"),
    ],
)
async def test_goodput_is_held_to_the_header_arithmetic(ratio, busy, verdict, reason) -> None:
    found = shaper(**{IPERF3: iperf3(THEORY * ratio)})
    found.nodes["node2"].answers[COUNTERS] = Counters(busy=busy)
    check, loaded = await found._goodput("node1", "node2", None)
    assert loaded is None
    assert check == ProfileCheck(
        "goodput",
        "node1",
        "node2",
        pytest.approx(THEORY),
        pytest.approx(THEORY * ratio),
        pytest.approx(THEORY / 100),
        "bit/s",
        verdict,
        reason,
    )
    assert found.nodes["node1"].log[1].startswith("iperf3 --client 192.168.77.12 --port 5201")
    assert pytest.approx(theory.goodput_theory(100e6, 1500, 0)) == THEORY


@pytest.mark.parametrize(
    ("rtt", "busy", "verdict"),
    # 0.966 ms idle, 20 ms of queue, and 100,000 bytes of burst, which take 8 ms.
    [(0.0288, 50, "pass"), (0.0291, 50, "fail"), (0.0291, 97, "not-applicable")],
)
async def test_loaded_rtt_is_bounded_by_queue_and_burst(rtt, busy, verdict) -> None:
    found = shaper(**{PING: ping([rtt] * 17), COUNTERS: Counters(busy=busy)})
    goodput, check = await found._goodput("node1", "node2", 0.000966)
    assert goodput.verdict == "pass"
    assert (check.name, check.verdict, check.measured) == ("rtt-loaded", verdict, pytest.approx(rtt))
    assert check.expected == pytest.approx(0.000966 + 0.020 + 0.008)
    assert (check.reason is None) == (verdict == "pass")


async def test_an_iperf3_that_fails_is_the_nodes_failure() -> None:
    found = shaper(**{IPERF3: failed(1, "iperf3: unable to connect")})
    with pytest.raises(NodeError, match=r"iperf3 from node1 to node2: .*unable to connect"):
        await found._goodput("node1", "node2", None)


# -- the whole proof --------------------------------------------------------------------------------


def in_turn(*answers: str):
    """One answer after another; the last again and again."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


BARE = ping([BASELINE] * 200)
GOOD = ping([0.000966] * 200)
LOADED = ping([0.02] * 17)


async def test_proof_of_a_pair() -> None:
    found = shaper(**{PING: in_turn(BARE, GOOD, LOADED)})
    said: list[str] = []
    checks = await found.prove(said.append)
    assert [(c.name, c.client_node, c.server_node, c.verdict) for c in checks] == [
        ("rtt-baseline", "node1", "node2", "pass"),
        ("rtt-idle", "node1", "node2", "pass"),
        ("goodput", "node1", "node2", "pass"),
        ("rtt-loaded", "node1", "node2", "pass"),
        ("goodput", "node2", "node1", "pass"),
    ]
    assert said == []
    assert checks[0].measured == pytest.approx(BASELINE)


async def test_a_failed_attempt_is_repeated_and_stays_in_the_reason() -> None:
    rates = in_turn(iperf3(THEORY * 0.9), iperf3(THEORY))
    found = shaper(**{PING: in_turn(BARE, GOOD, LOADED, LOADED, BARE, GOOD, LOADED), IPERF3: rates})
    found.nodes["node2"].answers[IPERF3] = iperf3(THEORY)
    found.nodes["node1"].answers[PING] = in_turn(BARE, GOOD, LOADED, BARE, GOOD, LOADED)
    said: list[str] = []
    checks = await found.prove(said.append)
    assert [c.verdict for c in checks] == ["pass"] * 5
    assert checks[2].reason == f"attempt 1 measured {THEORY * 0.9 / 1e6:.2f} Mbit/s"
    assert [c.reason for c in checks if c is not checks[2]] == [None] * 4
    assert len(said) == 1
    assert said[0].startswith(
        "  attempt 1 of 3: goodput node1→node2: 86.08 Mbit/s, 95.64 Mbit/s ± 0.96 Mbit/s: FAILED"
    )


async def test_what_fails_three_times_has_failed() -> None:
    found = shaper(**{PING: in_turn(*[BARE, GOOD, LOADED] * 3), IPERF3: iperf3(THEORY * 0.9)})
    said: list[str] = []
    checks = await found.prove(said.append)
    assert [c.verdict for c in checks] == ["pass", "pass", "fail", "pass", "fail"]
    assert len(said) == 4  # two checks, in the two attempts that others followed
    assert checks[2].reason == (
        "50% of the busier node's CPU was idle; attempt 1 measured 86.08 Mbit/s; attempt 2 measured 86.08 Mbit/s"
    )


async def test_settings_that_do_not_hold_stop_the_proof() -> None:
    found = shaper(**{READBACK: "tc: not found"})
    with pytest.raises(
        NodeError, match="profile azure-a1 is not in force: node1: the node's settings could not"
    ):
        await found.prove(print)


async def test_none_is_proved_by_its_baseline_alone() -> None:
    found = shaper(load_profile("none"), **{PING: BARE})
    (check,) = await found.prove(print)
    assert (check.name, check.expected, check.verdict) == ("rtt-baseline", None, "pass")
    assert found.nodes["node1"].log[0] == shaping.clear_script("eth1")


async def test_without_a_cap_only_the_delay_is_checked() -> None:
    found = shaper(replace(A1, rate=None), **{PING: in_turn(BARE, GOOD)})
    assert [c.name for c in await found.prove(print)] == ["rtt-baseline", "rtt-idle"]


async def test_a_port_that_is_taken_is_the_users_to_free() -> None:
    taken = Completed(3, 'taken iperf3 5201 LISTEN 0 5 *:5201 users:(("nc",pid=7,fd=3))\n', "", 0.1)
    found = shaper(**{PING: in_turn(BARE, GOOD, LOADED), "systemd-run": taken})
    with pytest.raises(UserError, match=r"node2: port 5201: must be free for the server of iperf3"):
        await found.prove(print)


# -- words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "line"),
    [
        (
            ProfileCheck("goodput", "node1", "node2", 95.64e6, 95.6e6, 0.9564e6, "bit/s", "pass"),
            "goodput node1→node2: 95.60 Mbit/s, 95.64 Mbit/s ± 0.96 Mbit/s: ok",
        ),
        (
            ProfileCheck("rtt-loaded", "node1", "node2", 0.029, 0.04, 0.0, "s", "fail", "why"),
            "rtt-loaded node1→node2: 40.000 ms, at most 29.000 ms: FAILED (why)",
        ),
        (
            ProfileCheck("rtt-baseline", "node1", "node2", None, 0.0015, None, "s", "not-applicable"),
            "rtt-baseline node1→node2: 1.500 ms, –: not here",
        ),
    ],
)
def test_checks_are_told_with_their_bounds(check, line) -> None:
    assert readable(check) == line
