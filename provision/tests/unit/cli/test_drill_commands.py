"""The commands of drills: what they refuse before anything starts, and what they print."""

import json
from dataclasses import replace

import lab_attempts
import pytest
from click.testing import CliRunner
from lab_drills import Hand

from overlaylab.cli import drill_start
from overlaylab.cli.commands.drill import command
from overlaylab.core import lock
from overlaylab.core.errors import UserError
from overlaylab.drills import attempt, proofs
from overlaylab.providers import requirements
from overlaylab.providers.requirements import Verdict
from overlaylab.specs import drill as drills
from overlaylab.store.store import Store


@pytest.fixture
def database(tmp_path, own_cache, monkeypatch) -> Store:
    monkeypatch.setenv("LAB_DB", str(tmp_path / "lab.sqlite"))
    monkeypatch.delenv("COLUMNS", raising=False)  # nothing is folded
    return Store.open(tmp_path / "lab.sqlite")


def typed(*words: str) -> str:
    done = CliRunner().invoke(command, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("words", [["status"], ["hint"], ["check"], ["solve"]])
def test_without_a_drill_there_is_nothing_to_do(own_cache, words) -> None:
    with pytest.raises(UserError, match="cluster pair: has no drill at hand"):
        typed(*words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "DRILL: must name a drill, or LEVEL, COURSE or RANDOM=1"),
        (["--drill", "large-downloads-hang", "--level", "1"], "DRILL: names one: not with LEVEL"),
        (["--drill", "nothing-works"], "DRILL: must be a drill"),
        (["--course", "knitting"], "LEVEL, COURSE: must leave a drill"),
        (
            ["--drill", "large-downloads-hang", "--inventory", "hosts.yml"],
            "INVENTORY: names somebody's hosts",
        ),
        (["--drill", "large-downloads-hang", "--overlay", "weave"], "OVERLAY: must be one that"),
    ],
)
def test_what_cannot_be_begun_is_refused_first(database, words, said) -> None:
    with pytest.raises(UserError, match=said):
        typed("start", *words)


def test_one_drill_at_a_time(database, tmp_path, monkeypatch) -> None:
    hand = Hand(tmp_path)
    attempt.write(replace(hand.now, watcher=4711))
    monkeypatch.setattr(lock, "holder", lambda cluster: 4711)
    with pytest.raises(UserError, match="has one drill at a time"):
        typed("start", "--drill", "large-downloads-hang")
    shown = typed("status")
    assert hand.drill.ticket.strip() in shown
    assert "0 hints, 0 failed checks" in shown and "800 Mbit/s" in shown
    for word in hand.drill.topics:  # of the cause, nothing is told
        assert word not in shown


def test_the_next_of_a_level_is_one_that_was_not_tried(monkeypatch) -> None:
    first = drills.load("large-downloads-hang")
    second = replace(first, name="slow")
    monkeypatch.setattr(drill_start, "proven", lambda: [first, second])

    def pick(level: int | None, course: str | None, tried: list[str]) -> drills.Drill:
        return drill_start.pick(None, level, course, False, tried, None, "libvirt")

    assert pick(1, None, []) == first
    assert pick(1, None, [first.name]) == second
    assert pick(None, "encapsulation-and-mtu", ["slow", first.name]) == first


def test_what_does_not_run_here_is_not_among_those_to_be_taken(monkeypatch) -> None:
    """A game day of such came to a drill that could not begin, again and again."""
    runs = drills.load("large-downloads-hang")
    on_vms = replace(runs, name="on-vms", needs=replace(runs.needs, own_kernel=True))
    monkeypatch.setattr(drill_start, "proven", lambda: [on_vms, runs])
    monkeypatch.setattr(requirements, "verdict", lambda *_: Verdict(True))
    assert drill_start.among(1, None, None, "lxc") == [runs]
    assert drill_start.among(1, None, None, "libvirt") == [on_vms, runs]


def test_a_drill_that_was_not_proven_says_so(monkeypatch, capsys) -> None:
    monkeypatch.setattr(proofs, "read", lambda drill: ())
    assert drill_start.pick("large-downloads-hang", None, None, False, [], None, None).level == 1
    assert "large-downloads-hang was not proven yet" in capsys.readouterr().err


def test_history_has_every_attempt(database) -> None:
    assert typed("history") == ""  # said, and nothing printed
    lab_attempts.repaired(database, trainee="Ada")
    shown = typed("history")
    assert "Ada" in shown and "repaired" in shown and "1 of 1 repaired" in shown
    assert typed("history", "--drill", "large-downloads-hang") == shown


def test_the_list_tells_topics_after_an_attempt_alone(database) -> None:
    drill = drills.load("large-downloads-hang")
    assert json.loads((drill.folder / "proof.json").read_text())["proofs"]
    assert drill.topics[0] not in typed("list", "--provider", "libvirt")
    lab_attempts.repaired(database)
    assert drill.topics[0] in typed("list", "--provider", "libvirt")
