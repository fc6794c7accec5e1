"""What an overlay's network policy does on real nodes, and what its rules cost: the run behind ``lab:policy``.

The role of such an overlay installs `COMMAND` (docs/adding-an-overlay.md). That a rule stops or passes traffic is
seen by trying, and stored as evidence; what rules cost is measured by ordinary trials of one run, half of them
under no policy and half after N rules that match nothing.
"""

from __future__ import annotations

import random
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import Evidence, PlannedTrial, Variant
from overlaylab.nodes import servers
from overlaylab.nodes.ssh import Node
from overlaylab.providers import Provider, Say
from overlaylab.run import proof
from overlaylab.run.hooks import Hooks
from overlaylab.run.plan import endpoints, planned_trial
from overlaylab.run.proof import Ends
from overlaylab.specs import overlays
from overlaylab.specs.inventory import Inventory
from overlaylab.specs.suite import Suite
from overlaylab.store.database_errors import explained
from overlaylab.store.store import Store
from overlaylab.tools import base as tools

COMMAND = "/opt/overlaylab/overlay/overlay-policy"
SUITE = "policy"
# Among a trial's parameters: how many rules its traffic had to pass; 0 under no policy.
RULES = "policy_rules"
# Whose server is tried to be reached.
TOOL = "connect"

# (what overlay-policy is told, whether traffic then has to pass), in turn: an allow that follows a deny is one
# that was needed.
STEPS = (("clear", True), ("deny", False), ("allow", True), ("clear", True))


class Disobeyed(UserError):
    """A rule that does not stop, or does not pass, what it says: that is what the run found."""


@dataclass(frozen=True)
class Seen:
    """Whether a new connection to the peer's endpoint was set up, and a ping answered."""

    connects: bool
    pings: bool

    @property
    def passes(self) -> bool:
        return self.connects and self.pings

    @property
    def stopped(self) -> bool:
        return not (self.connects or self.pings)

    def __str__(self) -> str:
        words = ("no connection", "connection"), ("no ping", "ping")
        return " and ".join(pair[yes] for pair, yes in zip(words, (self.connects, self.pings), strict=True))


def with_policy(names: Sequence[str]) -> tuple[str, ...]:
    """Those of the overlays whose role declares a policy."""
    return tuple(name for name in names if overlays.load(name).enforces_policy)


def check(name: str) -> None:
    """UserError where the overlay has no network policy of its own."""
    if not overlays.load(name).enforces_policy:
        known = ", ".join(with_policy(overlays.names()))
        raise UserError(
            "OVERLAY", "must be one with a network policy", seen=name, fix=f"Choose one of {known}."
        )


def benchmark_name(benchmark: str, rules: int) -> str:
    """What a trial is called: ``tcp-goodput``, ``tcp-goodput-100-rules``."""
    return f"{benchmark}-{rules}-rules" if rules else benchmark


def plan(
    suite: Suite, variants: Sequence[Variant], blocks: int, rules: int, seed: int, inventory: Inventory
) -> tuple[PlannedTrial, ...]:
    """Blocks that hold every variant once; in each all benchmarks without and all with the rules, in random order."""
    chance = random.Random(seed)
    nodes = endpoints(inventory)[0]
    trials = []
    for block in range(1, blocks + 1):
        position = 0
        for variant in chance.sample(list(variants), len(variants)):
            for count in chance.sample([0, rules], 2):
                for benchmark in suite.benchmarks:
                    planned = planned_trial(benchmark, variant, block, position, nodes)
                    name, parameters = (
                        benchmark_name(benchmark.name, count),
                        {**planned.parameters, RULES: count},
                    )
                    trials.append(replace(planned, benchmark=name, parameters=parameters))
                    position += 1
    return tuple(trials)


def look_script(address: str, port: int) -> str:
    """POSIX sh for root on the client's node: prints ``ping`` and ``connection`` where there was one."""
    # A ping of its own and a port of its own each time: what connection tracking knows already passes any rule.
    ping = servers.in_endpoint(("ping", "-n", "-q", "-c", "2", "-i", "0.2", "-W", "1", address), 10)
    connect = servers.in_endpoint(("bash", "-c", f"exec 3<>/dev/tcp/{address}/{port}"), 3)
    return (
        f"if {ping} >/dev/null 2>&1; then echo ping; fi\nif {connect} 2>/dev/null; then echo connection; fi"
    )


def rules_of(store: Store, run_id: str) -> int | None:
    """How many rules the run was planned to measure; None where it measures no policy."""
    with explained(store.path):
        row = store.db.execute(
            f"SELECT max(json_extract(parameters, '$.{RULES}')) FROM trial WHERE run_id = ?", (run_id,)
        ).fetchone()
    found: int | None = row[0]
    return found


class Policy(Hooks):
    """Of one run: tried on real traffic, then each trial behind its own number of rules."""

    def __init__(self, store: Store, run_id: str, provider: Provider, say: Say) -> None:
        self.store, self.run_id, self.provider, self.say = store, run_id, provider, say
        # In force now; None where that is not known.
        self.rules: int | None = 0
        # The node on which the policy was changed last.
        self.ruled: Node | None = None

    async def show(self, variant: Variant) -> list[tuple[str, Seen]]:
        """Try each of STEPS on real traffic, store what was seen. Raises Disobeyed."""
        await self.provider.enter(variant)
        nodes, planned = self.provider.nodes, self.store.pending_trials(self.run_id)[0][1]
        client, server = nodes[planned.client_node], nodes[planned.server_node]
        target = (await proof.endpoints([server]))[server.name]
        tool = tools.load(TOOL)
        parameters = tools.resolve(tool, {"count": 1})
        serving = tool.server(parameters)
        assert serving is not None
        await servers.start(server, {TOOL: serving})
        found = []
        for words, passes in STEPS:
            said = await self.tell(server, words)
            printed = (await client.sh(look_script(target, serving.port), check=False)).stdout
            seen = Seen("connection" in printed, "ping" in printed)
            right = seen.passes if passes else seen.stopped
            reason = (
                None if right else f"`overlay-policy {words}`: {seen} from {client.name} to {server.name}"
            )
            self.store.add_evidence(
                self.run_id, None, variant,
                Evidence(server.name, "policy", "converge", right, {"policy": words, "passes": passes},
                         {"connects": seen.connects, "pings": seen.pings, "said": said}, reason),
            )  # fmt: skip
            self.say(f"  {variant} {words}: {seen}")
            if not right:
                raise Disobeyed(
                    f"{variant}: policy", f"does not do what it says: {reason}",
                    fix="See the journal of the overlay's policy daemon on both nodes",
                )  # fmt: skip
            found.append((words, seen))
        return found

    async def tell(self, node: Node, words: str) -> str:
        """Have the policy changed; returns what the overlay's own script said when it was in place. NodeError."""
        self.ruled = node
        done = await node.sh(shlex.join([COMMAND, *words.split()]), check=False, timeout=120)
        if done.exit_code:
            raise NodeError(f"{node.name}: the policy could not be changed: {done.stderr.strip()[-300:]}")
        self.rules = int(words.split()[1]) if words.startswith("rules ") else 0
        return done.stdout.strip()

    async def clear(self) -> None:
        """No policy, wherever one was left. NodeError."""
        if self.ruled is not None:
            await self.tell(self.ruled, "clear")
            self.ruled = None

    async def entered(self, cell: Sequence[PlannedTrial]) -> None:
        self.rules = None  # a converged state has no policy, but nodes that stay as they were keep theirs

    async def before_trial(self, trial: PlannedTrial, ends: Ends) -> bool:
        wanted = trial.parameters[RULES]
        if wanted == self.rules:
            return False
        await self.tell(ends.server, f"rules {wanted}" if wanted else "clear")
        return True
