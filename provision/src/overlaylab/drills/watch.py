"""The process that writes what is felt while a drill is at hand, and keeps its cluster from all else.

It holds the cluster's lock. `commands` is the lock that the drill's other commands hold in turn, and `probes` that of
whoever measures: while a command is at the drill, the watcher lets go of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from overlaylab.core import lock, paths
from overlaylab.core.errors import NodeError, UserError
from overlaylab.drills import attempt, probing, scripts
from overlaylab.drills.attempt import AtHand
from overlaylab.drills.probing import Seen
from overlaylab.nodes.ssh import Nodes
from overlaylab.providers import registry
from overlaylab.store.store import Store

# Seconds after which nodes that do not answer are taken to be gone.
GONE = 300.0
# Seconds after which a drill that nobody ended is.
LONGEST = 12 * 3600.0
# Seconds between two looks at whether somebody else wants to measure.
LOOK = 0.25
# Seconds from one word to hosts with a dead man's timer to the next.
RENEW = 120.0
# Seconds that a watcher has to begin, and to end.
PATIENCE = 30.0

# What others are told to do who want the cluster.
FIX = "./task drill:stop ends the drill; ./task drill:status says what it is about"


def purpose(drill: str) -> str:
    """Why the cluster is locked."""
    return f"drill {drill}"


def commands(cluster: str) -> str:
    return f"drill-{cluster}"


def probes(cluster: str) -> str:
    return f"probes-{cluster}"


def start(hand: AtHand, locked: int) -> int:
    """Start the watcher and hand the cluster's lock over to it; its process. UserError where it does not begin."""
    folder = paths.cache() / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"drill-{hand.attempt_id}.log"
    with log.open("ab") as file:
        watcher = subprocess.Popen(
            [sys.executable, "-m", "overlaylab", "drill", "watch", hand.cluster, str(locked)],
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, pass_fds=[locked], start_new_session=True,
        )  # fmt: skip
    deadline = time.monotonic() + PATIENCE
    # This process holds the lock too: who holds it cannot be asked, but who wrote its name into it.
    while lock.named(hand.cluster) != watcher.pid:
        if watcher.poll() is not None or time.monotonic() > deadline:
            watcher.kill()
            attempt.abandon(hand)
            raise UserError(
                "drill", "its watcher did not begin", seen=log.read_text(errors="replace")[-300:],
                fix="Type it again; ./task drill:stop puts the nodes back",
            )  # fmt: skip
        time.sleep(0.1)
    return watcher.pid


async def end(hand: AtHand) -> None:
    """Wait until the watcher of an attempt that has ended is gone; end it where it does not go by itself."""
    if hand.watcher is None:
        return
    deadline = time.monotonic() + PATIENCE
    while lock.holder(hand.cluster) == hand.watcher:
        if time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError):
                os.kill(hand.watcher, signal.SIGKILL)
        await asyncio.sleep(0.1)


async def watch(cluster: str, locked: int) -> None:
    """Be the watcher of the drill at hand until it ends. locked: the descriptor of the cluster's lock."""
    hand = attempt.read(cluster)
    if hand is None:
        return
    with (
        lock.handed_over(locked, purpose(hand.drill), FIX),
        Store.open(hand.database) as store,
    ):
        await Watcher(hand, store).run()


@dataclass
class Watcher:
    """What is felt at each end, one task for each."""

    hand: AtHand
    store: Store

    def __post_init__(self) -> None:
        self.nodes: Nodes = self.hand.nodes()
        self.on_it = self.hand.stage(self.nodes)
        self.answered = time.monotonic()
        # A dead man's timer waits for a word where the nodes are somebody's hosts.
        self.renews = registry.capabilities(self.hand.provider).patience is not None

    @property
    def goes_on(self) -> bool:
        """Whether its attempt still runs."""
        now = attempt.read(self.hand.cluster)
        return now is not None and now.attempt_id == self.hand.attempt_id

    @property
    def must_wait(self) -> bool:
        return lock.is_taken(commands(self.hand.cluster))

    async def run(self) -> None:
        renewing = asyncio.create_task(self._renew()) if self.renews else None
        try:
            await self._run()
        finally:
            if renewing:
                renewing.cancel()
            self.nodes.drop()

    async def _renew(self) -> None:
        provider = self.hand.made_by(print)
        while True:
            # A host that does not answer now cleans itself up: the timer is there for that.
            with contextlib.suppress(NodeError):
                await provider.renew()
            await asyncio.sleep(RENEW)

    async def _run(self) -> None:
        while self.goes_on:
            if self.must_wait:
                await asyncio.sleep(LOOK)
                continue
            async with lock.turn(probes(self.hand.cluster), print, "somebody else measures"):
                await self._measure()
            if time.monotonic() - self.answered > GONE or self.hand.since > LONGEST:
                print("the nodes are gone, or nobody comes back to the drill")
                attempt.abandon(self.hand)

    async def _measure(self) -> None:
        """Until a command wants to, the attempt has ended, or no end answers."""
        told: asyncio.Queue[Seen] = asyncio.Queue()
        running = [asyncio.create_task(self._of(role, told.put_nowait)) for role in self.on_it.roles]
        try:
            while self.goes_on and not self.must_wait and not all(task.done() for task in running):
                with contextlib.suppress(TimeoutError):
                    seen = [await asyncio.wait_for(told.get(), LOOK)]
                    self.answered = time.monotonic()
                    attempt.add_cycles(self.store, self.hand, attempt.RUNNING, seen)
                if time.monotonic() - self.answered > GONE or self.hand.since > LONGEST:
                    return
        finally:
            for task in running:
                task.cancel()
            for outcome in await asyncio.gather(*running, return_exceptions=True):
                if isinstance(outcome, Exception):
                    print(f"{type(outcome).__name__}: {outcome}")

    async def _of(self, role: str, tell: Callable[[Seen], None]) -> None:
        place = scripts.at(self.on_it.places, role)
        node = self.nodes[place.node]
        server, limit = probing.server_of(self.on_it.places), self.on_it.limits[role]
        while True:
            try:
                async with aclosing(probing.cycles(node, place, server, limit)) as running:
                    async for cycle in running:
                        tell(Seen(role, time.monotonic(), cycle))
            except NodeError as error:
                # It may be booting, or be cut off by what the trainee does.
                print(error)
                await asyncio.sleep(1)
