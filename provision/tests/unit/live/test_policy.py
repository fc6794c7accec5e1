"""lab:policy: what is tried, in which order trials run, what is stored, and what is printed of it."""

import json
from dataclasses import replace

import pytest
from lab_commands import lab, refused
from lab_fakes import Counters, failed
from lab_run import COUNTERS, IPERF3, LAB, Lab, Shaper

from overlaylab.cli.commands import policy
from overlaylab.core import paths
from overlaylab.core.errors import NodeError
from overlaylab.core.model import Variant
from overlaylab.live import policy_lab, policy_table
from overlaylab.live.policy_lab import RULES, Seen
from overlaylab.run import experiment
from overlaylab.specs import overlays
from overlaylab.specs.suite import load_suite
from overlaylab.store.store import Store

pytestmark = pytest.mark.usefixtures("machine")

VXLAN, BGP = overlays.select("calico", "vxlan,bgp")
SUITE = load_suite("policy")


class Provider(Lab):
    """Nodes with an overlay whose policy does what it is told, unless a test takes `obeys` away."""

    cpu = None

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.obeys = True
        self.left = 0
        self.nodes["node2"].answers["overlay-policy"] = self._tell
        for node in self.nodes.values():
            node.answers[COUNTERS] = Counters(unit=overlays.units_of(VXLAN)[0])
        self.client.answers |= {"/dev/tcp/": self._look, "endpoint python3 -c": self._connect}

    def _tell(self, script: str) -> str:
        words = script.split("overlay-policy ")[1].replace("'", "")
        self.told.append(words)
        return json.dumps({"policy": words, "rules": 0}) + "\n"

    def _look(self, script: str) -> str:
        assert "/dev/tcp/10.32.0.2/19767" in script
        return "" if self.told[-1] == "deny" and self.obeys else "ping\nconnection\n"

    def _connect(self, script: str) -> str:
        took = 0.003 if self.told and self.told[-1].startswith("rules") else 0.002
        return "".join(f"{json.dumps([n / 100, took])}\n" for n in range(200))

    @property
    def inventory(self):
        return self.nodes.inventory

    def describe(self) -> dict:
        return {n.name: {"underlay_address": str(n.underlay_address)} for n in self.inventory.nodes}

    async def prepare(self, variants, say) -> None:
        self.prepared = [v.overlay for v in variants]

    async def leave(self) -> None:
        self.left += 1


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Provider:
    made = Provider()
    monkeypatch.setattr(policy, "provider_for", lambda asked: made)
    monkeypatch.setattr(policy, "on_nodes", lambda provider, profile: Shaper(replace(profile, mtu=1500)))
    return made


def rows(sql: str) -> list[tuple]:
    with Store.open(paths.database()) as store:
        return [tuple(row) for row in store.db.execute(sql).fetchall()]


def test_every_block_holds_all_with_and_all_without_rules():
    trials = policy_lab.plan(SUITE, (VXLAN, BGP), 4, 100, 3, LAB)
    names = [b.name for b in SUITE.benchmarks]
    assert names == ["tcp-connect", "tcp-goodput", "tcp-latency"]
    orders = set()
    for block in (1, 2, 3, 4):
        own = [t for t in trials if t.block == block]
        assert [t.position for t in own] == list(range(12))
        counts = [t.parameters[RULES] for t in own[::3]]
        assert sorted(counts) == [0, 0, 100, 100]
        orders.add(tuple(counts))
        for first in range(0, 12, 3):
            suffix = "-100-rules" if own[first].parameters[RULES] else ""
            assert [t.benchmark for t in own[first : first + 3]] == [name + suffix for name in names]
        assert {t.variant for t in own} == {VXLAN, BGP}
    assert len(orders) > 1
    assert trials == policy_lab.plan(SUITE, (VXLAN, BGP), 4, 100, 3, LAB)


def test_a_policy_is_tried_then_its_cost_is_measured(provider):
    result = lab("policy", "calico", MODES="vxlan", BLOCKS="2", SEED="1", RULES="7")
    assert result.exit_code == 0, result.output
    assert provider.told[:4] == ["clear", "deny", "allow", "clear"]
    assert set(provider.told[4:]) == {"rules 7", "clear"}
    assert provider.told[-1] == "clear"
    assert (provider.prepared, provider.left) == (["host", "calico"], 1)
    seen = rows(
        "SELECT expected, observed, ok, trial_id FROM evidence WHERE kind = 'policy' ORDER BY evidence_id"
    )
    assert [
        (json.loads(e), json.loads(o)["connects"], json.loads(o)["pings"], ok, t) for e, o, ok, t in seen
    ] == [
        ({"policy": "clear", "passes": True}, True, True, 1, None),
        ({"policy": "deny", "passes": False}, False, False, 1, None),
        ({"policy": "allow", "passes": True}, True, True, 1, None),
        ({"policy": "clear", "passes": True}, True, True, 1, None),
    ]
    assert rows("SELECT state, suite, profile FROM run") == [("done", "policy", "none")]
    assert rows("SELECT DISTINCT status, reason FROM trial") == [("ok", None)]
    assert rows("SELECT DISTINCT overlay FROM trial") == [("calico",)]
    told = rows(
        "SELECT benchmark, json_extract(parameters, '$.policy_rules'), count(*) FROM trial GROUP BY 1, 2 ORDER BY 1"
    )
    assert told == [
        ("tcp-connect", 0, 2), ("tcp-connect-7-rules", 7, 2), ("tcp-goodput", 0, 2),
        ("tcp-goodput-7-rules", 7, 2), ("tcp-latency", 0, 2), ("tcp-latency-7-rules", 7, 2),
    ]  # fmt: skip
    line = next(text for text in result.stdout.splitlines() if "tcp-connect" in text)
    assert line.split() == [
        "calico", "vxlan", "tcp-connect", "latency_rtt", "2", "2.000", "ms", "3.000", "ms", "1.500", "(1.500)",
    ]  # fmt: skip
    assert "in brackets the least and the largest" in " ".join(result.stdout.split())


def test_a_rule_that_stops_nothing_is_an_error_and_stored(provider):
    provider.obeys = False
    wrong = refused("policy", "calico", MODES="vxlan", BLOCKS="1")
    assert (
        wrong.rule
        == "does not do what it says: `overlay-policy deny`: connection and ping from node1 to node2"
    )
    assert rows("SELECT ok, reason FROM evidence WHERE kind = 'policy' AND NOT ok") == [
        (0, "`overlay-policy deny`: connection and ping from node1 to node2")
    ]
    assert rows("SELECT state FROM run") == [("failed",)]
    # The policy goes and the nodes are left whatever happened.
    assert (provider.told[-1], provider.left) == ("clear", 1)


def test_a_policy_that_cannot_be_changed_is_told(provider):
    provider.nodes["node2"].answers["overlay-policy"] = failed(
        1, "overlay-policy: the datastore did not answer"
    )
    result = lab("policy", "calico", MODES="vxlan", BLOCKS="1")
    assert isinstance(result.exception, NodeError)
    assert str(result.exception) == (
        "node2: the policy could not be changed: overlay-policy: the datastore did not answer"
    )
    assert provider.left == 1


def measured() -> list[tuple]:
    """(benchmark, rules that its traffic had to pass, status) of the newest run's trials, in their order."""
    return rows(
        "SELECT benchmark, json_extract(parameters, '$.policy_rules'), status FROM trial ORDER BY trial_id"
    )


def in_force(provider: Provider) -> list[int]:
    """Notes at each connect what the nodes were told last: the rules that its trial passes."""
    found: list[int] = []
    connect = provider.client.answers["endpoint python3 -c"]

    def note(script: str) -> str:
        found.append(int(provider.told[-1].split()[1]) if provider.told[-1].startswith("rules") else 0)
        return connect(script)

    provider.client.answers["endpoint python3 -c"] = note
    return found


def test_on_nodes_that_stay_as_they_were_each_trial_passes_its_own_rules(provider):
    passed = in_force(provider)
    result = lab("policy", "calico", MODES="vxlan", BLOCKS="2", SEED="2", RULES="7")
    assert result.exit_code == 0, result.output
    planned = [rules for name, rules, _ in measured() if name.startswith("tcp-connect")]
    # Such as SSH hosts of one variant: a block ends behind rules, and the next begins without.
    assert passed == planned == [0, 7, 0, 7]


@pytest.mark.parametrize("killed", [False, True])
def test_a_run_that_stopped_is_carried_on_with_its_rules(provider, killed):
    iperf3 = provider.nodes.answers[IPERF3]
    provider.nodes.answers[IPERF3] = NodeError("node1: the SSH connection broke")
    passed = in_force(provider)
    wrong = refused("policy", "calico", MODES="vxlan", BLOCKS="2", SEED="1", RULES="7")
    assert wrong.rule == "stopped: node1: the SSH connection broke; tried 2 times"
    assert wrong.fix == "What is finished is stored; ./task lab:resume carries on"
    assert rows("SELECT state FROM run") == [("interrupted",)]
    assert [status for _, _, status in measured()] == ["ok", "running", *["planned"] * 10]
    assert (provider.told[-1], provider.left) == ("clear", 1)

    if killed:  # that can write nothing
        with Store.open(paths.database()) as store:
            store.db.execute("UPDATE _run SET state = 'running'")
    provider.nodes.answers[IPERF3] = iperf3
    again = len(provider.told)
    result = lab("resume")
    assert result.exit_code == 0, result.output
    assert "11 trials" in result.stderr
    assert rows("SELECT state, trials_done FROM run") == [("done", 12)]
    # The nodes may be others by now: what a rule does is seen again, before the trials that were left.
    assert provider.told[again : again + 4] == ["clear", "deny", "allow", "clear"]
    assert [status for _, _, status in measured()] == ["ok"] * 12
    # One that is stored is not taken again, and each passes the rules that it is stored with.
    assert passed == [rules for name, rules, _ in measured() if name.startswith("tcp-connect")]
    assert sorted(passed) == [0, 0, 7, 7]
    assert "7 rules" in result.stdout
    assert refused("resume").rule == "must hold an unfinished run"


def test_resuming_is_refused_where_the_role_has_changed(provider, monkeypatch):
    provider.nodes.answers[IPERF3] = NodeError("node1: gone")
    refused("policy", "calico", MODES="vxlan", BLOCKS="1")
    monkeypatch.setattr(experiment.overlays, "role_digest", lambda name: "another")
    wrong = refused("resume")
    assert wrong.rule == "can only be resumed with what it was begun with"
    assert wrong.seen == "the role of calico has changed"


def test_what_a_rule_was_seen_not_to_do_is_not_carried_on(provider):
    provider.obeys = False
    refused("policy", "calico", MODES="vxlan", BLOCKS="1")
    assert refused("resume").rule == "must hold an unfinished run"


@pytest.mark.parametrize("overlay", ["weave", "host"])
def test_an_overlay_without_a_policy_is_refused(overlay):
    wrong = refused("policy", overlay)
    assert wrong.rule == "must be one with a network policy"
    assert "calico" in wrong.fix


def test_the_default_mode_is_the_first_of_the_overlays_own(provider):
    result = lab("policy", "calico", BLOCKS="1")
    first = overlays.load("calico").default_modes[0]
    assert rows("SELECT DISTINCT mode FROM trial") == [(first,)]
    assert f"calico {first}" in result.stdout


def test_without_a_proven_trial_nothing_is_compared(provider):
    result = lab("policy", "calico", MODES="bgp", BLOCKS="1")
    # These nodes show VXLAN, which the proof around the trials of bgp refuses.
    assert rows("SELECT DISTINCT mode, status FROM trial") == [("bgp", "void")]
    assert "No benchmark has a value with and one without rules" in result.stdout


def test_what_is_tried_runs_in_the_endpoint_with_a_limit():
    script = policy_lab.look_script("172.16.0.1", 19767)
    assert "timeout -k 2 3 ip netns exec endpoint bash -c 'exec 3<>/dev/tcp/172.16.0.1/19767'" in script
    assert "timeout -k 2 10 ip netns exec endpoint ping -n -q -c 2 -i 0.2 -W 1 172.16.0.1" in script


@pytest.mark.parametrize(
    ("seen", "passes", "stopped", "words"),
    [
        (Seen(True, True), True, False, "connection and ping"),
        (Seen(False, False), False, True, "no connection and no ping"),
        (Seen(True, False), False, False, "connection and no ping"),
        (Seen(False, True), False, False, "no connection and ping"),
    ],
)
def test_half_stopped_is_neither(seen, passes, stopped, words):
    assert (seen.passes, seen.stopped, str(seen)) == (passes, stopped, words)


def test_a_ratio_is_of_the_same_block_and_has_an_interval_from_six_on():
    blocks = tuple((3.0 + n / 10, 2.0 + n / 10) for n in range(6))
    cost = policy_table.Cost(Variant("calico", "bgp"), "tcp-connect", "latency_rtt", blocks)
    assert cost.ratio == pytest.approx((3.2 / 2.2 + 3.3 / 2.3) / 2)
    low, high, holds = cost.span()
    assert (low, high, holds) == (pytest.approx(3.5 / 2.5), pytest.approx(1.5), True)
    assert policy_table.Cost(cost.variant, "x", "y", blocks[:5]).span()[2] is False


def test_the_program_of_connect_survives_systemd():
    """systemd-run expands `$` and `%` in the words that it is given."""
    from overlaylab.tools.connect import TOOL

    source = TOOL.server({"port": 1}).argv[2]
    assert "$" not in source and "%" not in source
