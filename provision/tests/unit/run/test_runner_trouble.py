"""A run in which clients fail, nodes die, and profiles do not hold: nothing is lost, nothing counts twice."""

from dataclasses import replace

import pytest
from lab_fakes import Completed, failed, qperf
from lab_run import FAILED, FASTDP, HOST, IPERF3, PASSED, PROBE, QPERF, STATUS, Bench, probe

from overlaylab.core.errors import NodeError, UserError
from overlaylab.run.runner import RunStopped

# -- failed -----------------------------------------------------------------------------------------


async def test_output_that_is_no_measurement_is_a_failed_row_and_the_run_goes_on(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST,), blocks=1)
    bench.lab.nodes.answers[IPERF3] = failed(1, "iperf3: error - unable to connect to server")
    await bench.run()
    assert bench.outcomes() == [
        ("failed", "iperf3 failed with exit code 1: iperf3: error - unable to connect to server"),
        ("ok", None),
    ]
    assert bench.rows("SELECT metric, status FROM result WHERE benchmark = 'tcp-goodput'") == [
        (None, "failed")
    ]
    assert bench.rows("SELECT stderr FROM _output ORDER BY trial_id LIMIT 1") == [
        ("iperf3: error - unable to connect to server",)
    ]
    assert bench.store.run(bench.run_id).state == "done"


async def test_a_client_that_is_cut_off_has_failed(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST,), blocks=1)
    bench.lab.nodes.answers[QPERF] = Completed(None, "", "no answer within 53 s", 53.0)
    await bench.run()
    assert bench.outcomes()[1] == ("failed", "qperf did not end in time and was stopped")


async def test_a_failed_trial_stays_failed_where_its_proof_fails_too(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST,), blocks=1)
    bench.lab.nodes.answers[IPERF3] = failed(124)
    bench.shaper.problems = {"node1": ["eth1 has MTU 9001, not 1500"]}
    await bench.run()
    assert [status for status, _ in bench.outcomes()] == ["failed", "void"]


# -- the profile ------------------------------------------------------------------------------------


async def test_a_profile_that_fails_its_check_stops_the_run_before_any_trial(lab_store) -> None:
    bench = Bench(lab_store)
    bench.shaper.checks = [PASSED, FAILED]
    with pytest.raises(
        RunStopped, match=r"profile azure-a1 failed its check \(goodput\), so nothing was measured"
    ):
        await bench.run()
    assert bench.outcomes() == [("planned", None)] * 8
    assert bench.rows("SELECT name, verdict, reason FROM _profile_check") == [
        ("goodput", "pass", None),
        ("goodput", "fail", "busy"),
    ]
    assert bench.lab.entered == [HOST]


async def test_what_the_accelerator_cannot_carry_is_no_failure(lab_store) -> None:
    bench = Bench(lab_store, blocks=1)
    bench.shaper.checks = [replace(FAILED, verdict="not-applicable")]
    await bench.run()
    assert bench.outcomes() == [("ok", None)] * 4


# -- nodes that die ---------------------------------------------------------------------------------


def sometimes(answer, *errors_at: int):
    """The answer, but an error at these calls, counted from 1."""
    calls = [0]

    def give(script: str):
        calls[0] += 1
        if calls[0] in errors_at:
            return NodeError("node1: the SSH connection broke")
        return answer

    return give


async def test_a_node_that_dies_in_a_trial_is_entered_again_and_nothing_counts_twice(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST, FASTDP), blocks=1)
    bench.lab.nodes.answers[QPERF] = sometimes(qperf(), 1)  # the second trial of the first cell
    await bench.run()
    assert bench.outcomes() == [("ok", None)] * 4
    first, second = dict.fromkeys(t.variant for t in bench.plan)
    assert bench.lab.entered == [HOST, first, first, second]
    assert len([s for s in bench.lab.client.log if IPERF3 in s]) == 2
    assert len([s for s in bench.lab.client.log if QPERF in s]) == 3
    assert bench.lab.nodes.dropped == 1
    assert "  node1: the SSH connection broke; entering the variant again" in bench.said
    assert bench.rows("SELECT trial_id, count(*) FROM _output GROUP BY 1") == [(n, 1) for n in (1, 2, 3, 4)]


async def test_a_node_that_dies_in_the_probe_after_a_trial_takes_that_trial_again(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST,), blocks=1)
    bench.lab.nodes.answers[PROBE] = sometimes(probe(HOST), 2)
    await bench.run()
    assert bench.outcomes() == [("ok", None)] * 2
    assert len([s for s in bench.lab.client.log if IPERF3 in s]) == 2


async def test_a_probe_that_stops_early_is_a_failing_node(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST,), blocks=1)
    bench.lab.nodes.answers[PROBE] = failed(127, "sh: tcpdump: not found")
    with pytest.raises(
        RunStopped, match=r"node1: the probe stopped early: ''; sh: tcpdump: not found; tried 2 times"
    ):
        await bench.run()
    assert bench.outcomes() == [("planned", None)] * 2


async def test_a_node_that_stays_away_stops_the_run_and_resuming_completes_it(lab_store) -> None:
    bench = Bench(lab_store)
    bench.lab.nodes.answers[QPERF] = sometimes(qperf(), 2, 3)  # the second cell, twice
    with pytest.raises(RunStopped, match="node1: the SSH connection broke; tried 2 times"):
        await bench.run()
    assert [status for status, _ in bench.outcomes()] == ["ok"] * 3 + ["running"] + ["planned"] * 4
    assert bench.blocks == []
    lab_store.set_run_state(bench.run_id, "interrupted")
    kept = bench.rows("SELECT trial_id, started_at, stdout FROM _trial JOIN _output USING (trial_id)")

    await bench.run()
    assert bench.outcomes() == [("ok", None)] * 8
    assert bench.blocks == [1, 2]
    assert (
        bench.rows("SELECT trial_id, started_at, stdout FROM _trial JOIN _output USING (trial_id)")[:3]
        == kept
    )
    assert bench.rows("SELECT count(*) FROM _profile_check") == [(2,)]  # proved again
    assert lab_store.run(bench.run_id).state == "done"
    assert len([s for s in bench.lab.client.log if IPERF3 in s]) == 4


async def test_a_run_with_nothing_left_touches_no_node(lab_store) -> None:
    bench = Bench(lab_store, blocks=1)
    await bench.run()
    entered = list(bench.lab.entered)
    await bench.run()
    assert bench.lab.entered == entered
    assert lab_store.run(bench.run_id).state == "done"


async def test_a_port_that_is_taken_is_not_tried_again(lab_store) -> None:
    bench = Bench(lab_store, blocks=1)
    bench.lab.nodes.answers["systemctl stop"] = failed(3, stdout="taken iperf3 5201 LISTEN nc")
    with pytest.raises(UserError, match="node2: port 5201: must be free"):
        await bench.run()
    assert len(bench.lab.entered) == 2


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            '{"healthy": false, "reason": "weaver does not answer", "endpoint_address": null}',
            r"node2: the endpoint has no address \(weaver does not answer\); tried 2 times",
        ),
        ("curl: (7)", r"node2: the overlay's status cannot be read: 'curl: \(7\)'; tried 2 times"),
    ],
)
async def test_an_overlay_without_an_endpoint_is_entered_again_and_then_stops_the_run(
    lab_store, said, words
) -> None:
    bench = Bench(lab_store, variants=(FASTDP,), blocks=1)
    bench.lab.nodes["node2"].answers[STATUS] = said
    with pytest.raises(RunStopped, match=words):
        await bench.run()
    assert bench.lab.entered == [HOST, FASTDP, FASTDP]
