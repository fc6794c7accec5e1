"""One run: enter a variant, shape, probe, measure, probe again, store; block after block.

Invariant: a trial is `ok` only if the data path was proven before and after it and the profile's
settings were read back after the revert that preceded it.
"""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from overlaylab.core.errors import NodeError
from overlaylab.core.metrics import COSTS
from overlaylab.core.model import HOST, Evidence, PlannedTrial, Sample, TrialResult, Variant
from overlaylab.core.progress import readable, remember
from overlaylab.nodes import servers
from overlaylab.nodes.ssh import Node
from overlaylab.providers import Provider, Say
from overlaylab.run import cost, evidence, proof, reassembly
from overlaylab.run.hooks import Hooks
from overlaylab.run.plan import LOCAL, cells, is_fresh, overhead_key, pairs
from overlaylab.run.proof import Ends, Point
from overlaylab.shaping import checks as profile_checks
from overlaylab.shaping import shaper
from overlaylab.shaping.shaper import Shaper
from overlaylab.specs import overlays
from overlaylab.store.store import Store
from overlaylab.tools import base as tools
from overlaylab.tools.parsers import ParseError

# How often a cell is entered before the run stops: a node that died once comes back with the revert.
ATTEMPTS = 2


class RunStopped(Exception):
    """The run cannot go on now; what is finished is stored, and lab:resume carries on."""


@dataclass
class Clock:
    """Where the wall time of a run went, in seconds; `bench:harness` prints it.

    setup: reverts, clocks and profile; trials: inside trials; fragments: until nodes had let go of a flood's;
    harness: the rest of the cells.
    """

    setup: float = 0.0
    trials: float = 0.0
    fragments: float = 0.0
    harness: float = 0.0
    reverts: list[float] = field(default_factory=list)


class Runner:
    """Carries a stored plan out. `on_block` is called with the block's number whenever one is complete.

    enough: whether the run ends after that block, though more are planned; those stay planned, and are not taken.
    """

    def __init__(
        self,
        store: Store,
        run_id: str,
        provider: Provider,
        shaper: Shaper,
        say: Say,
        on_block: Callable[[int], None] = lambda block: None,
        fills_bucket: bool = True,
        fresh_every: int = 0,
        enough: Callable[[int], bool] = lambda block: False,
        hooks: Hooks | None = None,
    ) -> None:
        self.store, self.run_id, self.provider, self.shaper = store, run_id, provider, shaper
        self.say, self.on_block = say, on_block
        # Before each trial; a suite that looks at the long run leaves it as the trial before did.
        self.fills_bucket = fills_bucket
        # Every so many-th block's nodes are booted for each variant; 0: none's.
        self.fresh_every = fresh_every
        self.enough = enough
        self.hooks = hooks or Hooks()
        # The block that `on_block` is told of was the last.
        self.ended = False
        self.nodes = provider.nodes
        self.clock = Clock()
        self._booted = False
        self._versions: dict[str, str] = {}
        self._underlay_mtus: dict[str, int] = {}

    async def run(self) -> None:
        """All pending trials of the plan. RunStopped where a node stays away."""
        pending = self.store.pending_trials(self.run_id)
        todo = cells(pending)
        self.store.set_run_state(self.run_id, "running")
        before = pending[0][1].block - 1 if pending and pending[0][1].position == 0 else 0
        if before and self.enough(before):
            todo = []  # it was killed after the block that was enough, and before it could say so
            self._end_block(before, last=True)
        if todo:
            await self._verify_profile()
        for number, cell in enumerate(todo):
            await self._cell_with_attempts(cell, number, len(todo))
            block, last = cell[0][1].block, number + 1 == len(todo)
            if last or todo[number + 1][0][1].block != block:
                self._end_block(block, last or self.enough(block))
            if self.ended:
                break
        self.store.set_run_state(self.run_id, "done")

    def _end_block(self, block: int, last: bool) -> None:
        self.ended = last
        self.on_block(block)

    # -- the profile ------------------------------------------------------------------------------

    async def _verify_profile(self) -> None:
        """Once per run, on the host network: baseline RTT, then all checks of the profile in force."""
        pairs = math.comb(len(self.nodes), 2)
        self.say(
            f"verifying profile {self.shaper.profile.name} on the host network (about {readable(5 + 20 * pairs)})"
        )
        await self.provider.enter(Variant(HOST))
        await self._read_underlay_mtus()
        checks = await self.shaper.prove(self.say)
        for check in checks:
            self.store.add_profile_check(self.run_id, check)
            self.say(f"  {profile_checks.readable(check)}")
        failed = [check for check in checks if check.verdict == "fail"]
        if failed:
            names = ", ".join(sorted({check.name for check in failed}))
            raise RunStopped(
                f"profile {self.shaper.profile.name} failed its check ({names}), so nothing was measured under it. "
                "Other work on this machine is the usual cause: ./task doctor shows the idle CPU"
            )

    # -- cells ------------------------------------------------------------------------------------

    async def _cell_with_attempts(
        self, cell: list[tuple[int, PlannedTrial]], number: int, total: int
    ) -> None:
        done: set[int] = set()
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._cell(cell, done, f"[{number + 1}/{total}]")
                return
            except (NodeError, TimeoutError) as error:
                self.nodes.drop()
                if attempt == ATTEMPTS:
                    raise RunStopped(f"{error}; tried {ATTEMPTS} times") from error
                self.say(f"  {error}; entering the variant again")

    async def _cell(self, cell: list[tuple[int, PlannedTrial]], done: set[int], place: str) -> None:
        variant = cell[0][1].variant
        started = time.monotonic()
        entered = await self.provider.enter(variant, fresh=is_fresh(cell[0][1].block, self.fresh_every))
        await self.hooks.entered([trial for _, trial in cell])
        self._booted = entered.booted
        self.clock.reverts.append(entered.revert)
        # Before the profile, which is to hold for it too.
        alone = {
            node: await proof.attach_second(self.nodes[node])
            for node in {trial.client_node for _, trial in cell if trial.placement == LOCAL}
        }
        self.shaper.endpoints = await self._bare_endpoints(variant)
        wrong = shaper.problems(await self.shaper.apply_and_read_back())
        began = time.monotonic()
        self.clock.setup += began - started

        in_trials, waited_before = 0.0, self.clock.fragments
        between = pairs(cell)
        for (client_node, server_node), trials in between:
            todo = [(trial_id, trial) for trial_id, trial in trials if trial_id not in done]
            if not todo:
                continue
            client, server = self.nodes[client_node], self.nodes[server_node]
            if client is server and (reason := alone[client_node]):
                for trial_id, trial in todo:
                    self._not_begun(trial_id, reason)
                    done.add(trial_id)
                    self.say(f"  {place} {variant} {trial.benchmark}: failed: {reason}")
                continue
            if client is server:
                ends, where = await proof.find_local_ends(client, variant), f", within {client_node}"
            else:
                ends = await proof.find_ends(client, server, variant, self._underlay_mtu(client))
                where = f", {client_node} to {server_node}"
            planned = [trial for _, trial in trials]
            wanted, seconds = servers.needed(planned), servers.lifetime(planned)
            starting = servers.start(server, wanted, ends.server_namespace, seconds)
            point = await proof.first_point(ends, starting)
            where = "" if len(between) == 1 else where
            for trial_id, trial in todo:
                last = trial_id == todo[-1][0]
                result, point = await self._trial(trial_id, trial, ends, point, wrong, last)
                done.add(trial_id)
                in_trials += result.duration or 0.0
                self.say(f"  {place} {variant} {trial.benchmark}{where}: {_outcome(result)}")
                await self.hooks.after_trial(trial, result)
        beside = in_trials + self.clock.fragments - waited_before
        self.clock.trials += in_trials
        self.clock.harness += time.monotonic() - began - beside
        remember(
            overhead_key(variant, self.provider.accelerator, len(between)),
            time.monotonic() - started - beside,
        )
        await self.provider.renew()

    def _not_begun(self, trial_id: int, reason: str) -> None:
        """A trial that the node has no room for; the others of the cell are none the worse for it."""
        began = now()
        self.store.start_trial(trial_id, began)
        nothing = TrialResult("failed", reason, began, None, (), None, "", "", None)
        self.store.finish_trial(trial_id, nothing)

    async def _bare_endpoints(self, variant: Variant) -> dict[str, str]:
        """{node: address on the overlay} where the underlay sees those; with one peer, all that leaves goes there."""
        mode = overlays.load(variant.overlay).modes[variant.key]
        if mode.header_bytes or len(self.nodes) < 3:
            return {}
        return await proof.endpoints(self.nodes.values())

    # -- trials -----------------------------------------------------------------------------------

    async def _trial(
        self, trial_id: int, trial: PlannedTrial, ends: Ends, before: Point, wrong: str | None, last: bool
    ) -> tuple[TrialResult, Point]:
        if await self.hooks.before_trial(trial, ends):
            before = replace(before, states_after=await proof.read_states(ends))
        client, server = ends.client, ends.server
        tool = tools.load(trial.tool)
        version = await self._version(tool, client)
        if self.fills_bucket:
            await self.shaper.fill_bucket()
        parameters = tools.at_mtu(trial.parameters, ends.mtu)
        if tools.protocol(trial.benchmark, parameters) == "udp":
            waited = await reassembly.emptied(ends)
            self.clock.fragments += waited.seconds
            if waited.left > reassembly.FEW_BYTES:
                self.say(
                    f"  a node still holds {waited.left} bytes of fragments after {readable(waited.seconds)}:"
                    " larger datagrams may not get through"
                )
            elif waited.seconds:
                self.say(
                    f"  waited {readable(waited.seconds)} until the nodes had let go of the fragments of before"
                )
        argv = tool.client_argv(ends.server_endpoint, parameters, trial.direction)
        limit = tool.timeout(parameters)
        started_at = now()
        self.store.start_trial(trial_id, started_at)
        machine_before = await self.provider.cpu_seconds()
        done, on_server = await proof.measure(
            ends,
            before,
            servers.in_endpoint(argv, limit),
            limit + 30,
            tool.duration(parameters),
        )
        machine = cost.machine_used(machine_before, await self.provider.cpu_seconds())
        after = await proof.point(ends, last)

        status = "ok"
        reason: str | None = None
        samples: tuple[Sample, ...] = ()
        try:
            samples = tuple(tool.parse(done.stdout, done.stderr, done.exit_code, parameters))
        except ParseError as error:
            status, reason = "failed", str(error)
        states = proof.states_around(ends, before, after, on_server)
        sender, receiver = (client, server) if trial.direction == tools.CLIENT_TO_SERVER else (server, client)
        if samples:
            samples += (
                *cost.samples(cost.work(trial, samples), states, machine, self.provider.accelerator),
                *cost.traffic(samples, states, sender.name, done.duration, trial),
            )
        said = [
            *(replace(item, phase="before") for item in before.evidence),
            *(replace(item, phase="after") for item in after.evidence),
            Evidence(client.name, "settings", "before", not wrong, {}, {}, wrong),
            *proof.judge_health(ends, states),
        ]
        # Plain traffic that a NIC segments passes the qdisc in super-packets, which it counts rightly and the
        # receiver's NIC does not. What stays within a node passes no qdisc.
        if not ends.local and (
            self.shaper.profile.segmented
            or (self.shaper.profile.tunnels_segmented and ends.mode.header_bytes)
        ):
            around = [states[node.name][when] for node in (sender, receiver) for when in ("before", "after")]
            accounting = evidence.judge_accounting(sender.name, *around)
            if accounting:
                said.append(accounting)
        refuted = [f"{item.kind} {item.phase}, {item.node}: {item.reason}" for item in said if not item.ok]
        if refuted and status == "ok":
            status, reason = "void", "; ".join(refuted)
        result = TrialResult(
            status=status,
            reason=reason,
            started_at=started_at,
            duration=done.duration,
            argv=tuple(argv),
            exit_code=done.exit_code,
            stdout=done.stdout,
            stderr=done.stderr,
            tool_version=version,
            samples=samples,
            node_state={
                name: state
                | {"booted": self._booted}
                | ({"bucket_filled": self.fills_bucket} if "bucket" in state["after"] else {})
                for name, state in states.items()
            },
            overlay_version=after.status.get("version"),
            # Within a node more may pass than between two; the host's own network claims none.
            overlay_mtu=after.status.get("overlay_mtu")
            and (ends.mtu if ends.local else after.status["overlay_mtu"]),
            underlay_mtu=self._underlay_mtu(client),
        )
        self.store.finish_trial(trial_id, result, said)
        return result, after

    async def _read_underlay_mtus(self) -> None:
        for name, node in self.nodes.items():
            script = f"cat /sys/class/net/{shlex.quote(node.spec.underlay_interface)}/mtu"
            self._underlay_mtus[name] = int((await node.sh(script)).stdout)

    def _underlay_mtu(self, node: Node) -> int:
        """Bytes: the profile's, else the one that the node came with."""
        return self.shaper.profile.mtu or self._underlay_mtus[node.name]

    async def _version(self, tool: tools.Tool, node: Node) -> str | None:
        """The tool's own words on its version, asked once per run."""
        if tool.name not in self._versions:
            done = await node.sh(shlex.join(tool.version_argv()), check=False)
            words = (done.stdout or done.stderr).strip().splitlines()
            self._versions[tool.name] = words[0] if words else ""
        return self._versions[tool.name] or None


def _outcome(result: TrialResult) -> str:
    """What a trial gave, for the user: its whole-trial values, or why it gave none."""
    if result.status != "ok":
        return f"{result.status}: {result.reason}"
    whole = [s for s in result.samples if s.t_start is None and s.quantile is None and s.metric not in COSTS]
    return ", ".join(f"{s.metric} {readable_value(s.metric, s.value)}" for s in whole) or "ok"


def readable_value(metric: str, value: float) -> str:
    """A value with the unit that people use for its metric."""
    unit = tools.metrics()[metric].unit
    if unit == "bit/s":
        return f"{value / 1e6:.2f} Mbit/s"
    if unit == "s":
        return f"{value * 1e3:.3f} ms"
    return f"{value:.1f}/s" if unit == "1/s" else f"{value:g}"


def now() -> str:
    """UTC with milliseconds, for labels only."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
