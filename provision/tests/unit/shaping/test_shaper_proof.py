"""A profile's proof: goodput against the header arithmetic, loaded RTT against queue and burst."""

from dataclasses import replace

import pytest
from lab_fakes import Completed, Counters, failed, iperf3, ping
from lab_shaper import A1, BASELINE, COUNTERS, IPERF3, PING, THEORY, network, shaper

from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import ProfileCheck
from overlaylab.shaping import scripts, theory
from overlaylab.shaping import shaper as module
from overlaylab.shaping.checks import readable
from overlaylab.specs.profile import load_profile


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(seconds: float) -> None: ...

    monkeypatch.setattr(module.asyncio, "sleep", at_once)


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
    check = await found._goodput("node1", "node2")
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
    found = shaper(**{PING: ping([rtt] * 15), COUNTERS: Counters(busy=busy)})
    check = await found._loaded("node1", "node2", 0.000966)
    assert (check.name, check.verdict, check.measured) == ("rtt-loaded", verdict, pytest.approx(rtt))
    assert check.expected == pytest.approx(0.000966 + 0.020 + 0.008)
    assert (check.reason is None) == (verdict == "pass")


async def test_what_counts_beyond_the_frame_takes_its_share_of_the_rate() -> None:
    """24 bytes for preamble, gap and checksum: 1514 of 1538."""
    found = shaper(replace(A1, overhead=24.0), **{IPERF3: iperf3(100e6 * 1448 / 1538)})
    check = await found._goodput("node1", "node2")
    assert (check.verdict, check.expected) == ("pass", pytest.approx(100e6 * 1448 / 1538))


async def test_an_iperf3_that_fails_is_the_nodes_failure() -> None:
    found = shaper(**{IPERF3: failed(1, "iperf3: unable to connect")})
    with pytest.raises(NodeError, match=r"iperf3 from node1 to node2: .*unable to connect"):
        await found._goodput("node1", "node2")


# -- the whole proof --------------------------------------------------------------------------------


def in_turn(*answers: str):
    """One answer after another; the last again and again."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


async def test_proof_of_a_pair() -> None:
    found = network(BASELINE)
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
    assert checks[3].expected == pytest.approx(0.000966 + 0.020 + 0.008)


async def test_a_failed_attempt_is_repeated_and_stays_in_the_reason() -> None:
    found = network(BASELINE)
    found.nodes["node1"].answers[IPERF3] = in_turn(iperf3(THEORY * 0.9), iperf3(THEORY))
    said: list[str] = []
    checks = await found.prove(said.append)
    assert [c.verdict for c in checks] == ["pass"] * 5
    assert checks[2].reason == "attempt 1 measured 86.08 Mbit/s"
    assert [c.reason for c in checks if c is not checks[2]] == [None] * 4
    assert len(said) == 1
    assert said[0].startswith(
        "  attempt 1 of 3: goodput node1→node2: 86.08 Mbit/s, 95.64 Mbit/s ± 0.96 Mbit/s: FAILED"
    )
    # The whole, from the baseline on.
    assert found.nodes.answers[PING].delays == pytest.approx([0.0, 0.0005] * 2)


async def test_what_fails_three_times_has_failed() -> None:
    found = network(BASELINE, **{IPERF3: iperf3(THEORY * 0.9)})
    said: list[str] = []
    checks = await found.prove(said.append)
    assert [c.verdict for c in checks] == ["pass", "pass", "fail", "pass", "fail"]
    assert len(said) == 4  # two checks, in the two attempts that others followed
    assert checks[2].reason == (
        "50% of the busier node's CPU was idle; attempt 1 measured 86.08 Mbit/s; attempt 2 measured 86.08 Mbit/s"
    )


async def test_a_queue_that_is_too_deep_fails() -> None:
    found = network(BASELINE, loaded=0.0301)
    assert [c.verdict for c in await found.prove(lambda text: None)] == [
        "pass",
        "pass",
        "pass",
        "fail",
        "pass",
    ]


async def test_none_has_nothing_to_prove_but_its_baseline_is_kept() -> None:
    found = network(BASELINE, load_profile("none"))
    (check,) = await found.prove(print)
    assert (check.name, check.expected, check.verdict) == ("rtt-baseline", None, "pass")
    assert check.measured == pytest.approx(BASELINE)
    assert found.nodes["node1"].log[0] == scripts.clear_script("eth1")
    assert not [script for script in found.nodes["node1"].log if "tc -batch" in script]


async def test_without_a_cap_only_the_delay_is_checked() -> None:
    found = network(BASELINE, replace(A1, rate=None))
    assert [c.name for c in await found.prove(print)] == ["rtt-baseline", "rtt-idle"]


async def test_a_port_that_is_taken_is_the_users_to_free() -> None:
    taken = Completed(3, 'taken iperf3 5201 LISTEN 0 5 *:5201 users:(("nc",pid=7,fd=3))\n', "", 0.1)
    found = network(BASELINE, **{"systemd-run": taken})
    with pytest.raises(UserError, match=r"node[12]: port 5201: must be free for the server of iperf3"):
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


@pytest.mark.parametrize(
    ("during", "after", "verdict"),
    [
        (0.1, 0.95, "not-applicable"),  # the transfer itself fills the machine
        (0.1, 0.3, "fail"),  # so does something else
        (0.5, 0.95, "fail"),  # there was CPU left
    ],
)
async def test_a_transfer_that_fills_the_machine_is_its_limit(during, after, verdict) -> None:
    """Nodes that call themselves a fifth idle, on a machine whose CPUs have nothing left for QEMU's own threads."""
    found = shaper(**{IPERF3: iperf3(0.9 * THEORY)})
    readings = iter([(0, 0), (during * 100, 100), (0, 0), (after * 100, 100)])
    found.machine = lambda: next(readings)  # type: ignore[assignment, return-value]
    assert (await found._goodput("node1", "node2")).verdict == verdict


async def test_a_bucket_that_is_empty_too_soon_is_no_proof_of_the_rate() -> None:
    found = shaper(replace(A1, sustained=10e6, bucket=1e6))
    check = await found._goodput("node1", "node2")
    assert (check.verdict, check.measured) == ("not-applicable", None)
    assert check.reason and check.reason.startswith("the bucket is empty before its rate can be told")
