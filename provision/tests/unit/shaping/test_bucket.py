"""The bucket of a tier with two rates: what it holds, and when it is looked at next."""

import subprocess

import pytest

from overlaylab.shaping.on_node import bucket as keeper
from overlaylab.shaping.on_node.bucket import LONGEST, SHORTEST, Bucket

MB = 1e6


def bucket() -> Bucket:
    """100 MB; 100 MB/s while it lasts, 10 MB/s then."""
    return Bucket(100 * MB, 100 * MB, 10 * MB)


def test_a_bucket_is_full_at_launch_and_drains_by_what_exceeds_the_sustained_rate() -> None:
    one = bucket()
    assert (one.level, one.empty) == (100 * MB, False)
    one.account(1.0, 60 * MB)
    assert one.level == pytest.approx(50 * MB)


def test_it_never_holds_more_than_its_size() -> None:
    one = bucket()
    one.account(1000.0, 0)
    assert one.level == 100 * MB


def test_it_is_looked_at_when_it_could_be_empty_at_the_soonest() -> None:
    one = bucket()
    assert one.pause() == pytest.approx(100 / 90)
    one.account(1.0, 90 * MB)
    assert one.pause() == pytest.approx(20 / 90)
    one.account(0.22, 21.9 * MB)
    assert one.pause() == SHORTEST
    assert Bucket(1e12, 100 * MB, 10 * MB).pause() == LONGEST


def test_what_was_sent_beyond_the_bucket_is_paid_back() -> None:
    one = bucket()
    one.account(1.2, 120 * MB)
    assert (one.level, one.empty) == (pytest.approx(-8 * MB), True)
    one.account(1.0, 10 * MB)  # at the sustained rate
    assert (one.level, one.empty) == (pytest.approx(-8 * MB), True)


def test_after_a_pause_it_bursts_again() -> None:
    one = bucket()
    one.account(1.2, 112 * MB)
    assert (one.level, one.empty, one.pause()) == (pytest.approx(0), True, pytest.approx(1.0))
    one.account(0.9, 0)
    assert one.empty  # 9 of the 10 MB that a tenth of a second at the rate takes
    one.account(0.1, 0)
    assert (one.level, one.empty) == (pytest.approx(10 * MB), False)


def test_over_a_long_time_no_more_goes_out_than_bucket_and_sustained_rate() -> None:
    """A sender that always sends: looks come as `pause` says, and each is 30 ms late."""
    one, seconds, sent = bucket(), 0.0, 0.0
    while seconds < 100:
        step = one.pause() + 0.03
        amount = step * (10 if one.empty else 100) * MB
        one.account(step, amount)
        seconds, sent = seconds + step, sent + amount
    allowed = (100 + 10 * seconds) * MB
    assert 0.99 * allowed < sent < 1.05 * allowed


def test_a_node_whose_looks_take_long_begins_to_change_the_rate_earlier() -> None:
    one = bucket()
    one.lead = 0.1
    assert one.pause() == pytest.approx(100 / 90 - 0.2)
    one.account(1.0, 100 * MB)  # 10 MB left, and 9 would go out until the rate has changed
    assert one.empty is False
    one.account(0.02, 2 * MB)
    assert one.empty is True


def test_an_idle_node_keeps_even_a_bucket_that_would_not_last_for_a_look() -> None:
    one = Bucket(5 * MB, 100 * MB, 10 * MB, lead=0.1)
    one.account(1.0, 0)
    assert (one.level, one.empty) == (5 * MB, False)


def test_it_ends_with_the_reason_where_the_profile_was_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = "qdisc htb 1: root refcnt 2\n Sent 1234 bytes 5 pkt (dropped 0, overlimits 0 requeues 0)\n"

    def run(argv: list[str], **how: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(argv, 0, shown)

    monkeypatch.setattr(keeper.subprocess, "run", run)
    assert keeper.counted("eth1") == 1234
    shown = "qdisc noqueue 0: root refcnt 2\n Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)\n"
    with pytest.raises(LookupError, match="eth1 has no HTB any more"):
        keeper.counted("eth1")
