"""A profile in force on all nodes: apply, read back, clear, and verify by sending and counting."""

from __future__ import annotations

import asyncio
import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field

from overlaylab import servers, shaping, shaping_readback, theory
from overlaylab.benchmarks import base as benchmarks
from overlaylab.errors import NodeError, UserError
from overlaylab.evidence import idle_share, read_state, state_script
from overlaylab.model import ProfileCheck
from overlaylab.parsers import ParseError
from overlaylab.profile import Profile
from overlaylab.profile_checks import (
    Rtt,
    judge_goodput,
    judge_loaded,
    judge_rtt,
    place,
    readable,
    rtt_not_applied,
    rtt_of,
    rtt_tolerance,
    show,
    with_history,
)
from overlaylab.ssh import Nodes

RTT_PINGS = 500
RTT_INTERVAL = 0.002
"""Seconds between pings: traffic as dense as what is measured. Where pings are rarer, an emulated CPU falls
asleep in between and its waking is taken for the network's (at 0.01 s: 0.6 to 1.1 ms in place of 0.3 to 0.4),
the delay comes out too small, and a benchmark then sees less than half of the RTT that was asked for."""
TRY_NETEM = "unshare --net tc qdisc add dev lo root netem delay 1ms"
"""Fails where the node's kernel has no netem; the namespace goes with the command."""
ROUNDS = 5
"""How often the delay is measured, and corrected in between."""
LOADED_PING_INTERVAL = 0.2
"""Seconds; at 5 Mbit/s, more pings would take a share of the rate that shows."""
ATTEMPTS = 3
"""How often the whole proof of a profile is tried before it has failed."""
GOODPUT = {"protocol": "tcp", "duration": 4, "omit": 1, "streams": 1, "length": 8192, "port": 5201}
"""Parameters of the iperf3 that checks the rate. length: its receiver counts whole blocks, and the default
of 128 KiB is 4 % of what 5 Mbit/s carry in that time."""


@dataclass
class Shaper:
    """One profile on the nodes of one inventory.

    baseline: {pair of node names: RTT in s without the delay that is added}, measured once per run on this
    accelerator: a profile's latency is a target, and only what lacks to it is added. See `calibrate`.
    """

    nodes: Nodes
    profile: Profile
    baseline: dict[frozenset[str], float] = field(default_factory=dict)
    idle: dict[frozenset[str], float] = field(default_factory=dict)

    def told(self, name: str) -> shaping.NodeShaping:
        """What the node's underlay interface is told."""
        inventory = self.nodes.inventory
        spec = next(node for node in inventory.nodes if node.name == name)
        return shaping.node_shaping(self.profile, inventory, spec, self.baseline)

    async def apply(self) -> dict[str, bool]:
        """Put the profile in force on every node; {node: whether that changed anything}."""

        async def one(name: str) -> bool:
            told = self.told(name)
            script = (
                shaping.clear_script(told.interface) if self.profile.is_none else shaping.apply_script(told)
            )
            return (await self.nodes[name].sh(script)).stdout.split()[-1:] == ["changed"]

        return dict(zip(self.nodes, await asyncio.gather(*map(one, self.nodes)), strict=True))

    async def apply_and_read_back(self) -> dict[str, list[str]]:
        """Apply on every node and read back what is in force, in one exchange; {node: problems in words}."""

        async def one(name: str) -> list[str]:
            told = self.told(name)
            # Not `( … ) || exit`: sh ignores `set -e` in what stands before ||, so a failing tc would go unseen.
            script = f"( {shaping.apply_script(told)} ) >/dev/null\n[ $? = 0 ] || exit 1\n{shaping_readback.readback_script(told.interface)}"
            return shaping_readback.readback_problems(told, (await self.nodes[name].sh(script)).stdout)

        if self.profile.is_none:
            return {name: [] for name in self.nodes}
        return dict(zip(self.nodes, await asyncio.gather(*map(one, self.nodes)), strict=True))

    async def clear(self) -> None:
        """Take any profile away; none is no error."""
        await asyncio.gather(
            *(self.nodes[name].sh(shaping.clear_script(self.told(name).interface)) for name in self.nodes)
        )

    # -- verifying --------------------------------------------------------------------------------

    async def rtts(self, client: str, server: str, count: int, interval: float) -> list[float]:
        """RTTs in s of `count` pings over the underlay, `interval` s apart."""
        ping = benchmarks.load("ping")
        parameters = {"count": count, "interval": interval, "payload": 56}
        argv = ping.client_argv(self._address(server), parameters)
        done = await self.nodes[client].sh(shlex.join(argv), check=False, timeout=ping.timeout(parameters))
        try:
            samples = ping.parse(done.stdout, done.stderr, done.exit_code, parameters)
        except ParseError as error:
            raise NodeError(f"ping from {client} to {server}: {error}") from error
        return [s.value for s in samples if s.metric == "latency_rtt" and s.t_start is not None]

    async def calibrate(self) -> list[ProfileCheck]:
        """Put the profile in force with the delay that brings each pair to its target RTT.

        What a pair lacks is its target less its baseline: the RTT with everything in force but the delay.
        netem's timers take time of their own, on an emulated CPU more than may be lacking; that counts as
        baseline too, so a delay that overshoots is corrected, down to none. Returns the checks rtt-baseline
        and rtt-idle of every pair. NodeError where the settings do not take.
        """
        pairs = self._pairs()
        self.baseline = {frozenset(pair): math.inf for pair in pairs}
        netem = await self._has_netem() if self._needs_netem() else True
        await self._in_force()
        undelayed = {pair: await self._rtt(*pair) for pair in pairs}
        if not netem:
            self.idle = {frozenset(pair): undelayed[pair].median for pair in pairs}
            return [
                check
                for pair in pairs
                for check in rtt_not_applied(*pair, self._target(*pair), undelayed[pair])
            ]
        self.baseline = {frozenset(pair): undelayed[pair].median for pair in pairs}
        for round_ in range(1, ROUNDS + 1):
            await self._in_force()
            idle = {pair: await self._rtt(*pair) for pair in pairs}
            off = {
                pair: idle[pair].median - target
                for pair in pairs
                if (target := self._target(*pair)) is not None
                and self._delay(*pair) > 0
                and abs(idle[pair].median - target) > rtt_tolerance(target, idle[pair].error)
            }
            if not off or round_ == ROUNDS:
                break
            for pair, excess in off.items():
                self.baseline[frozenset(pair)] += excess
        self.idle = {frozenset(pair): idle[pair].median for pair in pairs}
        return [
            check
            for pair in pairs
            for check in judge_rtt(
                *pair, self._target(*pair), self._delay(*pair), undelayed[pair], idle[pair]
            )
        ]

    def _needs_netem(self) -> bool:
        tier = self.profile
        return bool(
            tier.jitter or tier.loss or any(self._target(*pair) is not None for pair in self._pairs())
        )

    async def _has_netem(self) -> bool:
        """Whether every node's kernel can delay packets. Without it, a latency is left out and that is recorded;
        UserError where jitter or loss are asked for, which nothing else could stand for."""
        tried = await self.nodes.sh(TRY_NETEM, check=False)
        without = [name for name, done in tried.items() if done.exit_code != 0]
        for what in ("jitter", "loss"):
            if without and getattr(self.profile, what):
                raise UserError(
                    f"profile {self.profile.name}: {what}",
                    "takes netem, which the kernel of the nodes lacks",
                    seen=", ".join(without),
                    fix="Choose a profile without it, or PROVIDER=libvirt, whose nodes have a kernel of their own",
                )
        return not without

    async def _in_force(self) -> None:
        wrong = problems(await self.apply_and_read_back())
        if wrong:
            raise NodeError(f"profile {self.profile.name} is not in force: {wrong}")

    async def _rtt(self, client: str, server: str) -> Rtt:
        return rtt_of(await self.rtts(client, server, RTT_PINGS, RTT_INTERVAL))

    def _target(self, client: str, server: str) -> float | None:
        return self.profile.rtt(self._zone(client), self._zone(server))

    def _delay(self, client: str, server: str) -> float:
        """One-way delay, s, that is in force between the two."""
        return shaping.applied_delay(self._target(client, server), self.baseline[frozenset((client, server))])

    async def prove(self, say: Callable[[str], None]) -> list[ProfileCheck]:
        """Baseline, apply, read back, and all checks; the checks of the last of at most ATTEMPTS attempts.

        Other work on the machine makes a check fail that the profile itself would pass, so a failed attempt
        is repeated as a whole, baseline included; what failed before stays in the reason of its check.
        NodeError where the settings cannot be put in force at all.
        """
        earlier: dict[tuple[str, str, str], str] = {}
        for attempt in range(1, ATTEMPTS + 1):
            await self.clear()
            checks = await self.calibrate()
            if self.profile.rate is not None:
                checks += await self._verify()
            checks = [with_history(check, earlier) for check in checks]
            failed = [check for check in checks if check.verdict == "fail"]
            if not failed or attempt == ATTEMPTS:
                break
            for check in failed:
                say(f"  attempt {attempt} of {ATTEMPTS}: {readable(check)}")
                told = f"attempt {attempt} measured {show(check.measured, check.unit)}"
                earlier[place(check)] = "; ".join(filter(None, (earlier.get(place(check)), told)))
        return checks

    async def _verify(self) -> list[ProfileCheck]:
        """Goodput and loaded RTT of the profile that is in force, sent by one node and counted at the other."""
        checks = []
        for client, server in self._pairs():
            idle = self.idle[frozenset((client, server))]
            pair = (self.nodes[client], self.nodes[server])
            await asyncio.gather(*(servers.start(node, self._iperf3()) for node in pair))
            forth, loaded = await self._goodput(client, server, idle)
            back, _ = await self._goodput(server, client, None)
            checks += [forth, loaded, back]
            await asyncio.gather(*map(servers.stop, pair))
        return checks

    def _iperf3(self) -> dict:
        tool = benchmarks.load("iperf3")
        return {"iperf3": (tool.server_argv(GOODPUT), tool.server_port(GOODPUT))}

    async def _goodput(
        self, client: str, server: str, idle: float | None
    ) -> tuple[ProfileCheck, ProfileCheck | None]:
        """Goodput client to server against the header arithmetic; where `idle` is given, loaded RTT too."""
        tool = benchmarks.load("iperf3")
        told = self.told(client)
        rate = told.rate or 0
        mtu = told.mtu or shaping.DEFAULT_MTU
        # What counts beyond the L2 frame takes its share of the rate too.
        frame = mtu + shaping.ETHERNET
        expected = theory.goodput_theory(rate, mtu, 0) * frame / (frame + told.overhead)
        states = [read_state(d.stdout) for d in (await self.nodes.sh(state_script(told.interface))).values()]
        argv = shlex.join(tool.client_argv(self._address(server), GOODPUT))
        transfer = self.nodes[client].sh(argv, check=False, timeout=tool.timeout(GOODPUT))
        pings = None
        if idle is None:
            done = await transfer
        else:
            count = int((GOODPUT["duration"] - 0.5) / LOADED_PING_INTERVAL)

            async def later() -> list[float]:
                await asyncio.sleep(GOODPUT["omit"] + 0.5)
                return await self.rtts(client, server, count, LOADED_PING_INTERVAL)

            done, pings = await asyncio.gather(transfer, later())
        after = [read_state(d.stdout) for d in (await self.nodes.sh(state_script(told.interface))).values()]
        # A node that was never idle has 0.0, which is no missing value.
        idle_cpu = min((share for share in map(idle_share, states, after) if share is not None), default=0.0)
        try:
            samples = tool.parse(done.stdout, done.stderr, done.exit_code, GOODPUT)
        except ParseError as error:
            raise NodeError(f"iperf3 from {client} to {server}: {error}") from error
        measured = next(s.value for s in samples if s.metric == "goodput" and s.t_start is None)
        goodput = judge_goodput(client, server, expected, measured, idle_cpu)
        if pings is None or idle is None:
            return goodput, None
        bound = idle + self.profile.queue + told.burst * 8 / rate
        return goodput, judge_loaded(client, server, bound, pings, idle_cpu)

    def _pairs(self) -> list[tuple[str, str]]:
        names = list(self.nodes)
        return [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]

    def _address(self, name: str) -> str:
        return str(self._spec(name).underlay_address.ip)

    def _zone(self, name: str) -> str:
        return self._spec(name).zone

    def _spec(self, name: str):
        return self.nodes[name].spec


def problems(found: dict[str, list[str]]) -> str | None:
    """The read-back problems of all nodes as one sentence; None where there are none."""
    return "; ".join(f"{name}: {problem}" for name, said in found.items() for problem in said) or None
