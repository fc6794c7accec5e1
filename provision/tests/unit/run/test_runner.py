"""A run from its plan to the database, on nodes that answer from a list: what is stored, what is void."""

import json
from dataclasses import replace

import pytest
from lab_fakes import Counters
from lab_run import (
    COUNTERS,
    FASTDP,
    HOST,
    IPERF3,
    PROBE,
    QUICK,
    SLEEVE,
    Bench,
    probe,
)

from overlaylab.core import paths
from overlaylab.specs.profile import load_profile

# -- all goes well ----------------------------------------------------------------------------------


async def test_a_whole_run(lab_store) -> None:
    bench = Bench(lab_store)
    runner = await bench.run()
    assert bench.outcomes() == [("ok", None)] * 8
    assert bench.store.run(bench.run_id).state == "done"
    assert bench.blocks == [1, 2]
    # The host once for the profile, then each cell of the plan.
    cells = [t.variant for t in bench.plan][::2]
    assert bench.lab.entered == [HOST, *cells]
    assert bench.lab.renewed == 4
    assert bench.rows("SELECT DISTINCT benchmark, metric, value FROM result WHERE t_start IS NULL") == [
        ("tcp-goodput", "goodput", 95e6),
        ("tcp-goodput", "retransmits", 0.0),
        ("tcp-goodput", "packet_rate", 2.0),
        ("tcp-latency", "latency_one_way", 0.000395),
        ("tcp-latency", "packet_rate", 2.0),
    ]
    assert runner.clock.reverts == [2.0] * 4
    assert runner.clock.trials == pytest.approx(8 * 0.5)


async def test_every_so_many_th_block_is_measured_on_nodes_that_were_booted_for_it(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST,), blocks=4)
    await bench.run(fresh_every=2)
    # The first is for the profile.
    assert bench.lab.booted == [False, False, True, False, True]
    stored = bench.rows(
        "SELECT DISTINCT t.block, json_extract(o.node_state, '$.node1.booted') FROM _trial AS t"
        " JOIN _output AS o USING (trial_id) ORDER BY t.block"
    )
    assert stored == [(1, 0), (2, 1), (3, 0), (4, 1)]


async def test_each_trial_is_stored_with_its_proof(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST, FASTDP), blocks=1)
    await bench.run()
    (trial_id,) = [
        t
        for (t,) in bench.rows(
            "SELECT min(trial_id) FROM _trial JOIN _variant USING (variant_id) WHERE mode = 'fastdp'"
        )
    ]
    assert bench.evidence(f"trial_id = {trial_id}") == [
        ("status", "before", 1, None),
        ("wire", "before", 1, None),
        ("path", "before", 1, None),
        ("mtu", "before", 1, None),
        ("mtu", "before", 1, None),
        ("status", "after", 1, None),
        ("wire", "after", 1, None),
        ("path", "after", 1, None),
        ("mtu", "after", 1, None),
        ("mtu", "after", 1, None),
        ("settings", "before", 1, None),
        ("health", "during", 1, None),
        ("health", "during", 1, None),
        ("accounting", "after", 1, None),
    ]
    sides = "SELECT node FROM _evidence WHERE trial_id = ? AND kind = ? AND phase <> 'before' ORDER BY 1"
    for kind, nodes in (("mtu", ["node1", "node2"]), ("health", ["node1", "node2"]), ("path", ["node1"])):
        assert [n for (n,) in bench.store.db.execute(sides, (trial_id, kind))] == nodes
    (row,) = bench.rows(
        "SELECT argv, exit_code, tool_version, overlay_version, overlay_mtu, underlay_mtu, duration"
        f" FROM _trial WHERE trial_id = {trial_id}"
    )
    argv = json.loads(row[0])
    assert argv[:5] == ["iperf3", "--client", "10.32.0.2", "--port", "5201"]
    assert row[1:] == (0, "tool 1.2", "2.6.5", 1376, 1500, 0.5)
    (state,) = bench.rows(f"SELECT node_state FROM _output WHERE trial_id = {trial_id}")
    states = json.loads(state[0])
    assert set(states) == {"node1", "node2"}
    # The probe's own traffic lies outside: counters are read between it and the trial, on both sides.
    assert states["node1"]["after"]["tx_bytes"] - states["node1"]["before"]["tx_bytes"] == 1_000_000


async def test_the_client_runs_in_the_endpoint_with_a_limit(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST,), blocks=1)
    await bench.run()
    (script,) = [s for s in bench.lab.client.log if IPERF3 in s]
    assert script.startswith("timeout -k 2 29 ip netns exec endpoint iperf3 --client 10.32.0.2")


async def test_servers_of_a_cell_are_started_on_the_servers_node_before_its_trials(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST,), blocks=1)
    await bench.run()
    (script,) = [s for s in bench.lab.nodes["node2"].log if "systemd-run" in s]
    assert "ip netns exec endpoint iperf3 --server --port 5201 --json" in script
    assert "ip netns exec endpoint qperf --listen_port 19765" in script
    assert not [s for s in bench.lab.client.log if "systemd-run" in s]


async def test_a_tools_version_is_asked_once_a_run(lab_store) -> None:
    bench = Bench(lab_store)
    await bench.run()
    asked = [s for s in bench.lab.client.log if s.endswith("--version")]
    assert sorted(asked) == ["iperf3 --version", "qperf --version"]


async def test_progress_names_cell_variant_and_values(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST, FASTDP), blocks=1)
    await bench.run()
    lines = [line for line in bench.said if "[" in line]
    assert sorted(line.split("] ")[1] for line in lines) == [
        "host tcp-goodput: goodput 95.00 Mbit/s, retransmits 0",
        "host tcp-latency: latency_one_way 0.395 ms",
        "weave fastdp tcp-goodput: goodput 95.00 Mbit/s, retransmits 0",
        "weave fastdp tcp-latency: latency_one_way 0.395 ms",
    ]
    assert [line.split()[0] for line in lines] == ["[1/2]", "[1/2]", "[2/2]", "[2/2]"]
    assert (paths.cache() / "durations.json").exists()


# -- void -------------------------------------------------------------------------------------------


async def test_falling_back_to_sleeve_voids_the_trials_around_it(lab_store) -> None:
    bench = Bench(lab_store, variants=(FASTDP,), blocks=1)
    seen = iter([{}, {"mode": "sleeve"}, {}])
    bench.lab.nodes.answers[PROBE] = lambda _: probe(FASTDP, **next(seen))
    await bench.run()
    reason = "node1: the data path is sleeve, not fastdp"
    assert bench.outcomes() == [("void", f"status after, {reason}"), ("void", f"status before, {reason}")]
    assert bench.rows("SELECT DISTINCT status FROM result") == [("void",)]
    assert [line for line in bench.said if line.endswith(f"void: status after, {reason}")]


async def test_a_fallback_after_the_last_trial_voids_that_one_only(lab_store) -> None:
    bench = Bench(lab_store, variants=(FASTDP,), blocks=1)
    seen = iter([{}, {}, {"healthy": False, "reason": "no connection"}])
    bench.lab.nodes.answers[PROBE] = lambda _: probe(FASTDP, **next(seen))
    await bench.run()
    assert bench.outcomes() == [("ok", None), ("void", "status after, node1: no connection")]


async def test_an_mtu_that_does_not_pass_voids_with_both_moments(lab_store) -> None:
    bench = Bench(lab_store, variants=(SLEEVE,), blocks=1, suite=QUICK)
    bench.lab.nodes.answers[PROBE] = lambda _: probe(SLEEVE, received=0)
    await bench.run()
    words = "node1: 0 of 3 pings of 1376 bytes came back: a smaller MTU passes, or none"
    # Sleeve's packets are not those that the recorded capture's filter stands for, so only the MTU fails.
    assert bench.outcomes() == [("void", f"mtu before, {words}; mtu after, {words}")] * 2


async def test_settings_that_are_not_in_force_void_the_cell(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST,), blocks=1)
    bench.shaper.problems = {"node1": [], "node2": ["eth1 has MTU 9001, not 1500"]}
    await bench.run()
    reason = "settings before, node1: node2: eth1 has MTU 9001, not 1500"
    assert bench.outcomes() == [("void", reason)] * 2


@pytest.mark.parametrize(("direction", "ok"), [("client-to-server", False), ("server-to-client", True)])
async def test_bytes_are_accounted_for_from_the_sender_to_the_receiver(lab_store, direction, ok) -> None:
    (goodput, _) = QUICK.benchmarks
    suite = replace(QUICK, benchmarks=(replace(goodput, direction=direction),))
    bench = Bench(lab_store, variants=(HOST,), blocks=1, suite=suite)
    bench.lab.nodes["node2"].answers[COUNTERS] = Counters(rx=1.05)
    await bench.run()
    reason = "the sender's qdisc counted 1000000 bytes, the receiver's NIC 1050000"
    if ok:
        assert bench.outcomes() == [("ok", None)]
    else:
        assert bench.outcomes() == [("void", f"accounting after, node1: {reason}")]


async def test_without_segmenting_bytes_are_not_accounted_for(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST,), blocks=1)
    bench.shaper.profile = load_profile("none")
    bench.lab.nodes["node2"].answers[COUNTERS] = Counters(rx=1.05)
    await bench.run()
    assert bench.outcomes() == [("ok", None)] * 2
    assert bench.rows("SELECT count(*) FROM _evidence WHERE kind = 'accounting'") == [(0,)]
    assert bench.rows("SELECT DISTINCT underlay_mtu FROM _trial") == [(9001,)]


async def test_every_trial_begins_with_a_full_bucket_unless_the_suite_keeps_it(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST,), blocks=1)
    await bench.run()
    assert bench.shaper.filled == 2  # quick has two trials a cell


# -- looks ------------------------------------------------------------------------------------------


async def test_a_run_ends_after_the_block_that_was_enough_and_keeps_the_rest_planned(lab_store) -> None:
    bench = Bench(lab_store)
    asked: list[int] = []
    runner = await bench.run(enough=lambda block: asked.append(block) or block == 1)
    assert runner.ended and asked == [1] and bench.blocks == [1]
    assert {status for _, status in bench.rows("SELECT block, status FROM trial WHERE block = 1")} == {"ok"}
    assert {status for _, status in bench.rows("SELECT block, status FROM trial WHERE block = 2")} == {
        "planned"
    }
    assert bench.store.run(bench.run_id).state == "done"


async def test_a_run_killed_after_the_block_that_was_enough_measures_no_more(lab_store) -> None:
    bench = Bench(lab_store)
    with pytest.raises(Killed):
        await bench.run(enough=killed)
    bench.lab.entered.clear()
    runner = await bench.run(enough=lambda block: block == 1)
    assert runner.ended and bench.blocks == [1] and bench.lab.entered == []
    assert bench.store.run(bench.run_id).state == "done"


async def test_a_run_killed_before_its_look_takes_what_is_left_of_the_block(lab_store) -> None:
    bench = Bench(lab_store)
    with pytest.raises(Killed):
        await bench.run(enough=killed)
    runner = await bench.run(enough=lambda block: block == 2)
    assert runner.ended and bench.blocks == [2]
    assert {status for (status,) in bench.rows("SELECT status FROM trial")} == {"ok"}


class Killed(Exception):
    pass


def killed(block: int) -> bool:
    raise Killed
