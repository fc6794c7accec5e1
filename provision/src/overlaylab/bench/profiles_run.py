"""Proving every profile: what is checked of each, in which order, and storing it check by check.

A step is one profile, or one variation of it, on one cluster, and becomes a run of its own in the database.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from overlaylab.bench import profiles_judge
from overlaylab.bench.profiles_judge import Cap, Second, Udp
from overlaylab.bench.profiles_plan import (
    EMPTY_AFTER,
    JITTER,
    JITTER_RTT,
    LOSSES,
    PAIR,
    Step,
    with_bucket,
)
from overlaylab.bench.profiles_probe import Probe, streams_for
from overlaylab.core import progress
from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import ProfileCheck, RunRecord
from overlaylab.providers import Say
from overlaylab.shaping.checks import place, show, with_history
from overlaylab.shaping.shaper import RTT_INTERVAL, TRY_NETEM, Shaper, problems
from overlaylab.shaping.sizes import DEFAULT_MTU
from overlaylab.shaping.theory import INNER_HEADERS
from overlaylab.specs.profile import varied
from overlaylab.store.store import Store

SUITE = "bench:profiles"
# How often a check is tried: other work on the machine makes one fail that the profile itself would pass.
ATTEMPTS = 3
UDP_SECONDS = 10
SHARES = (0.95, 1.2)
# Bytes of payload of a small datagram.
SMALL = 64
PACKETS_SECONDS = 3
# bit/s, more than any sender offers.
ENDLESS = 1e11
TCP_SECONDS, TCP_OMIT = 4, 1
BUCKET_SECONDS = 25
# Seconds at the rate that a pause is to give back.
BURST_AGAIN = 4.0
LONGEST_PAUSE = 30.0
REFILL_SECONDS = 14
INTERVAL = 0.25
LEAST_DATAGRAMS = 20_000
JITTER_PINGS = 2000
TOGETHER_SECONDS = 8
# Seconds of a transfer in which all others run too, though they did not start at the same moment.
MIDDLE = (2.0, 6.0)


def digest() -> str:
    """SHA-256 over what decides how profiles are checked: results of another way are another suite's."""
    ways = (UDP_SECONDS, SHARES, SMALL, PACKETS_SECONDS, EMPTY_AFTER, BUCKET_SECONDS, BURST_AGAIN, INTERVAL)
    more = (TCP_SECONDS, TCP_OMIT, LOSSES, JITTER, JITTER_RTT, JITTER_PINGS, TOGETHER_SECONDS, MIDDLE)
    return hashlib.sha256(repr((ways, more)).encode()).hexdigest()


class Lab(Protocol):
    """Nodes for a step."""

    async def enter(self, step: Step) -> Shaper:
        """Nodes of its cluster, clean and on the host network, with its profile ready to be applied."""
        ...

    def record(self, step: Step) -> RunRecord: ...

    async def leave(self) -> None:
        """Leave the nodes as somebody else would want to find them; nothing where none were entered."""
        ...


class ProfileBench:
    """Carries a plan out. runs: (step, id of its run) of what was stored; trouble: what stopped a step, in words."""

    def __init__(self, store: Store, lab: Lab, say: Say, probe: Callable[..., Probe] = Probe) -> None:
        self.store, self.lab, self.say, self.make_probe = store, lab, say, probe
        self.runs: list[tuple[Step, str]] = []
        self.trouble: list[str] = []
        # By tier: goodput, bit/s, that the slower direction showed.
        self._carried: dict[str, float] = {}

    async def run(self, steps: Sequence[Step]) -> None:
        """Every step; one that fails stops no other. What was measured is stored whatever ends the rest."""
        try:
            for number, step in enumerate(steps, 1):
                left = sum(
                    other.seconds() for other in steps[number:]
                )  # anew: each step tells how long the next take
                about = f"about {progress.readable(step.seconds())}, then {progress.readable(left)} more"
                self.say(f"[{number}/{len(steps)}] {step.profile.name} on {step.cluster} ({about})")
                began = time.monotonic()
                if await self._step(step):
                    progress.remember(f"bench-profiles-{step.timed_as}", time.monotonic() - began)
        finally:
            await asyncio.shield(self.lab.leave())

    async def _step(self, step: Step) -> bool:
        """Whether it was carried out to its end, so that its time is one to go by."""
        run_id = None
        try:
            step = self._fitted(step)
            shaper = await self.lab.enter(step)
            run_id = self.store.begin_run(self.lab.record(step), ())
            self.runs.append((step, run_id))
            self.store.set_run_state(run_id, "running")
            refused = False
            async for check in self._checks(step, shaper):
                self.store.add_profile_check(run_id, check)
                refused = check.expected is None and check.verdict == "not-applicable"
            self.store.set_run_state(run_id, "done")
            return not refused
        except (NodeError, UserError, TimeoutError) as error:
            self.trouble.append(f"{step.profile.name} on {step.cluster}: {error}")
            self.say(f"  {error}")
            if run_id:
                self.store.set_run_state(run_id, "failed")
            await self.lab.leave()
            return False
        except BaseException:
            if run_id:
                self.store.set_run_state(run_id, "failed")
            raise

    def _fitted(self, step: Step) -> Step:
        """A bucket is scaled to what the nodes carry: where their CPU is the limit it would not empty in time."""
        carried = self._carried.get(step.tier.name)
        tier = step.tier
        if step.kind != "two-rates" or carried is None or not tier.rate or not tier.sustained:
            return step
        cap = Cap(tier.rate, 0, 0, tier.mtu or DEFAULT_MTU, round(tier.overhead))
        rate = min(tier.rate, carried * tier.rate / cap.goodput())
        return replace(step, profile=with_bucket(tier, rate)) if rate > 1.5 * tier.sustained else step

    # -- what is checked --------------------------------------------------------------------------

    async def _checks(self, step: Step, shaper: Shaper) -> AsyncIterator[ProfileCheck]:
        probe = self.make_probe(shaper.nodes)
        first, second = list(shaper.nodes)[:2]
        if step.kind in ("tier", "mtu"):
            checks = await shaper.prove(self.say)
            for check in checks:
                yield check
            carried = [c.measured for c in checks if c.name == "goodput" and c.measured is not None]
            if step.kind == "tier" and step.cluster == PAIR and carried:
                self._carried[step.tier.name] = min(carried)
            await probe.start(shaper.nodes, len(shaper.nodes) - 1)
            if step.profile.rate is None:
                async for check in self._uncapped(shaper, probe):
                    yield check
            if step.cluster == PAIR:
                if step.profile.rate is not None:
                    for share in SHARES:
                        yield await self._tried(partial(self._udp, shaper, probe, share))
                yield await self._packets(shaper, probe)
            elif step.profile.rate is not None:
                for check in await self._tried_all(lambda: self._together(shaper, probe)):
                    yield check
        else:
            what = {"two-rates": self._two_rates, "loss": self._loss, "jitter": self._jitter}[step.kind]
            refused = await self._in_force(shaper)
            if refused:
                name = {"two-rates": "burst-bytes"}.get(step.kind, step.kind)
                reason = f"not testable here: {refused}"
                unit = {"loss": "ratio", "jitter": "s"}.get(step.kind, "bytes")
                yield ProfileCheck(name, first, second, None, None, None, unit, "not-applicable", reason)
                return
            await probe.start(shaper.nodes)
            for check in await self._tried_all(lambda: what(shaper, probe)):
                yield check
        await probe.stop()

    async def _in_force(self, shaper: Shaper) -> str | None:
        """Put a variation in force; why it cannot be, in words. NodeError where its settings do not take."""
        await shaper.clear()
        tier = shaper.profile
        if tier.loss or tier.jitter:
            tried = await shaper.nodes.sh(TRY_NETEM, check=False)
            if any(done.exit_code != 0 for done in tried.values()):
                return "it takes netem, which the kernel of the nodes lacks"
        # Delays are found without jitter: they are of the mean.
        steady = _steady(shaper)
        await steady.calibrate()
        shaper.baseline = steady.baseline
        wrong = problems(await shaper.apply_and_read_back())
        if wrong:
            raise NodeError(f"profile {tier.name} is not in force: {wrong}")
        return None

    async def _uncapped(self, shaper: Shaper, probe: Probe) -> AsyncIterator[ProfileCheck]:
        for one, other in _pairs(shaper):
            for client, server in ((one, other), (other, one)):
                goodput = await probe.tcp(client, server, seconds=TCP_SECONDS, omit=TCP_OMIT)
                yield profiles_judge.judge_carried(client, server, goodput)

    async def _udp(self, shaper: Shaper, probe: Probe, share: float) -> ProfileCheck:
        client, server = _pairs(shaper)[0]
        cap = cap_of(shaper, client)
        await shaper.fill_bucket()
        payload = cap.mtu - INNER_HEADERS
        udp, idle = await probe.udp(
            client,
            server,
            offered=share * cap.rate * payload / cap.frame(payload),
            payload=payload,
            seconds=UDP_SECONDS,
            streams=streams_for(cap) if share > 1 else 1,
        )
        return profiles_judge.judge_udp(client, server, share, cap, udp, shaper.spare_cpu(idle))

    async def _packets(self, shaper: Shaper, probe: Probe) -> ProfileCheck:
        client, server = _pairs(shaper)[0]
        await shaper.fill_bucket()
        try:
            udp, _ = await probe.udp(client, server, offered=ENDLESS, payload=SMALL, seconds=PACKETS_SECONDS)
        except NodeError as error:  # a flood of them may leave the nodes no time to say how it went
            reason = f"not testable here: {error}"
            return ProfileCheck("packets", client, server, None, None, None, "1/s", "not-applicable", reason)
        cap = None if shaper.profile.rate is None else cap_of(shaper, client)
        return profiles_judge.judge_packets(client, server, udp, cap)

    async def _together(self, shaper: Shaper, probe: Probe) -> list[ProfileCheck]:
        """Every node sends to all others at once."""
        names = list(shaper.nodes)
        await shaper.fill_bucket()

        async def flow(client: str, server: str) -> float:
            others = [name for name in names if name != server]
            series = await probe.series(
                client, server, seconds=TOGETHER_SECONDS, interval=0.5, server_number=others.index(client)
            )
            return _middle(series)

        flows = [(client, server) for client in names for server in names if client != server]
        got = await asyncio.gather(*(flow(*one) for one in flows))
        sent = {name: sum(g for (c, _), g in zip(flows, got, strict=True) if c == name) for name in names}
        return [profiles_judge.judge_together(name, cap_of(shaper, name), sent[name]) for name in names]

    async def _two_rates(self, shaper: Shaper, probe: Probe) -> list[ProfileCheck]:
        client, server = _pairs(shaper)[0]
        tier, cap = shaper.profile, cap_of(shaper, client)
        assert tier.bucket and tier.sustained
        await shaper.fill_bucket()
        series = await probe.series(client, server, seconds=BUCKET_SECONDS, interval=INTERVAL)
        ended = time.monotonic()
        checks = profiles_judge.judge_bucket(client, server, tier.bucket, tier.sustained, cap, series)
        found = profiles_judge.drained(series, cap, tier.sustained)
        if found is None:
            return checks
        above = found.carried * cap.rate / cap.goodput() - tier.sustained
        await asyncio.sleep(min(LONGEST_PAUSE, BURST_AGAIN * above / tier.sustained))
        pause = time.monotonic() - ended
        again = await probe.series(client, server, seconds=REFILL_SECONDS, interval=INTERVAL)
        return [
            *checks,
            profiles_judge.judge_refill(client, server, tier.bucket, tier.sustained, cap, pause, again),
        ]

    async def _loss(self, shaper: Shaper, probe: Probe) -> list[ProfileCheck]:
        client, server = _pairs(shaper)[0]
        return [
            profiles_judge.judge_loss(client, server, shaper.profile.loss, await self._half(shaper, probe))
        ]

    async def _half(self, shaper: Shaper, probe: Probe) -> Udp:
        """Enough datagrams at half the rate."""
        client, server = _pairs(shaper)[0]
        cap = cap_of(shaper, client)
        payload = cap.mtu - INNER_HEADERS
        offered = cap.rate / 2 * payload / cap.frame(payload)
        seconds = max(UDP_SECONDS, math.ceil(1.1 * LEAST_DATAGRAMS * payload * 8 / offered))
        udp, _ = await probe.udp(client, server, offered=offered, payload=payload, seconds=seconds)
        return udp

    async def _jitter(self, shaper: Shaper, probe: Probe) -> list[ProfileCheck]:
        client, server = _pairs(shaper)[0]
        # The same delay without jitter: how far the machine spreads RTTs by itself.
        steady = _steady(shaper)
        await steady.apply()
        without = await steady.rtts(client, server, JITTER_PINGS, RTT_INTERVAL)
        await shaper.apply()
        rtts = await shaper.rtts(client, server, JITTER_PINGS, RTT_INTERVAL)
        udp = await self._half(shaper, probe)
        return [
            profiles_judge.judge_jitter(client, server, shaper.profile.jitter, without, rtts),
            profiles_judge.judge_overtaken(client, server, udp),
        ]

    # -- trying again -----------------------------------------------------------------------------

    async def _tried(self, measure: Callable[[], Awaitable[ProfileCheck]]) -> ProfileCheck:
        async def one() -> list[ProfileCheck]:
            return [await measure()]

        return (await self._tried_all(one))[0]

    async def _tried_all(self, measure: Callable[[], Awaitable[list[ProfileCheck]]]) -> list[ProfileCheck]:
        """The checks of the last of at most ATTEMPTS attempts; what failed before stays in their reasons."""
        earlier: dict[tuple[str, str, str], str] = {}
        checks: list[ProfileCheck] = []
        for attempt in range(1, ATTEMPTS + 1):
            checks = [with_history(check, earlier) for check in await measure()]
            failed = [check for check in checks if check.verdict == "fail"]
            if not failed or attempt == ATTEMPTS:
                break
            for check in failed:
                shaping = f"attempt {attempt} measured {show(check.measured, check.unit)}"
                self.say(
                    f"  {check.name}: {shaping}, expected {show(check.expected, check.unit)}; trying again"
                )
                earlier[place(check)] = "; ".join(filter(None, (earlier.get(place(check)), shaping)))
        return checks


def cap_of(shaper: Shaper, node: str) -> Cap:
    """What holds the node's traffic under the shaper's profile, which has a rate."""
    shaping = shaper.shaping_of(node)
    assert shaping.rate
    return Cap(
        rate=shaping.rate,
        burst=shaping.burst_at(shaping.rate),
        queue=shaping.queue_at(shaping.rate),
        mtu=shaping.mtu or DEFAULT_MTU,
        overhead=shaping.overhead,
    )


def _steady(shaper: Shaper) -> Shaper:
    """The same without jitter."""
    if not shaper.profile.jitter:
        return shaper
    return replace(shaper, profile=varied(shaper.profile, "steady", jitter=0.0))


def _pairs(shaper: Shaper) -> list[tuple[str, str]]:
    names = list(shaper.nodes)
    return [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]


def _middle(series: Sequence[Second]) -> float:
    """Goodput, bit/s, over the intervals that lie in MIDDLE."""
    inside = [one for one in series if one.start >= MIDDLE[0] - 0.1 and one.end <= MIDDLE[1] + 0.1]
    if not inside:
        raise NodeError("a transfer ended before the others had begun")
    return sum(one.received for one in inside) * 8 / sum(one.length for one in inside)
