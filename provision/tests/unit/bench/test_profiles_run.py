"""Proving every profile: what is checked of each, in which order, and that what was measured stays stored."""

import io
from dataclasses import dataclass, field, replace

import pytest
from lab_builders import inventory
from lab_commands import lab
from lab_fakes import Completed, FakeNodes, failed
from rich.console import Console

from overlaylab.bench import profiles_plan, profiles_run, profiles_table
from overlaylab.bench.profiles_judge import Second, Udp
from overlaylab.bench.profiles_plan import Step
from overlaylab.bench.profiles_run import ProfileBench
from overlaylab.cli.commands import bench_profiles
from overlaylab.core import progress
from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import ProfileCheck, RunRecord, Variant
from overlaylab.results import tiers
from overlaylab.shaping import sizes
from overlaylab.specs.profile import Profile, load_profile
from overlaylab.store.store import Store

A0, A1, T2, NONE = (load_profile(name) for name in ("azure-a0", "azure-a1", "aws-t2.small", "none"))


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("OVERLAYLAB_CACHE", str(tmp_path / "cache"))


# -- carrying it out --------------------------------------------------------------------------------


@dataclass
class FakeShaper:
    """As `overlaylab.shaping.shaper.Shaper`, on no nodes at all; `log` is common to all of a test."""

    nodes: FakeNodes
    profile: Profile
    log: list[str] = field(default_factory=list)
    baseline: dict = field(default_factory=dict)

    def shaping_of(self, name: str) -> sizes.NodeShaping:
        spec = next(node for node in self.nodes.inventory.nodes if node.name == name)
        return sizes.node_shaping(self.profile, self.nodes.inventory, spec, {})

    async def prove(self, say) -> list[ProfileCheck]:
        self.log.append(f"prove {self.profile.name}")
        if self.profile.rate is None:
            return []
        rate = self.profile.rate
        return [ProfileCheck("goodput", "node1", "node2", rate, rate * 0.999, rate / 100, "bit/s", "pass")]

    async def clear(self) -> None:
        self.log.append("clear")

    async def calibrate(self) -> list[ProfileCheck]:
        self.log.append(f"calibrate {self.profile.name}")
        return []

    async def apply(self) -> dict[str, bool]:
        self.log.append(f"apply {self.profile.name}")
        return {}

    async def apply_and_read_back(self) -> dict[str, list[str]]:
        await self.apply()
        return {}

    def spare_cpu(self, idle: float) -> float:
        return idle

    async def fill_bucket(self) -> None:
        self.log.append("fill bucket")

    async def rtts(self, client: str, server: str, count: int, interval: float) -> list[float]:
        # Of a triangle of ±600 µs, or of nearly nothing.
        reach = 2 * self.profile.jitter or 1e-6
        return [
            0.002 + reach * (1 - (2 * (1 - n)) ** 0.5 if n > 0.5 else (2 * n) ** 0.5 - 1)
            for n in ((k + 0.5) / count for k in range(count))
        ]


class FakeProbe:
    """As `Probe`: a network that does what the profile says."""

    def __init__(self, nodes, shaper: FakeShaper) -> None:
        self.shaper, self.log = shaper, shaper.log
        self.lost = 0
        self.fails: list[Exception] = []

    async def start(self, names, count: int = 1) -> None:
        self.log.append(f"servers {count}")

    async def stop(self) -> None:
        self.log.append("stop")

    async def tcp(self, client, server, *, seconds, omit) -> float:
        return 5e9

    async def udp(self, client, server, *, offered, payload, seconds, streams=1) -> tuple[Udp, float]:
        self.log.append(f"udp {payload} × {streams} for {seconds} s")
        if self.fails:
            raise self.fails.pop(0)
        offered = min(offered, 200e6)
        sent = round(offered * seconds / 8 / payload)
        cap = profiles_run.cap_of(self.shaper, client)
        most = (cap.rate / 8 * seconds + cap.burst + cap.queue) / cap.frame(payload)
        received = round(min(sent, most) * (1 - self.shaper.profile.loss)) - self.lost
        return Udp(sent, received, payload, float(seconds)), 0.5

    async def series(self, client, server, *, seconds, interval, server_number=0) -> list[Second]:
        self.log.append(f"{client} to {server} at {server_number}")
        cap, tier = profiles_run.cap_of(self.shaper, client), self.shaper.profile
        share = 2 if len(self.shaper.nodes) > 2 else 1
        level, found = tier.bucket or 0.0, []
        for n in range(int(seconds / interval)):
            rate = cap.rate if not tier.sustained or level > 0 else tier.sustained
            level -= (rate - (tier.sustained or rate)) / 8 * interval
            found.append(Second(n * interval, (n + 1) * interval, cap.goodput(rate) / 8 * interval / share))
        return found


class FakeLab:
    def __init__(self, zones=("a", "a"), netem: str | Completed = "") -> None:
        self.nodes = FakeNodes(inventory(*zones), {"root netem": netem})
        self.log: list[str] = []
        self.made: list[FakeShaper] = []

    async def enter(self, step: Step) -> FakeShaper:
        self.log.append(f"enter {step.cluster}")
        self.made.append(FakeShaper(self.nodes, step.profile, self.log))
        return self.made[-1]

    def record(self, step: Step) -> RunRecord:
        return RunRecord(
            cluster=step.cluster, provider="lxc", accelerator="shared-kernel", machine="test machine", image=None,
            profile=step.profile.name, profile_digest=step.profile.digest, stands_for=None,
            suite=profiles_run.SUITE, suite_digest=profiles_run.digest(), scale=1.0, seed=0, blocks=1,
            variants=(Variant("host"),), role_digests={}, zones={"node1": "a", "node2": "a"}, nodes={},
        )  # fmt: skip

    async def leave(self) -> None:
        self.log.append("leave")

    def probe(self, nodes) -> FakeProbe:
        return FakeProbe(nodes, self.made[-1])


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "lab.sqlite") as store:
        yield store


@pytest.fixture
def no_pause(monkeypatch):
    """Pauses take no time, but the clock goes on by as much."""
    clock = [0.0]

    async def sleep(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr(profiles_run.asyncio, "sleep", sleep)
    monkeypatch.setattr(profiles_run.time, "monotonic", lambda: clock[0])
    return clock


def checks_of(store: Store, run_id: str) -> list[tuple]:
    rows = store.db.execute("SELECT name, verdict FROM profile_check WHERE run_id = ?", (run_id,))
    return [tuple(row) for row in rows]


async def test_a_tier_on_a_pair_is_proven_then_loaded_beyond_its_rate(store) -> None:
    lab = FakeLab()
    bench = ProfileBench(store, lab, lambda line: None, lab.probe)
    await bench.run(profiles_plan.plan([A0], ["pair"], ["tier"]))
    assert lab.log == [
        "enter pair", "prove azure-a0", "servers 1",
        "fill bucket", "udp 1448 × 1 for 10 s", "fill bucket", "udp 1448 × 2 for 10 s",
        "fill bucket", "udp 64 × 1 for 3 s", "stop", "leave",
    ]  # fmt: skip
    ((_, run_id),) = bench.runs
    assert checks_of(store, run_id) == [
        ("goodput", "pass"),
        ("udp-loss 0.95", "pass"),
        ("udp-loss 1.2", "pass"),
        ("packets", "pass"),
    ]
    run = store.run(run_id)
    assert (run.state, run.trials_planned, run.record.suite) == ("done", 0, "bench:profiles")
    assert bench.trouble == []
    assert tiers.latest_unfinished(store, "pair") is None
    (proved,) = bench_profiles.read(store, bench.runs)
    assert proved.checks[2].low <= proved.checks[2].measured <= proved.checks[2].high
    assert proved.checks[0].low is None


async def test_nothing_caps_none_so_it_tells_what_is_carried(store) -> None:
    lab = FakeLab()
    bench = ProfileBench(store, lab, lambda line: None, lab.probe)
    steps = profiles_plan.plan([NONE], ["three-zones"])
    lab.nodes = FakeNodes(inventory("a", "b", "c"), {})
    await bench.run(steps)
    rows = store.db.execute("SELECT client_node, server_node, expected, measured, verdict FROM profile_check")
    assert [tuple(row) for row in rows] == [
        (f"node{a}", f"node{b}", None, 5e9, "pass")
        for a, b in ((1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2))
    ]


async def test_three_nodes_send_to_all_at_once_each_to_a_server_of_its_own(store) -> None:
    lab = FakeLab(("a", "b", "c"))
    bench = ProfileBench(store, lab, lambda line: None, lab.probe)
    await bench.run(profiles_plan.plan([A1], ["three-zones"]))
    assert lab.log == [
        "enter three-zones", "prove azure-a1", "servers 2", "fill bucket",
        "node1 to node2 at 0", "node1 to node3 at 0", "node2 to node1 at 0", "node2 to node3 at 1",
        "node3 to node1 at 1", "node3 to node2 at 1", "stop", "leave",
    ]  # fmt: skip
    assert checks_of(store, bench.runs[0][1])[1:] == [("goodput-together", "pass")] * 3


async def test_two_rates_empty_and_refill(store, no_pause) -> None:
    lab = FakeLab()
    bench = ProfileBench(store, lab, lambda line: None, lab.probe)
    step = Step("pair", T2, profiles_plan.with_bucket(T2, T2.rate), "two-rates")
    refill = T2.sustained / 8 * profiles_run.BURST_AGAIN * (T2.rate - T2.sustained) / T2.sustained

    probe = lab.probe

    def probe_that_refills(nodes):
        found = probe(nodes)
        series, left = found.series, [None, replace(lab.made[-1].profile, bucket=refill)]

        async def one(*args, **how):
            found.shaper.profile = left.pop(0) or found.shaper.profile
            return await series(*args, **how)

        found.series = one
        return found

    bench.make_probe = probe_that_refills
    await bench.run([step])
    assert bench.trouble == []
    assert checks_of(store, bench.runs[0][1]) == [
        ("burst-bytes", "pass"),
        ("sustained", "pass"),
        ("refill", "pass"),
    ]
    assert no_pause == [pytest.approx(4.0 * 847 / 125, rel=1e-3)]


async def test_a_bucket_follows_what_the_tier_carried(store, no_pause) -> None:
    lab = FakeLab()
    bench = ProfileBench(store, lab, lambda line: None, lab.probe)
    bench._carried["aws-t2.small"] = 500e6
    await bench.run([Step("pair", T2, profiles_plan.with_bucket(T2, T2.rate), "two-rates")])
    assert (
        bench.runs[0][0].profile.name
        == profiles_plan.with_bucket(T2, 503.7e6).name
        == "aws-t2.small bucket/67"
    )
    assert store.run(bench.runs[0][1]).record.profile == "aws-t2.small bucket/67"


@pytest.mark.parametrize("kind", ["loss", "jitter"])
async def test_declared_loss_and_jitter(store, kind) -> None:
    lab = FakeLab()
    bench = ProfileBench(store, lab, lambda line: None, lab.probe)
    steps = [step for step in profiles_plan.plan([A1], ["pair"]) if step.kind == kind]
    await bench.run(steps[:1])
    expected = {"loss": [("loss", "pass")], "jitter": [("jitter", "pass"), ("overtaken", "pass")]}
    assert checks_of(store, bench.runs[0][1]) == expected[kind]
    name = steps[0].profile.name
    found = {
        "loss": ["clear", f"calibrate {name}", f"apply {name}", "servers 1"],
        "jitter": [
            "clear", f"calibrate {name} steady", f"apply {name}", "servers 1", f"apply {name} steady", f"apply {name}",
        ],
    }[kind]  # fmt: skip
    assert lab.log == ["enter pair", *found, "udp 1448 × 1 for 10 s", "stop", "leave"]


async def test_nodes_whose_kernel_cannot_lose_packets_say_so(store) -> None:
    lab = FakeLab(netem=failed(2, "Error: Specified qdisc kind is unknown."))
    bench = ProfileBench(store, lab, lambda line: None, lab.probe)
    await bench.run([step for step in profiles_plan.plan([A1], ["pair"]) if step.kind == "loss"][:1])
    (row,) = store.db.execute("SELECT * FROM profile_check").fetchall()
    assert (row["name"], row["verdict"], row["measured"]) == ("loss", "not-applicable", None)
    assert row["reason"] == "not testable here: it takes netem, which the kernel of the nodes lacks"
    assert progress.estimate("bench-profiles-loss") is None  # that it took no time is nothing to go by


async def test_what_is_left_is_told_from_what_the_last_steps_took(store, no_pause) -> None:
    class Slow(FakeLab):
        async def enter(self, step: Step) -> FakeShaper:
            no_pause[0] += 300
            return await super().enter(step)

    said: list[str] = []
    lab = Slow()
    bench = ProfileBench(store, lab, said.append, lab.probe)
    tiers = [replace(A0, name=name) for name in ("one", "two", "three")]
    await bench.run(profiles_plan.plan(tiers, ["pair"], ["tier"]))
    assert [line for line in said if line.startswith("[")] == [
        "[1/3] one on pair (about 75 s, then 2 min 30 s more)",
        "[2/3] two on pair (about 5 min 00 s, then 5 min 00 s more)",
        "[3/3] three on pair (about 5 min 00 s, then 0 s more)",
    ]


async def test_a_check_that_fails_is_tried_again_and_keeps_its_history(store) -> None:
    lab = FakeLab()
    said: list[str] = []

    def losing(nodes) -> FakeProbe:
        found = lab.probe(nodes)
        found.lost = 50
        udp = found.udp

        async def once(*args, **how):
            done = await udp(*args, **how)
            found.lost = 0
            return done

        found.udp = once
        return found

    bench = ProfileBench(store, lab, said.append, losing)
    await bench.run(profiles_plan.plan([A0], ["pair"], ["tier"]))
    (proved,) = bench_profiles.read(store, bench.runs)
    check = proved.checks[1]
    assert (check.name, check.verdict, check.measured) == ("udp-loss 0.95", "pass", 0.0)
    assert check.reason == "offered 4.75 Mbit/s; attempt 1 measured 0.01255"
    assert said[1] == "  udp-loss 0.95: attempt 1 measured 0.01255, expected 0; trying again"


async def test_a_node_that_fails_ends_its_step_and_no_other(store) -> None:
    lab = FakeLab()

    def failing(nodes) -> FakeProbe:
        found = lab.probe(nodes)
        if found.shaper.profile.name == "azure-a0":
            found.fails = [NodeError("node2: gone")]
        return found

    bench = ProfileBench(store, lab, lambda line: None, failing)
    await bench.run(profiles_plan.plan([A0, replace(A0, name="next")], ["pair"], ["tier"]))
    assert bench.trouble == ["azure-a0 on pair: node2: gone"]
    (_, first), (_, second) = bench.runs
    assert [store.run(run_id).state for run_id in (first, second)] == ["failed", "done"]
    assert checks_of(store, first) == [("goodput", "pass")]
    assert lab.log.count("leave") == 2  # so that the next step enters clean nodes


async def test_ctrl_c_leaves_what_was_measured(store) -> None:
    lab = FakeLab()

    def interrupted(nodes) -> FakeProbe:
        found = lab.probe(nodes)
        found.fails = [KeyboardInterrupt()]
        return found

    bench = ProfileBench(store, lab, lambda line: None, interrupted)
    with pytest.raises(KeyboardInterrupt):
        await bench._step(profiles_plan.plan([A0], ["pair"], ["tier"])[0])
    ((_, run_id),) = bench.runs
    assert (store.run(run_id).state, checks_of(store, run_id)) == ("failed", [("goodput", "pass")])


# -- what is printed --------------------------------------------------------------------------------


async def test_the_table_and_what_did_not_pass(store) -> None:
    lab = FakeLab()
    bench = ProfileBench(store, lab, lambda line: None, lab.probe)
    await bench.run([step for step in profiles_plan.plan([T2], ["pair"]) if step.kind == "tier"])
    console = Console(width=200, record=True, file=io.StringIO())
    profiles_table.show(bench_profiles.read(store, bench.runs), console)
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert lines[1] == "profiles on pair"
    assert "aws-t2.small  9001  node1 node2  971 Mbit/s 99.9%" in lines[4]
    assert lines[4].endswith("pass, 2 not here")
    assert lines[7] == (
        "   aws-t2.small on pair: udp-loss 0.95 node1 to node2: –, asked 0: not here "
        "(not testable here: offered 200.9 of 923.4 Mbit/s, 50% of the busier node's CPU was idle)"
    )
    assert "   burst bytes within 5 %: not measured" in lines


@pytest.mark.parametrize(
    ("typed", "known", "found"),
    [(None, ["a", "b"], ["a", "b"]), ("b, a,b", ["a", "b"], ["b", "a"]), ("", ["a"], ["a"])],
)
def test_names_are_chosen_once_each(typed, known, found) -> None:
    assert bench_profiles.chosen(typed, known, "PROFILES") == found


def test_an_unknown_name_is_refused_before_anything_starts() -> None:
    done = lab("bench", "profiles", "--profiles", "azure-a9", "--dry-run")
    assert isinstance(done.exception, UserError)
    assert "PROFILES: must name files of the checkout" in str(done.exception)
    assert 'Did you mean "azure-a8"' in str(done.exception)


async def test_a_flood_of_small_datagrams_that_is_too_much_for_the_nodes_says_so(store) -> None:
    lab = FakeLab()

    def flooded(shaper, *args):
        found = lab.probe(shaper, *args)
        carry = found.udp

        async def udp(client, server, *, payload, **how):
            if payload == profiles_run.SMALL:
                raise NodeError("iperf3 from node1 to node2: did not end in time")
            return await carry(client, server, payload=payload, **how)

        found.udp = udp
        return found

    bench = ProfileBench(store, lab, lambda line: None, flooded)
    await bench.run([step for step in profiles_plan.plan([A1], ["pair"]) if step.kind == "tier"])
    (row,) = store.db.execute("SELECT * FROM profile_check WHERE name = 'packets'").fetchall()
    assert (row["verdict"], row["measured"]) == ("not-applicable", None)
    assert row["reason"] == "not testable here: iperf3 from node1 to node2: did not end in time"
    assert bench.trouble == []
