"""``profile apply``: proven where it was not, left alone where it was, and what nodes remember of it."""

import json
import re
from dataclasses import replace

import pytest
from lab_shaper import A1, BASELINE, PAIR, READBACK, network, readback

from overlaylab.cli.commands.profile import _apply, _apply_fast
from overlaylab.core.model import ProfileCheck
from overlaylab.shaping import record as profile_record
from overlaylab.shaping.record import Record, in_words, made, on_node
from overlaylab.shaping.shaper import Shaper
from overlaylab.specs.inventory import EXTERNAL
from overlaylab.specs.profile import load_profile


class Memory:
    """What one node remembers: a record, and the digest of what is in force."""

    def __init__(self, found: Shaper, name: str) -> None:
        self.found, self.name = found, name
        self.record, self.digest = "null", ""
        node = found.nodes[name]
        others = node.answers
        node.answers = {
            "<<'RECORD'": self.keep,
            "|| echo null": lambda _: f"{self.record}\n{self.digest}\n",
            "ip netns attach": "made\n",
            "ip netns delete": "",
            READBACK: self.read_back,
            "tc -batch": self.apply,
            '[ -d "$state" ] || exit 0': self.clear,
        } | {key: answer for key, answer in others.items() if key != READBACK}

    def keep(self, script: str) -> str:
        self.record = script.splitlines()[2]
        return ""

    def apply(self, _: str) -> str:
        before, self.digest = self.digest, self.found.shaping_of(self.name).digest
        return "unchanged\n" if self.digest == before else "changed\n"

    def read_back(self, script: str) -> str:
        self.apply(script)
        return readback(self.found.shaping_of(self.name))

    def clear(self, _: str) -> str:
        self.record, self.digest = "null", ""
        return ""


@pytest.fixture
def found() -> Shaper:
    return network(BASELINE)


@pytest.fixture
def memory(found: Shaper) -> dict[str, Memory]:
    return {name: Memory(found, name) for name in found.nodes}


def pings(found: Shaper) -> int:
    return sum("ping -n" in script for script in found.nodes["node1"].log)


async def test_applying_measures_proves_and_is_remembered(found, memory, capsys) -> None:
    """The rate was put in force without the latency, and nothing was said of it."""
    assert await _apply(found) == 0
    assert found.shaping_of("node1").peers[0].delay == pytest.approx((0.000966 - BASELINE) / 2)
    printed = capsys.readouterr().out
    for check in ("rtt-baseline", "rtt-idle", "goodput", "rtt-loaded"):
        assert f"{check} node1→node2: " in printed
    record, in_force = on_node(f"{memory['node2'].record}\n{memory['node2'].digest}")
    assert in_force and record.of_pairs == {PAIR: pytest.approx(BASELINE)}
    assert (record.profile, record.delayed, record.failed) == ("azure-a1", True, 0)
    assert record.checks == tuple(printed.splitlines())


async def test_applying_again_changes_and_measures_nothing(found, memory, capsys) -> None:
    await _apply(found)
    before, capsys_ = pings(found), capsys.readouterr()
    found.baseline = {}
    assert await _apply(found) == 0
    assert (pings(found), capsys.readouterr().out) == (before, "")
    assert capsys_.out


@pytest.mark.parametrize("lost", ["record", "digest"])
async def test_where_one_node_has_lost_it_all_is_measured_anew(found, memory, lost) -> None:
    await _apply(found)
    before = pings(found)
    setattr(memory["node2"], lost, "null" if lost == "record" else "")
    await _apply(found)
    assert pings(found) > before


async def test_another_profile_is_measured_anew(found, memory) -> None:
    await _apply(found)
    before = pings(found)
    found.profile = load_profile("azure-a2")
    await _apply(found)
    assert pings(found) > before
    assert json.loads(memory["node1"].record)["profile"] == "azure-a2"


async def test_fast_leaves_the_latency_out_and_says_so(found, memory, capsys) -> None:
    assert await _apply_fast(found) == 0
    assert pings(found) == 0
    assert found.shaping_of("node1").peers[0].delay == 0
    assert "azure-a1 is in force without its latency, and not proven (FAST=1)" in capsys.readouterr().err
    # What follows without FAST does not take it for proven.
    await _apply(found)
    assert pings(found) > 0


async def test_none_leaves_nothing(found, memory) -> None:
    await _apply(found)
    found.profile = load_profile("none")
    assert await _apply(found) == 0
    assert (memory["node1"].record, memory["node1"].digest) == ("null", "")


CHECKS = [
    ProfileCheck("goodput", "node1", "node2", 9e7, 9e7, None, "bit/s", verdict)
    for verdict in ("pass", "pass", "not-applicable")
]


def remembered(digest: str = "abc", **changes) -> tuple[Record | None, bool]:
    record = replace(made(A1, {PAIR: BASELINE}, CHECKS), digest_in_force=digest, **changes)
    script = profile_record.keep_script(record)
    return on_node(f"{script.splitlines()[2]}\nabc\n")


def test_a_record_of_something_else_than_what_is_in_force_is_not_trusted() -> None:
    assert remembered()[0] is not None
    assert remembered(digest="def") == (None, True)
    assert on_node("null\n") == (None, False)
    assert on_node("null\nabc\n") == (None, True)
    assert on_node('{"profile": "azure-a1"}\nabc\n') == (None, True)  # of another version


def test_it_is_told_in_words() -> None:
    known = remembered(at="2026-11-23T19:30:05+00:00")
    words = "azure-a1, since 2026-11-23 19:30 UTC; of its checks 2 passed, 1 cannot be made here"
    assert in_words({"node1": known, "node2": known}) == words
    assert in_words({"node1": known, "node2": (None, False)}) == f"node1: {words}; node2: none"
    fast = replace(made(A1, {}, None), digest_in_force="abc")
    assert re.fullmatch(
        r"azure-a1 without its latency \(FAST=1\), not proven, since .* UTC",
        in_words({"node1": (fast, True)}),
    )
    unknown = "one that a run put in force, without a proof that is kept"
    assert in_words({"node1": (None, True), "node2": (None, True)}) == unknown


async def test_hosts_of_somebody_else_keep_no_record(found, memory) -> None:
    """A reboot takes the profile away there, and would leave the record."""
    found.nodes.inventory = replace(found.nodes.inventory, provider=EXTERNAL)
    await _apply(found)
    assert found.shaping_of("node1").peers[0].delay > 0
    assert memory["node1"].record == "null"
