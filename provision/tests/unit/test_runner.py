"""A run from its plan to the database, on nodes that answer from a list."""

import json

import pytest
from lab_builders import inventory
from lab_fakes import Completed, Counters, FakeNodes, failed, iperf3, qperf

from overlaylab import overlays, paths
from overlaylab.errors import NodeError, UserError
from overlaylab.model import ProfileCheck, RunRecord, Variant
from overlaylab.plan import plan_trials
from overlaylab.profile import load_profile
from overlaylab.providers import Entered
from overlaylab.runner import Runner, RunStopped
from overlaylab.store import Store
from overlaylab.suite import load_suite

A1 = load_profile("azure-a1")
HOST, FASTDP, SLEEVE = Variant("host"), *overlays.select("weave", "fastdp,sleeve")
QUICK = load_suite("quick")
LAB = inventory("a", "a")
PROBE, STATUS, COUNTERS = "tcpdump -i", "overlay-status", "</proc/stat"
IPERF3, QPERF = "endpoint iperf3 --client", "endpoint qperf --listen_port 19765 --ip_port"
PASSED = ProfileCheck("goodput", "node1", "node2", 95.6e6, 95.6e6, 0.956e6, "bit/s", "pass")
FAILED = ProfileCheck("goodput", "node1", "node2", 95.6e6, 80e6, 0.956e6, "bit/s", "fail", "busy")


def status(variant: Variant, **changes) -> dict:
    """What the overlay says of itself where all is well, but for `changes`."""
    right = {
        "mode": variant.mode,
        "encrypted": variant.encrypted,
        "healthy": True,
        "reason": None,
        "version": "2.6.5",
        "endpoint_address": "10.32.0.2",
        "overlay_mtu": None if variant == HOST else 1376,
    }
    return right | changes


def probe(variant: Variant, *, received: int = 3, **changes) -> str:
    """What a probe prints where all is well, but for `changes` in the status."""
    from test_evidence import echo, printed, udp

    frame = echo() if variant == HOST else udp(bytes(50) + echo())
    return printed(*[frame] * 6, received=received, status=json.dumps(status(variant, **changes)))


class Lab:
    """A provider of two nodes on which everything goes right, until a test says otherwise."""

    name, accelerator, image, cluster, snapshots = "fake", "tcg", "image", "pair", True

    def __init__(self) -> None:
        self.current = HOST
        self.entered: list[Variant] = []
        self.renewed = 0
        self.nodes = FakeNodes(
            LAB,
            {
                PROBE: lambda _: probe(self.current),
                STATUS: lambda _: json.dumps(status(self.current)),
                COUNTERS: Counters(),
                IPERF3: lambda _: iperf3(95e6),
                QPERF: lambda _: qperf(395_000),
                "--version": "tool 1.2\n",
                "cat /sys/class/net/eth1/mtu": "9001\n",
                "systemctl stop": "",
            },
        )
        for node in self.nodes.values():
            node.answers[COUNTERS] = Counters()

    @property
    def client(self):
        return self.nodes["node1"]

    async def enter(self, variant: Variant) -> Entered:
        self.entered.append(variant)
        self.current = variant
        await self.nodes.connect()
        return Entered(revert=2.0, converge=0.0)

    async def renew(self) -> None:
        self.renewed += 1


class Shaper:
    """A profile that is always in force, until a test says otherwise."""

    def __init__(self, profile=A1) -> None:
        self.profile = profile
        self.checks = [PASSED]
        self.problems: dict[str, list[str]] = {"node1": [], "node2": []}

    async def prove(self, say) -> list[ProfileCheck]:
        return self.checks

    async def apply_and_read_back(self) -> dict[str, list[str]]:
        return self.problems


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERLAYLAB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "lab.sqlite") as opened:
        yield opened


class Bench:
    """A stored plan and what carries it out."""

    def __init__(self, store: Store, *, variants=(HOST, FASTDP), blocks: int = 2, suite=QUICK) -> None:
        record = RunRecord(
            cluster="pair", provider="fake", accelerator="tcg", machine="2 cores", image="image",
            profile=A1.name, profile_digest=A1.digest, stands_for=A1.stands_for, suite=suite.name,
            suite_digest=suite.digest, scale=1.0, seed=7, blocks=blocks, variants=variants, role_digests={},
            zones={"node1": "a", "node2": "a"}, nodes={},
        )  # fmt: skip
        self.plan = plan_trials(suite, variants, blocks, 7, LAB)
        self.store, self.lab, self.shaper = store, Lab(), Shaper()
        self.run_id = store.begin_run(record, self.plan)
        self.said: list[str] = []
        self.blocks: list[int] = []

    async def run(self) -> Runner:
        runner = Runner(
            self.store, self.run_id, self.lab, self.shaper, self.said.append, self.blocks.append
        )  # type: ignore[arg-type]
        await runner.run()
        return runner

    def rows(self, sql: str) -> list[tuple]:
        return [tuple(row) for row in self.store.db.execute(sql).fetchall()]

    def outcomes(self) -> list[tuple]:
        return self.rows("SELECT status, reason FROM _trial ORDER BY trial_id")

    def evidence(self, where: str = "1") -> list[tuple]:
        return self.rows(f"SELECT kind, phase, ok, reason FROM _evidence WHERE {where} ORDER BY evidence_id")


# -- all goes well ----------------------------------------------------------------------------------


async def test_a_whole_run(store) -> None:
    bench = Bench(store)
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
        ("tcp-latency", "latency_one_way", 0.000395),
    ]
    assert runner.clock.reverts == [2.0] * 4
    assert runner.clock.trials == pytest.approx(8 * 0.5)


async def test_each_trial_is_stored_with_its_proof(store) -> None:
    bench = Bench(store, variants=(HOST, FASTDP), blocks=1)
    await bench.run()
    (trial_id,) = [t for (t,) in bench.rows("SELECT min(trial_id) FROM _trial JOIN _variant USING (variant_id) WHERE mode = 'fastdp'")]
    assert bench.evidence(f"trial_id = {trial_id}") == [
        ("status", "before", 1, None),
        ("wire", "before", 1, None),
        ("mtu", "before", 1, None),
        ("status", "after", 1, None),
        ("wire", "after", 1, None),
        ("mtu", "after", 1, None),
        ("settings", "before", 1, None),
        ("accounting", "after", 1, None),
    ]
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


async def test_the_client_runs_in_the_endpoint_with_a_limit(store) -> None:
    bench = Bench(store, variants=(HOST,), blocks=1)
    await bench.run()
    (script,) = [s for s in bench.lab.client.log if IPERF3 in s]
    assert script.startswith("timeout -k 2 29 ip netns exec endpoint iperf3 --client 10.32.0.2")


async def test_servers_of_a_cell_are_started_on_the_servers_node_before_its_trials(store) -> None:
    bench = Bench(store, variants=(HOST,), blocks=1)
    await bench.run()
    (script,) = [s for s in bench.lab.nodes["node2"].log if "systemd-run" in s]
    assert "ip netns exec endpoint iperf3 --server --port 5201 --json" in script
    assert "ip netns exec endpoint qperf --listen_port 19765" in script
    assert not [s for s in bench.lab.client.log if "systemd-run" in s]


async def test_a_tools_version_is_asked_once_a_run(store) -> None:
    bench = Bench(store)
    await bench.run()
    asked = [s for s in bench.lab.client.log if s.endswith("--version")]
    assert sorted(asked) == ["iperf3 --version", "qperf --version"]


async def test_progress_names_cell_variant_and_values(store) -> None:
    bench = Bench(store, variants=(HOST, FASTDP), blocks=1)
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


async def test_falling_back_to_sleeve_voids_the_trials_around_it(store) -> None:
    bench = Bench(store, variants=(FASTDP,), blocks=1)
    seen = iter([{}, {"mode": "sleeve"}, {}])
    bench.lab.nodes.answers[PROBE] = lambda _: probe(FASTDP, **next(seen))
    await bench.run()
    reason = "node1: the data path is sleeve, not fastdp"
    assert bench.outcomes() == [("void", f"status after, {reason}"), ("void", f"status before, {reason}")]
    assert bench.rows("SELECT DISTINCT status FROM result") == [("void",)]
    assert [line for line in bench.said if line.endswith(f"void: status after, {reason}")]


async def test_a_fallback_after_the_last_trial_voids_that_one_only(store) -> None:
    bench = Bench(store, variants=(FASTDP,), blocks=1)
    seen = iter([{}, {}, {"healthy": False, "reason": "no connection"}])
    bench.lab.nodes.answers[PROBE] = lambda _: probe(FASTDP, **next(seen))
    await bench.run()
    assert bench.outcomes() == [("ok", None), ("void", "status after, node1: no connection")]


async def test_an_mtu_that_does_not_pass_voids_with_both_moments(store) -> None:
    bench = Bench(store, variants=(SLEEVE,), blocks=1, suite=QUICK)
    bench.lab.nodes.answers[PROBE] = lambda _: probe(SLEEVE, received=0)
    await bench.run()
    words = "node1: 0 of 3 pings of 1376 bytes came back: a smaller MTU passes, or none"
    # Sleeve's packets are not those that the recorded capture's filter stands for, so only the MTU fails.
    assert bench.outcomes() == [("void", f"mtu before, {words}; mtu after, {words}")] * 2


async def test_settings_that_are_not_in_force_void_the_cell(store) -> None:
    bench = Bench(store, variants=(HOST,), blocks=1)
    bench.shaper.problems = {"node1": [], "node2": ["eth1 has MTU 9001, not 1500"]}
    await bench.run()
    reason = "settings before, node1: node2: eth1 has MTU 9001, not 1500"
    assert bench.outcomes() == [("void", reason)] * 2


@pytest.mark.parametrize(("direction", "ok"), [("client-to-server", False), ("server-to-client", True)])
async def test_bytes_are_accounted_for_from_the_sender_to_the_receiver(store, direction, ok) -> None:
    from dataclasses import replace

    (goodput, _) = QUICK.benchmarks
    suite = replace(QUICK, benchmarks=(replace(goodput, direction=direction),))
    bench = Bench(store, variants=(HOST,), blocks=1, suite=suite)
    bench.lab.nodes["node2"].answers[COUNTERS] = Counters(rx=1.05)
    await bench.run()
    reason = "the sender's qdisc counted 1000000 bytes, the receiver's NIC 1050000"
    if ok:
        assert bench.outcomes() == [("ok", None)]
    else:
        assert bench.outcomes() == [("void", f"accounting after, node1: {reason}")]


async def test_without_segmenting_bytes_are_not_accounted_for(store) -> None:
    bench = Bench(store, variants=(HOST,), blocks=1)
    bench.shaper.profile = load_profile("none")
    bench.lab.nodes["node2"].answers[COUNTERS] = Counters(rx=1.05)
    await bench.run()
    assert bench.outcomes() == [("ok", None)] * 2
    assert bench.rows("SELECT count(*) FROM _evidence WHERE kind = 'accounting'") == [(0,)]
    assert bench.rows("SELECT DISTINCT underlay_mtu FROM _trial") == [(9001,)]


# -- failed -----------------------------------------------------------------------------------------


async def test_output_that_is_no_measurement_is_a_failed_row_and_the_run_goes_on(store) -> None:
    bench = Bench(store, variants=(HOST,), blocks=1)
    bench.lab.nodes.answers[IPERF3] = failed(1, "iperf3: error - unable to connect to server")
    await bench.run()
    assert bench.outcomes() == [
        ("failed", "iperf3 failed with exit code 1: iperf3: error - unable to connect to server"),
        ("ok", None),
    ]
    assert bench.rows("SELECT metric, status FROM result WHERE benchmark = 'tcp-goodput'") == [(None, "failed")]
    assert bench.rows("SELECT stderr FROM _output ORDER BY trial_id LIMIT 1") == [
        ("iperf3: error - unable to connect to server",)
    ]
    assert bench.store.run(bench.run_id).state == "done"


async def test_a_client_that_is_cut_off_has_failed(store) -> None:
    bench = Bench(store, variants=(HOST,), blocks=1)
    bench.lab.nodes.answers[QPERF] = Completed(None, "", "no answer within 53 s", 53.0)
    await bench.run()
    assert bench.outcomes()[1] == ("failed", "qperf did not end in time and was stopped")


async def test_a_failed_trial_stays_failed_where_its_proof_fails_too(store) -> None:
    bench = Bench(store, variants=(HOST,), blocks=1)
    bench.lab.nodes.answers[IPERF3] = failed(124)
    bench.shaper.problems = {"node1": ["eth1 has MTU 9001, not 1500"]}
    await bench.run()
    assert [status for status, _ in bench.outcomes()] == ["failed", "void"]


# -- the profile ------------------------------------------------------------------------------------


async def test_a_profile_that_fails_its_check_stops_the_run_before_any_trial(store) -> None:
    bench = Bench(store)
    bench.shaper.checks = [PASSED, FAILED]
    with pytest.raises(RunStopped, match=r"profile azure-a1 failed its check \(goodput\), so nothing was measured"):
        await bench.run()
    assert bench.outcomes() == [("planned", None)] * 8
    assert bench.rows("SELECT name, verdict, reason FROM _profile_check") == [
        ("goodput", "pass", None),
        ("goodput", "fail", "busy"),
    ]
    assert bench.lab.entered == [HOST]


async def test_what_the_accelerator_cannot_carry_is_no_failure(store) -> None:
    from dataclasses import replace

    bench = Bench(store, blocks=1)
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


async def test_a_node_that_dies_in_a_trial_is_entered_again_and_nothing_counts_twice(store) -> None:
    bench = Bench(store, variants=(HOST, FASTDP), blocks=1)
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


async def test_a_node_that_dies_in_the_probe_after_a_trial_takes_that_trial_again(store) -> None:
    bench = Bench(store, variants=(HOST,), blocks=1)
    bench.lab.nodes.answers[PROBE] = sometimes(probe(HOST), 2)
    await bench.run()
    assert bench.outcomes() == [("ok", None)] * 2
    assert len([s for s in bench.lab.client.log if IPERF3 in s]) == 2


async def test_a_probe_that_stops_early_is_a_failing_node(store) -> None:
    bench = Bench(store, variants=(HOST,), blocks=1)
    bench.lab.nodes.answers[PROBE] = failed(127, "sh: tcpdump: not found")
    with pytest.raises(RunStopped, match=r"node1: the probe stopped early: ''; sh: tcpdump: not found; tried 2 times"):
        await bench.run()
    assert bench.outcomes() == [("planned", None)] * 2


async def test_a_node_that_stays_away_stops_the_run_and_resuming_completes_it(store) -> None:
    bench = Bench(store)
    bench.lab.nodes.answers[QPERF] = sometimes(qperf(), 2, 3)  # the second cell, twice
    with pytest.raises(RunStopped, match="node1: the SSH connection broke; tried 2 times"):
        await bench.run()
    assert [status for status, _ in bench.outcomes()] == ["ok"] * 3 + ["running"] + ["planned"] * 4
    assert bench.blocks == []
    store.set_run_state(bench.run_id, "interrupted")
    kept = bench.rows("SELECT trial_id, started_at, stdout FROM _trial JOIN _output USING (trial_id)")

    await bench.run()
    assert bench.outcomes() == [("ok", None)] * 8
    assert bench.blocks == [1, 2]
    assert bench.rows("SELECT trial_id, started_at, stdout FROM _trial JOIN _output USING (trial_id)")[:3] == kept
    assert bench.rows("SELECT count(*) FROM _profile_check") == [(2,)]  # proved again
    assert store.run(bench.run_id).state == "done"
    assert len([s for s in bench.lab.client.log if IPERF3 in s]) == 4


async def test_a_run_with_nothing_left_touches_no_node(store) -> None:
    bench = Bench(store, blocks=1)
    await bench.run()
    entered = list(bench.lab.entered)
    await bench.run()
    assert bench.lab.entered == entered
    assert store.run(bench.run_id).state == "done"


async def test_a_port_that_is_taken_is_not_tried_again(store) -> None:
    bench = Bench(store, blocks=1)
    bench.lab.nodes.answers["systemctl stop"] = failed(3, stdout="taken iperf3 5201 LISTEN nc")
    with pytest.raises(UserError, match="node2: port 5201: must be free"):
        await bench.run()
    assert len(bench.lab.entered) == 2
