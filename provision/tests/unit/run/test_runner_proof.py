"""What is proven around a trial: both directions, the path, and daemons that live through it."""

import asyncio
import json
import re

import pytest
from lab_captures import pinged_back
from lab_fakes import DAEMON, UNIT
from lab_run import COUNTERS, FASTDP, HOST, IPERF3, PING_BACK, PROBE, QPERF, STATUS, Bench, probe, status

from overlaylab.core.errors import NodeError
from overlaylab.run import proof
from overlaylab.tools import base as tools

NEW = [500, "S", 9000]


@pytest.fixture
def bench(lab_store) -> Bench:
    """One cell: a trial of goodput, one of latency."""
    return Bench(lab_store, variants=(FASTDP,), blocks=1)


def states(bench: Bench) -> list[dict]:
    return [json.loads(text) for (text,) in bench.rows("SELECT node_state FROM _output ORDER BY trial_id")]


# -- both directions, and the path ------------------------------------------------------------------


async def test_each_end_pings_the_others_endpoint_with_df(bench) -> None:
    bench.lab.client.answers[PROBE] = lambda _: probe(FASTDP)
    seen = {"node1": "10.32.0.1", "node2": "10.32.0.2"}
    for node in bench.lab.nodes.values():
        node.answers[STATUS] = json.dumps(status(FASTDP, endpoint_address=seen[node.name]))
    await bench.run()
    assert bench.outcomes() == [("ok", None)] * 2
    assert all(" -M do -s 1348 " in s and " 10.32.0.2 &\n" in s for s in bench.lab.client.log if PROBE in s)
    back = [s for s in bench.lab.nodes["node2"].log if PING_BACK in s]
    assert len(back) == 3 and all(" -M do -s 1348 10.32.0.1 &\n" in s for s in back)


@pytest.mark.parametrize(
    ("back", "reason"),
    [
        (pinged_back(0), "0 of 3 pings of 1376 bytes came back: a smaller MTU passes, or none"),
        (
            pinged_back(3, "1 packets transmitted, 1 received"),
            "1377 bytes pass too: the MTU is larger than 1376",
        ),
    ],
)
async def test_an_mtu_that_passes_in_one_direction_only_voids(bench, back, reason) -> None:
    bench.lab.nodes["node2"].answers[PING_BACK] = back
    await bench.run()
    assert bench.outcomes() == [("void", f"mtu before, node2: {reason}; mtu after, node2: {reason}")] * 2


async def test_a_ping_that_gets_lost_is_looked_at_once_more(bench) -> None:
    answers = iter([pinged_back(2)])
    bench.lab.nodes["node2"].answers[PING_BACK] = lambda _: next(answers, pinged_back(3))
    await bench.run()
    assert bench.outcomes() == [("ok", None)] * 2
    assert len([s for s in bench.lab.nodes["node2"].log if PING_BACK in s]) == 4


@pytest.mark.parametrize("printed", ["[]", "7", "null", "not JSON"])
async def test_a_status_that_is_no_json_object_is_a_failing_node(bench, printed) -> None:
    bench.lab.client.answers[STATUS] = printed
    with pytest.raises(
        NodeError, match=f"node1: the overlay's status cannot be read: {re.escape(repr(printed))}"
    ):
        await proof.endpoints([bench.lab.client])


async def test_packets_that_nothing_is_known_to_carry_void(bench) -> None:
    bench.lab.client.answers[PROBE] = lambda _: probe(FASTDP, path="")
    await bench.run()
    reason = "node1: no route, entry, tunnel or flow to 10.32.0.2 at 192.168.77.12"
    assert bench.outcomes() == [("void", f"path before, {reason}; path after, {reason}")] * 2


async def test_the_path_is_stored_line_by_line(bench) -> None:
    bench.lab.client.answers[PROBE] = lambda _: probe(FASTDP, path="a flow\nand a policy")
    await bench.run()
    (found,) = bench.rows("SELECT DISTINCT expected, observed FROM _evidence WHERE kind = 'path'")
    assert [json.loads(text) for text in found] == [
        {"underlay": "192.168.77.12", "endpoint": "10.32.0.2"},
        {"lines": ["a flow", "and a policy"]},
    ]


async def test_the_server_pings_back_after_its_servers_listen_in_the_same_shell(bench) -> None:
    await bench.run()
    log = bench.lab.nodes["node2"].log
    started = next(n for n, script in enumerate(log) if "systemd-run" in script)
    assert PING_BACK in log[started + 1]


# -- daemons ----------------------------------------------------------------------------------------


@pytest.fixture
def slow(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials that get to their middle."""
    inner = bench.lab.client.sh

    async def sh(script: str, **options):
        if IPERF3 in script or QPERF in script:
            await asyncio.sleep(0.05)
        return await inner(script, **options)

    monkeypatch.setattr(bench.lab.client, "sh", sh)
    for tool in ("iperf3", "qperf"):
        monkeypatch.setattr(type(tools.load(tool)), "duration", lambda self, parameters: 0.02)


def sample(*processes: list) -> str:
    return json.dumps({UNIT: {"cpu_usec": 7, "processes": list(processes)} if processes else None})


async def test_a_daemons_cpu_time_and_its_sample_in_the_middle_are_kept_with_the_nodes_state(
    bench, slow
) -> None:
    bench.lab.nodes["node2"].looked = lambda script: sample(DAEMON)
    bench.lab.client.answers[COUNTERS].kept = {UNIT: {"cpu_usec": 8, "processes": [DAEMON]}}

    await bench.run()
    assert bench.outcomes() == [("ok", None)] * 2
    for state in states(bench):
        assert {node: state[node]["during"]["units"][UNIT]["cpu_usec"] for node in state} == {
            "node1": 8,
            "node2": 7,
        }
        before, after = (state["node1"][when]["units"][UNIT]["cpu_usec"] for when in ("before", "after"))
        assert after - before == 100_000
        assert "units_during" not in state["node1"]["after"]
    observed = bench.rows("SELECT observed FROM _evidence WHERE kind = 'health'")
    assert [json.loads(text)[UNIT]["cpu_seconds"] for (text,) in observed] == [0.1] * 4


async def test_a_trial_that_was_over_before_its_middle_has_no_sample_there(bench) -> None:
    bench.lab.nodes["node2"].looked = lambda script: pytest.fail("there was no time to look")
    await bench.run()
    assert bench.outcomes() == [("ok", None)] * 2
    assert ["during" in state[node] for state in states(bench) for node in state] == [False] * 4


@pytest.mark.parametrize("node", ["node1", "node2"])
async def test_a_daemon_that_was_restarted_voids_the_trial_and_not_the_next(bench, node) -> None:
    # The first reading is before the first trial, the second after it.
    bench.lab.nodes[node].answers[COUNTERS].daemons = {call: [NEW] for call in range(2, 9)}
    await bench.run()
    assert bench.outcomes() == [
        ("void", f"health during, {node}: {UNIT} was restarted during the trial"),
        ("ok", None),
    ]


async def test_a_daemon_that_dies_in_the_middle_voids_even_if_it_is_back(bench, slow) -> None:
    bench.lab.nodes["node2"].looked = lambda script: sample()
    await bench.run()
    reason = f"health during, node2: {UNIT} ended before the middle of the trial"
    assert bench.outcomes() == [("void", reason)] * 2


async def test_an_interruption_while_a_trial_ends_is_not_lost_to_the_look_at_the_server(
    bench, monkeypatch
) -> None:
    """The run is cancelled in the moment between the trial's end and the end of what looks at the server's node."""
    inner = bench.lab.client.sh
    running = asyncio.current_task()

    async def sh(script: str, **options):
        done = await inner(script, **options)
        if IPERF3 in script:
            asyncio.get_running_loop().call_soon(running.cancel)
        return done

    monkeypatch.setattr(bench.lab.client, "sh", sh)
    with pytest.raises(asyncio.CancelledError):
        await bench.run()


async def test_a_client_without_daemons_is_run_as_it_is_and_nobody_asks_for_health(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST,), blocks=1)
    await bench.run()
    assert bench.rows("SELECT count(*) FROM _evidence WHERE kind = 'health'") == [(0,)]
    assert not [script for script in bench.lab.client.log if "cgroup" in script]
