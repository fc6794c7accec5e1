"""One command at a time per cluster."""

import fcntl
import json
import os
import select
import signal
import subprocess
import sys

import pytest

from overlaylab.core.errors import UserError
from overlaylab.core.lock import cluster_lock, handed_over, is_held, named
from overlaylab.core.lock import holder as holder_of

HOLDER = """
import time
from overlaylab.core.lock import cluster_lock
with cluster_lock("pair", "measuring weave"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(own_cache):
    """Another process that holds the lock of the cluster pair."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_a_second_command_is_refused_with_the_owners_name(holder) -> None:
    with pytest.raises(UserError) as wrong, cluster_lock("pair", "bringing nodes up"):
        pass
    assert (wrong.value.where, wrong.value.rule) == ("cluster pair", "is used by one command at a time")
    assert str(wrong.value.seen).startswith(f"process {holder.pid}, measuring weave, since 20")
    assert str(wrong.value.seen).endswith(" UTC")


def test_refusing_leaves_the_owners_name_for_the_next(holder, own_cache) -> None:
    for _ in range(2):
        with pytest.raises(UserError, match="measuring weave"), cluster_lock("pair", "bringing nodes up"):
            pass
    assert json.loads((own_cache / "clusters" / "pair" / "lock").read_text())["pid"] == holder.pid


def test_who_asks_is_told_whether_it_is_held_and_holds_nothing(holder) -> None:
    assert (is_held("pair"), is_held("trio"), is_held("../\0")) == (True, False, False)
    with cluster_lock("trio", "measuring weave"):
        assert is_held("trio")
    assert not is_held("trio")


def test_another_cluster_is_free(holder) -> None:
    with cluster_lock("trio", "measuring weave"):
        pass


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_lock_ends_with_its_owner_however_it_ends(holder, own_cache, how) -> None:
    holder.send_signal(how)
    holder.wait(timeout=10)
    with cluster_lock("pair", "resuming"):
        owner = json.loads((own_cache / "clusters" / "pair" / "lock").read_text())
        assert (owner["pid"], owner["purpose"]) == (os.getpid(), "resuming")


def test_a_lock_can_be_had_again_in_the_same_process(own_cache) -> None:
    for _ in range(2):
        with cluster_lock("pair", "measuring"):
            pass
    assert (own_cache / "clusters" / "pair" / "lock").read_text() == ""


def test_an_error_inside_gives_the_lock_back(own_cache) -> None:
    with pytest.raises(ZeroDivisionError), cluster_lock("pair", "measuring"):
        raise ZeroDivisionError
    with cluster_lock("pair", "again"):
        pass


def test_an_owner_that_has_not_said_its_name_yet_is_another_process(holder, own_cache) -> None:
    (own_cache / "clusters" / "pair" / "lock").write_text("")
    with pytest.raises(UserError, match="found: another process"), cluster_lock("pair", "again"):
        pass


def test_a_folder_is_held_until_its_holder_ends(tmp_path) -> None:
    holding = f"""
import time
from pathlib import Path
from overlaylab.core.lock import held
with held(Path({str(tmp_path / "folder")!r})):
    print("held", flush=True)
    time.sleep(60)
"""
    first, second = (
        subprocess.Popen([sys.executable, "-c", holding], stdout=subprocess.PIPE, text=True) for _ in range(2)
    )
    assert first.stdout is not None
    assert second.stdout is not None
    ready, _, _ = select.select([first.stdout, second.stdout], [], [], 60)
    (holder,) = ready
    waiting = second if holder is first.stdout else first
    descriptor = os.open(tmp_path / "folder", os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
    (first if waiting is second else second).kill()
    assert waiting.stdout.readline() == "held\n"
    waiting.kill()
    for process in (first, second):
        process.wait()
        process.stdout.close()


def test_a_lock_is_handed_over_without_a_gap(own_cache) -> None:
    with cluster_lock("pair", "beginning a drill") as descriptor:
        kept = os.dup(descriptor)
        with handed_over(kept, "drill slow", "End it"):
            assert named("pair") == os.getpid()
    # Whoever handed it over has let go of it: its other holder has not.
    with cluster_lock("pair", "beginning a drill") as descriptor:
        child = subprocess.Popen(
            [sys.executable, "-c", TAKES_OVER, str(descriptor)], pass_fds=[descriptor], stdout=subprocess.PIPE
        )
        assert child.stdout.readline() == b"held\n"
    assert holder_of("pair") == child.pid
    with (
        pytest.raises(UserError, match=r"drill slow, since .*\)\. End it"),
        cluster_lock("pair", "measuring"),
    ):
        pass
    child.kill()
    child.wait()
    assert holder_of("pair") is None


TAKES_OVER = """
import sys, time
from overlaylab.core.lock import handed_over
with handed_over(int(sys.argv[1]), "drill slow", "End it"):
    print("held", flush=True)
    time.sleep(60)
"""
