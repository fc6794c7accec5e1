"""A profile in force on all nodes: apply, read back, clear, and verify by sending and counting."""

from __future__ import annotations

import asyncio
import math
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import JSON, ProfileCheck
from overlaylab.machine import checks as host_checks
from overlaylab.nodes import servers
from overlaylab.nodes.ssh import Nodes
from overlaylab.shaping import readback, scripts, sizes, theory
from overlaylab.shaping.checks import (
    Rtt,
    cpu_problems,
    judge_cpu,
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
from overlaylab.shaping.cpu import CpuHolder
from overlaylab.shaping.node_state import idle_share, read_state, state_script
from overlaylab.specs.inventory import InventoryNode
from overlaylab.specs.profile import Profile
from overlaylab.tools import base as tools
from overlaylab.tools.base import Server
from overlaylab.tools.iperf3 import PORT
from overlaylab.tools.parsers import ParseError

T = TypeVar("T")

RTT_PINGS = 500
# Seconds between pings: traffic as dense as what is measured. Where pings are rarer, an emulated CPU falls
# asleep in between and its waking is taken for the network's (at 0.01 s: 0.6 to 1.1 ms in place of 0.3 to 0.4),
# the delay comes out too small, and a benchmark then sees less than half of the RTT that was asked for.
RTT_INTERVAL = 0.002
# Fails where the node's kernel has no netem; the namespace goes with the command.
TRY_NETEM = "unshare --net tc qdisc add dev lo root netem delay 1ms"
# How often the delay is measured, and corrected in between.
ROUNDS = 5
# Seconds; at 5 Mbit/s, more pings would take a share of the rate that shows.
LOADED_PING_INTERVAL = 0.2
# Seconds until the pings begin, and that the transfer beside them takes.
LOADED_AFTER, LOADED_SECONDS = 1.0, 4
# Idle shares of the CPUs of the machine that the nodes run on: a transfer that leaves less than the first on a
# machine that has more than the second without it has filled the machine, though the nodes call themselves idle:
# QEMU's own threads work for them beside the emulated CPUs.
MACHINE_FULL, MACHINE_AT_REST = 0.2, 0.8
# How often the whole proof of a profile is tried before it has failed.
ATTEMPTS = 3
# Parameters of the iperf3 that checks the rate. length: its receiver counts whole blocks, and the default
# of 128 KiB is 4 % of what 5 Mbit/s carry in that time.
GOODPUT: JSON = {"protocol": "tcp", "duration": 4, "omit": 1, "streams": 1, "length": 8192, "port": PORT}


@dataclass
class Shaper:
    """One profile on the nodes of one inventory.

    machine: reads (idle, all) CPU ticks of the machine that the nodes run on; None: it is not this one.
    cpu: holds the nodes to vCPUs and quota; None: nobody does, which only a test may want.
    baseline: {pair of node names: RTT in s without the delay that is added}, measured once per run on this
    accelerator: a profile's latency is a target, and only what lacks to it is added. See `calibrate`.
    endpoints: {node name: address on the overlay}, where its packets cross the underlay without another header.
    namespace: the one on each node in which the servers run that its checks take.
    """

    nodes: Nodes
    profile: Profile
    cpu: CpuHolder | None = None
    machine: Callable[[], tuple[int, int]] | None = host_checks.read_stat
    baseline: dict[frozenset[str], float] = field(default_factory=dict)
    idle: dict[frozenset[str], float] = field(default_factory=dict)
    endpoints: dict[str, str] = field(default_factory=dict)
    namespace: str = servers.ENDPOINT

    def shaping_of(self, name: str) -> sizes.NodeShaping:
        """What the node's underlay interface is told."""
        inventory = self.nodes.inventory
        spec = next(node for node in inventory.nodes if node.name == name)
        return sizes.node_shaping(self.profile, inventory, spec, self.baseline, self.endpoints)

    async def apply(self) -> dict[str, bool]:
        """Put the profile in force on every node; {node: whether that changed anything}."""

        async def one(name: str) -> bool:
            shaping = self.shaping_of(name)
            script = (
                scripts.clear_script(shaping.interface)
                if self.profile.is_none
                else scripts.apply_script(shaping, self._after_reboot())
            )
            return (await self.nodes[name].sh(script)).stdout.split()[-1:] == ["changed"]

        changed = await self._on_each(one)
        await self._hold_cpu()
        return changed

    async def apply_and_read_back(self) -> dict[str, list[str]]:
        """Apply on every node and read back what is in force, in one exchange; {node: problems in words}."""

        async def one(name: str) -> list[str]:
            shaping = self.shaping_of(name)
            # Not `( … ) || exit`: sh ignores `set -e` in what stands before ||, so a failing tc would go unseen.
            script = f"( {scripts.apply_script(shaping, self._after_reboot())} ) >/dev/null\n[ $? = 0 ] || exit 1\n{readback.readback_script(shaping.interface)}"
            return readback.readback_problems(shaping, (await self.nodes[name].sh(script)).stdout)

        if self.profile.is_none:
            return {name: [] for name in self.nodes}
        found = await self._on_each(one)
        await self._hold_cpu()
        if self.cpu is not None and self._holds_cpu:
            for name, held in (await self.cpu.held()).items():
                found[name] += cpu_problems(held, self.profile)
        return found

    async def clear(self) -> None:
        """Take any profile away; none is no error."""
        await self._on_each(
            lambda name: self.nodes[name].sh(scripts.clear_script(self.shaping_of(name).interface))
        )
        if self.cpu is not None:
            await self.cpu.hold(None, None)

    async def fill_bucket(self) -> None:
        """Let every node's bucket be full again; nothing where the profile has one rate."""
        if self.profile.sustained is not None:
            await self.nodes.sh(scripts.FILL_BUCKET)

    @property
    def _holds_cpu(self) -> bool:
        return (self.profile.vcpus, self.profile.quota) != (None, None)

    async def _hold_cpu(self) -> None:
        """Also where the profile holds nothing: the one before it may have."""
        if self.cpu is not None:
            await self.cpu.hold(self.profile.vcpus, self.profile.quota)

    def _after_reboot(self) -> str:
        return "" if self.cpu is None else self.cpu.after_reboot(self.profile.vcpus, self.profile.quota)

    async def _on_each(self, what: Callable[[str], Awaitable[T]]) -> dict[str, T]:
        return dict(zip(self.nodes, await asyncio.gather(*map(what, self.nodes)), strict=True))

    # -- verifying --------------------------------------------------------------------------------

    async def rtts(self, client: str, server: str, count: int, interval: float) -> list[float]:
        """RTTs in s of `count` pings over the underlay, `interval` s apart."""
        ping = tools.load("ping")
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
        baseline too, so a delay that overshoots is corrected, down to none. A baseline above the target that was gone
        a moment later, as on nodes that have just been started, is measured again. Returns the checks rtt-baseline and
        rtt-idle of every pair. NodeError where the settings do not take.
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
        delayed: set[tuple[str, str]] = set()
        for round_ in range(1, ROUNDS + 1):
            await self._in_force()
            idle = {pair: await self._rtt(*pair) for pair in pairs}
            delayed |= {pair for pair in pairs if self._delay(*pair) > 0}
            again = {pair for pair in pairs if pair not in delayed and self._lacks(*pair, idle[pair])}
            off = {
                pair: idle[pair].median - target
                for pair in pairs
                if (target := self._target(*pair)) is not None
                and self._delay(*pair) > 0
                and abs(idle[pair].median - target) > rtt_tolerance(target, idle[pair].error)
            }
            if not (off or again) or round_ == ROUNDS:
                break
            for pair in again:
                undelayed[pair] = idle[pair]
                self.baseline[frozenset(pair)] = idle[pair].median
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

    def _lacks(self, client: str, server: str, found: Rtt) -> bool:
        target = self._target(client, server)
        return target is not None and found.median < target - rtt_tolerance(target, found.error)

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
        return sizes.applied_delay(self._target(client, server), self.baseline[frozenset((client, server))])

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
            if self.cpu is not None:
                checks += judge_cpu(await self.cpu.held(), self.profile)
            if self.profile.rate is not None:
                checks += await self._verify()
            checks = [with_history(check, earlier) for check in checks]
            failed = [check for check in checks if check.verdict == "fail"]
            if not failed or attempt == ATTEMPTS:
                break
            for check in failed:
                say(f"  attempt {attempt} of {ATTEMPTS}: {readable(check)}")
                shaping = f"attempt {attempt} measured {show(check.measured, check.unit)}"
                earlier[place(check)] = "; ".join(filter(None, (earlier.get(place(check)), shaping)))
        return checks

    async def _verify(self) -> list[ProfileCheck]:
        """Goodput and loaded RTT of the profile that is in force, sent by one node and counted at the other."""
        checks = []
        for client, server in self._pairs():
            idle = self.idle[frozenset((client, server))]
            pair = (self.nodes[client], self.nodes[server])
            await asyncio.gather(*(servers.start(node, self._iperf3(), self.namespace) for node in pair))
            await self.fill_bucket()
            checks.append(await self._goodput(client, server))
            await self.fill_bucket()
            checks.append(await self._loaded(client, server, idle))
            await self.fill_bucket()
            checks.append(await self._goodput(server, client))
            await asyncio.gather(*map(servers.stop, pair))
        return checks

    def _iperf3(self) -> dict[str, Server]:
        server = tools.load("iperf3").server(GOODPUT)
        assert server is not None
        return {"iperf3": server}

    async def _goodput(self, client: str, server: str) -> ProfileCheck:
        """Goodput client to server against the header arithmetic."""
        shaping = self.shaping_of(client)
        rate = shaping.rate or 0
        mtu = shaping.mtu or sizes.DEFAULT_MTU
        # What counts beyond the L2 frame takes its share of the rate too.
        frame = mtu + sizes.ETHERNET
        expected = theory.goodput_theory(rate, mtu, 0) * frame / (frame + shaping.overhead)
        above = (rate - (shaping.sustained or 0)) / 8 * (GOODPUT["duration"] + GOODPUT["omit"])
        if shaping.bucket is not None and shaping.bucket < above:
            reason = (
                "the bucket is empty before its rate can be told; ./task bench:profiles looks at both rates"
            )
            return ProfileCheck(
                "goodput", client, server, expected, None, None, "bit/s", "not-applicable", reason
            )
        before = self.machine() if self.machine else None
        measured, idle_cpu = await self._transfer(client, server, GOODPUT)
        after = self.machine() if self.machine else None
        check = judge_goodput(client, server, expected, measured, idle_cpu)
        if check.verdict == "fail" and await self._filled(before, after):
            check = judge_goodput(client, server, expected, measured, 0.0)
        return check

    async def _loaded(self, client: str, server: str, idle: float) -> ProfileCheck:
        """RTT while the rate is used up, by a transfer of its own: a second command on a node that sends costs it a
        login, which an emulated CPU takes from the goodput. idle: the pair's RTT in s without traffic."""
        shaping = self.shaping_of(client)
        assert shaping.rate
        parameters = {**GOODPUT, "duration": LOADED_SECONDS, "omit": 0}

        async def later() -> list[float]:
            await asyncio.sleep(LOADED_AFTER)
            count = int((LOADED_SECONDS - LOADED_AFTER) / LOADED_PING_INTERVAL)
            return await self.rtts(client, server, count, LOADED_PING_INTERVAL)

        (_, idle_cpu), pings = await asyncio.gather(self._transfer(client, server, parameters), later())
        bound = idle + self.profile.queue + shaping.burst * 8 / shaping.rate
        return judge_loaded(client, server, bound, pings, idle_cpu)

    async def _transfer(self, client: str, server: str, parameters: JSON) -> tuple[float, float]:
        """TCP goodput in bit/s, and the share of its CPU that the busier node had left meanwhile."""
        tool = tools.load("iperf3")
        script = state_script(self.shaping_of(client).interface)
        states = [read_state(d.stdout) for d in (await self.nodes.sh(script)).values()]
        argv = shlex.join(tool.client_argv(self._address(server), parameters))
        done = await self.nodes[client].sh(argv, check=False, timeout=tool.timeout(parameters))
        after = [read_state(d.stdout) for d in (await self.nodes.sh(script)).values()]
        try:
            samples = tool.parse(done.stdout, done.stderr, done.exit_code, parameters)
        except ParseError as error:
            raise NodeError(f"iperf3 from {client} to {server}: {error}") from error
        # A node that was never idle has 0.0, which is no missing value.
        idle = min((share for share in map(idle_share, states, after) if share is not None), default=0.0)
        measured = next(s.value for s in samples if s.metric == "goodput" and s.t_start is None)
        return measured, self.spare_cpu(idle)

    async def _filled(self, before: tuple[int, int] | None, after: tuple[int, int] | None) -> bool:
        """Whether what happened between two readings filled the machine, and nothing else did."""
        if before is None or after is None or self.machine is None:
            return False
        if host_checks.idle_share(before, after) >= MACHINE_FULL:
            return False
        resting = self.machine()
        await asyncio.sleep(1)
        return host_checks.idle_share(resting, self.machine()) > MACHINE_AT_REST

    def spare_cpu(self, idle: float) -> float:
        """Of the CPU time that a node may use, the share that it left; idle: of all time, as the node counts it."""
        # What a quota withholds looks idle to a node: at a fifth, one that never rests is idle four fifths.
        return max(0.0, 1 - (1 - idle) / (self.profile.quota or 1.0))

    def _pairs(self) -> list[tuple[str, str]]:
        names = list(self.nodes)
        return [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]

    def _address(self, name: str) -> str:
        return str(self._spec(name).underlay_address.ip)

    def _zone(self, name: str) -> str:
        return self._spec(name).zone

    def _spec(self, name: str) -> InventoryNode:
        return self.nodes[name].spec


def problems(found: dict[str, list[str]]) -> str | None:
    """The read-back problems of all nodes as one sentence; None where there are none."""
    return "; ".join(f"{name}: {problem}" for name, said in found.items() for problem in said) or None
