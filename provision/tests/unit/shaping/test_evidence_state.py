"""A node's state beside a trial: idle share, what is left in a bucket, its units."""

import json
import subprocess

import pytest
from lab_builders import cpu

from overlaylab.shaping.node_state import idle_share, read_state, state_script


@pytest.mark.parametrize(
    ("busy", "idle", "waiting", "share"),
    [(75, 25, 0, 0.25), (0, 50, 50, 1.0), (100, 0, 0, 0.0), (0, 0, 0, None)],
)
def test_idle_share_counts_waiting_for_the_disk_as_idle(busy, idle, waiting, share) -> None:
    before = {"cpu": cpu(1000, 2000)}
    after = {"cpu": cpu(1000 + busy, 2000 + idle) | {"iowait": waiting}}
    assert idle_share(before, after) == share


def test_the_level_of_a_bucket_follows_from_its_note_and_the_bytes_since() -> None:
    """Kept at uptime 100 with 50 MB left; 10 s later, 30 MB have gone out and 10 s at 16 Mbit/s come back."""
    note = {
        "level": 50e6,
        "capacity": 60e6,
        "sustained": 16e6,
        "empty": False,
        "at": 100.0,
        "bytes": 1000,
        "resets": 0,
    }
    htb = {"kind": "htb", "root": True, "bytes": 30_001_000}

    def level(**changes) -> float:
        state = {"uptime": 110.0, "qdisc": [htb | changes], "bucket": note}
        return read_state(json.dumps(state))["bucket"]["level_now"]

    assert level() == pytest.approx(40e6)
    assert level(bytes=1000) == 60e6  # it holds no more
    note |= {"at": 110.5, "bytes": 31_000_000}  # written after clock and counter were read
    assert level() == 50e6


def test_a_node_of_one_rate_has_no_bucket() -> None:
    assert "bucket" not in read_state('{"uptime": 1, "qdisc": []}')


def test_a_nodes_state_holds_the_samples_of_its_units_and_none_without() -> None:
    """The script itself, on this machine: lo has all that it reads."""
    printed = subprocess.run(
        ["sh", "-c", state_script("lo", ["overlaylab-absent.service"])],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    state = read_state(printed)
    assert state["units"] == {}
    assert "units_during" in state
    assert "units" not in state_script("lo")
