"""Trials within one node: its second endpoint, where the tools run, what is proven, and what is void."""

import json
from dataclasses import replace

import pytest
from lab_captures import echo, pcap, pinged_back
from lab_fakes import UNIT, failed
from lab_run import COUNTERS, FASTDP, HOST, IPERF3, QUICK, Bench, status

from overlaylab.run.evidence import _CUT
from overlaylab.run.plan import overhead_key

GOODPUT, LATENCY = QUICK.benchmarks
BOTH = replace(QUICK, benchmarks=(LATENCY, replace(GOODPUT, name="tcp-goodput-local", placement="local")))
ATTACH, ADDRESSES, REACH, WITHIN = (
    "overlay-start endpoint2",
    "-4 -j address show",
    "ping -n -q -c 1 -w",
    "-Q out",
)
CLIENT, SERVER = "10.32.0.2", "10.32.0.3"


def device(address: str, mtu: int = 1376) -> str:
    return json.dumps([{"ifname": "ethwe", "mtu": mtu, "addr_info": [{"local": address}]}])


def within(*frames: bytes, back: str = "", path: str = f"{SERVER} dev ethwe", **changes) -> str:
    """What the probe within a node prints where all is well, but for `changes` in the status."""
    told = json.dumps(status(FASTDP, endpoint_device="ethwe", **changes))
    return _CUT.join([pinged_back(), back or pinged_back(), pcap(*frames), path, told])


def make(store, **how) -> Bench:
    bench = Bench(store, **({"variants": (FASTDP,), "blocks": 1, "suite": BOTH} | how))
    way = [json.dumps([{"dev": "ethwe"}]), device(CLIENT)]
    bench.lab.client.answers |= {
        ATTACH: "changed\n",
        ADDRESSES: _CUT.join([device(CLIENT), device(SERVER)]),
        REACH: _CUT.join([*way, *way, ""]),
        WITHIN: lambda _: within(),
    }
    bench.lab.nodes["node2"].answers |= {ATTACH: "changed\n"}
    bench.lab.nodes.answers |= {
        "overlay-status": lambda _: json.dumps(status(bench.lab.current, endpoint_device="ethwe"))
    }
    return bench


@pytest.fixture
def bench(lab_store) -> Bench:
    """One cell: a trial of latency between two nodes, one of goodput within the first."""
    return make(lab_store)


async def test_a_trial_within_a_node_is_stored_as_such(bench) -> None:
    await bench.run()
    assert bench.outcomes() == [("ok", None)] * 2
    assert bench.rows(
        "SELECT DISTINCT benchmark, placement, client_node, server_node, overlay_mtu FROM result ORDER BY 1"
    ) == [
        ("tcp-goodput-local", "local", "node1", "node1", 1376),
        ("tcp-latency", "remote", "node1", "node2", 1376),
    ]


async def test_its_client_and_its_server_run_in_an_endpoint_each(bench) -> None:
    await bench.run()
    scripts = bench.lab.client.log
    (server,) = [script for script in scripts if "systemd-run" in script]
    assert "ip netns exec endpoint2 iperf3 --server" in server
    (client,) = [script for script in scripts if IPERF3 in script]
    assert f"ip netns exec endpoint iperf3 --client {SERVER} " in client
    assert not [s for s in bench.lab.nodes["node2"].log if "iperf3" in s]


async def test_the_second_endpoint_is_there_before_the_profile_comes_and_on_that_node_only(bench) -> None:
    seen = []

    async def apply() -> dict[str, list[str]]:
        seen.append(any(ATTACH in script for script in bench.lab.client.log))
        return bench.shaper.problems

    bench.shaper.apply_and_read_back = apply
    await bench.run()
    assert seen == [True]
    assert not [script for script in bench.lab.nodes["node2"].log if ATTACH in script]


async def test_nobody_makes_one_for_trials_between_nodes(lab_store) -> None:
    bench = make(lab_store, suite=QUICK)
    await bench.run()
    assert not [script for script in bench.lab.client.log if ATTACH in script]


async def test_its_proof_is_of_the_one_node_and_counts_no_bytes(bench) -> None:
    await bench.run()
    rows = bench.rows(
        "SELECT e.node, e.kind, e.phase, e.ok FROM _evidence AS e JOIN _trial AS t USING (trial_id)"
        " WHERE t.placement = 'local' ORDER BY evidence_id"
    )
    kinds = ("status", "wire", "path", "mtu", "mtu")
    assert rows == [
        *(("node1", kind, phase, 1) for phase in ("before", "after") for kind in kinds),
        ("node1", "settings", "before", 1),
        ("node1", "health", "during", 1),
    ]


async def test_the_nodes_state_is_kept_once(bench) -> None:
    await bench.run()
    ((state,),) = bench.rows(
        "SELECT node_state FROM _output JOIN _trial USING (trial_id) WHERE placement = 'local'"
    )
    assert list(json.loads(state)) == ["node1"]


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (
            within(*[echo()] * 3),
            "wire {}, node1: 3 packets with the pings' marker left by the underlay: the node's two endpoints do not"
            " reach each other within it",
        ),
        (
            within(back=pinged_back(0)),
            "mtu {}, node1: 0 of 3 pings of 1376 bytes came back: a smaller MTU passes, or none",
        ),
        (within(path=""), f"path {{}}, node1: no route leads from {CLIENT} to {SERVER}"),
        (within(healthy=False, reason="no peers"), "status {}, node1: no peers"),
    ],
)
async def test_what_refutes_it_voids_it_and_not_the_other(bench, seen, reason) -> None:
    bench.lab.client.answers[WITHIN] = lambda _: seen
    await bench.run()
    said = "; ".join(reason.format(phase) for phase in ("before", "after"))
    assert bench.outcomes() == [("ok", None), ("void", said)]


async def test_a_daemon_that_was_restarted_meanwhile_voids_it(bench) -> None:
    counters = bench.lab.client.answers[COUNTERS]
    # Two readings for the only trial between nodes; then one before, one after.
    counters.daemons = {call: [[500, "S", 9000]] for call in range(4, 12)}
    await bench.run()
    assert bench.outcomes() == [
        ("ok", None),
        ("void", f"health during, node1: {UNIT} was restarted during the trial"),
    ]


async def test_the_hosts_own_network_claims_no_mtu_here_either(lab_store) -> None:
    bench = make(lab_store, variants=(HOST,))
    bench.lab.client.answers[WITHIN] = lambda _: within(
        mode=None, overlay_mtu=None, path=f"local {CLIENT} dev lo"
    )
    await bench.run()
    assert bench.outcomes() == [("ok", None)] * 2
    assert bench.rows("SELECT DISTINCT placement, overlay_mtu FROM result ORDER BY 1") == [
        ("local", None),
        ("remote", None),
    ]


async def test_a_node_without_room_for_a_second_endpoint_fails_these_trials_and_no_others(bench) -> None:
    bench.lab.client.answers[ATTACH] = failed(1, "overlay-start: no virtual function of eth1 is free\n")
    await bench.run()
    reason = "node1 gets no second endpoint: overlay-start: no virtual function of eth1 is free"
    assert bench.outcomes() == [("ok", None), ("failed", reason)]
    assert bench.store.run(bench.run_id).state == "done"
    assert any(line.endswith(f"weave fastdp tcp-goodput-local: failed: {reason}") for line in bench.said)
    assert not [script for script in bench.lab.client.log if ADDRESSES in script]


async def test_progress_names_the_node_and_the_cell_is_remembered_with_it(bench, monkeypatch) -> None:
    known = []
    monkeypatch.setattr("overlaylab.run.runner.remember", lambda key, seconds: known.append(key))
    await bench.run()
    assert any("tcp-goodput-local, within node1: goodput 95.00 Mbit/s" in line for line in bench.said)
    assert known == [overhead_key(FASTDP, "tcg", 2)]
