"""The drill at hand: kept for its owner, and abandoned where nobody is at it any more."""

from dataclasses import replace

import pytest
from lab_drills import Hand

from overlaylab.core import lock
from overlaylab.core.errors import UserError
from overlaylab.drills import attempt
from overlaylab.store import attempts


@pytest.fixture
def hand(tmp_path, own_cache) -> Hand:
    return Hand(tmp_path)


def test_it_is_read_as_it_was_written_and_by_its_owner_alone(hand, own_cache) -> None:
    changed = replace(hand.now, hints=(0, 2), refused=("firewall",), watcher=4711)
    attempt.write(changed)
    assert hand.now == changed
    assert attempt.path("pair").stat().st_mode & 0o777 == 0o600
    assert attempt.clusters() == ["pair"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"attempt_id": "a"}'])
def test_what_cannot_be_read_is_no_drill(own_cache, text) -> None:
    attempt.path("pair").parent.mkdir(parents=True)
    attempt.path("pair").write_text(text)
    assert attempt.read("pair") is None


def test_one_whose_watcher_is_gone_is_abandoned(hand) -> None:
    attempt.write(replace(hand.now, watcher=4711))
    said: list[str] = []
    assert attempt.settle("pair", said.append) is None
    assert attempts.attempt(hand.store, attempts.attempts(hand.store)[0].attempt_id).state == "abandoned"
    assert attempt.read("pair") is None
    assert "large-downloads-hang was cut off" in said[0]
    assert attempt.settle("pair", said.append) is None and len(said) == 1


def test_one_that_is_watched_is_at_hand(hand, monkeypatch) -> None:
    attempt.write(replace(hand.now, watcher=4711))
    monkeypatch.setattr(lock, "holder", lambda cluster: 4711)
    assert attempt.settle("pair", print) == hand.now
    attempt.write(replace(hand.now, boot="an earlier boot"))
    assert attempt.settle("pair", lambda text: None) is None


def test_a_drill_whose_files_have_changed_is_not_judged(hand) -> None:
    with pytest.raises(UserError, match="must be as it was when the drill was begun"):
        replace(hand.now, digest="0" * 64).stage(hand.nodes)
