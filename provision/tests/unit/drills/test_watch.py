"""The watcher: it keeps the cluster, writes what is felt, makes room for commands, and ends with its attempt."""

import asyncio
import os
import signal
import time
from dataclasses import replace

import pytest
from lab_drills import Hand

from overlaylab.core import lock
from overlaylab.core.errors import NodeError, UserError
from overlaylab.drills import attempt, watch
from overlaylab.drills.attempt import AtHand
from overlaylab.store import attempts


@pytest.fixture
def hand(tmp_path, own_cache) -> Hand:
    return Hand(tmp_path)


@pytest.fixture
def watcher(hand):
    """A process of its own, whose nodes answer nobody."""
    with lock.cluster_lock("pair", "beginning the drill") as locked:
        pid = watch.start(hand.now, locked)
    attempt.write(replace(hand.now, watcher=pid))
    yield pid
    if lock.holder("pair") == pid:
        os.kill(pid, signal.SIGKILL)


def until(holds, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_others_are_refused_and_told_how_to_end_it(hand, watcher) -> None:
    assert lock.holder("pair") == watcher and hand.now.lives
    with pytest.raises(UserError) as refused, lock.cluster_lock("pair", "measuring weave"):
        pass
    assert f"process {watcher}, drill large-downloads-hang" in str(refused.value)
    assert "./task drill:stop ends the drill" in str(refused.value)


def test_it_ends_with_its_attempt(hand, watcher) -> None:
    attempt.forget("pair")
    until(lambda: not lock.is_held("pair"))


def test_a_killed_one_leaves_an_abandoned_attempt(hand, watcher) -> None:
    os.kill(watcher, signal.SIGKILL)
    until(lambda: not lock.is_held("pair"))
    assert attempt.settle("pair", lambda text: None) is None
    assert [one.state for one in attempts.attempts(hand.store)] == ["abandoned"]


# -- in this process --------------------------------------------------------------------------------


@pytest.fixture
def at_work(hand, monkeypatch):
    """A watcher in this process, on nodes that answer."""
    monkeypatch.setattr(AtHand, "nodes", lambda self: hand.nodes)
    return watch.Watcher(hand.now, hand.store)


def running(hand: Hand) -> int:
    return hand.store.db.execute("SELECT count(*) FROM _attempt_cycle WHERE phase = 'running'").fetchone()[0]


async def seen(hand: Hand, more: int) -> None:
    for _ in range(400):
        if running(hand) >= more:
            return
        await asyncio.sleep(0.05)
    pytest.fail("nothing was stored")


async def test_what_is_felt_is_stored_until_the_end(hand, at_work) -> None:
    before = running(hand)
    watching = asyncio.create_task(at_work.run())
    await seen(hand, before + 4)
    attempt.forget("pair")
    await asyncio.wait_for(watching, 20)
    roles = hand.store.db.execute("SELECT DISTINCT role, node FROM _attempt_cycle").fetchall()
    assert sorted(map(tuple, roles)) == [("client", "node1"), ("server", "node2")]


async def test_it_lets_go_of_the_probes_for_a_command(hand, at_work) -> None:
    before = running(hand)
    watching = asyncio.create_task(at_work.run())
    await seen(hand, before + 1)
    async with (
        asyncio.timeout(20),
        lock.turn(watch.commands("pair"), print, "waiting"),
        lock.turn(watch.probes("pair"), print, "waiting"),
    ):
        stood = running(hand)
        await asyncio.sleep(0.6)
        assert running(hand) == stood
    attempt.forget("pair")
    await asyncio.wait_for(watching, 20)


async def test_nodes_that_stay_away_end_it(hand, at_work, monkeypatch) -> None:
    monkeypatch.setattr(watch, "GONE", 0.5)
    for node in hand.nodes.values():
        node.printed, node.after = (), NodeError(f"{node.name}: no SSH")
    await asyncio.wait_for(at_work.run(), 20)
    assert attempts.attempts(hand.store)[0].state == "abandoned"
    assert attempt.read("pair") is None
