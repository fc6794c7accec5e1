"""The store under a run of short trials that is killed at any moment, and on a disk that is full."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from lab_trouble import forked, measure

from overlaylab.core import paths
from overlaylab.store.store import Store

# ./task test:kills takes a hundred.
KILLS = int(os.environ.get("OVERLAYLAB_KILLS") or 6)
# Seconds until a kill, at most: from before the file is there to some dozens of trials.
LONGEST = 0.5


def whole(path: Path) -> Counter:
    """How many trials of the database are ok, once it was found whole: each with output, samples and proof, once."""
    with Store.open(path) as store:
        assert store.db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert store.db.execute("PRAGMA foreign_key_check").fetchall() == []
        rows = store.db.execute(
            "SELECT t.trial_id, t.run_id, t.benchmark, t.overlay, t.status, t.stdout IS NOT NULL AS has_output,"
            " (SELECT count(*) FROM result AS r WHERE r.trial_id = t.trial_id AND r.metric IS NOT NULL) AS samples,"
            " (SELECT count(*) FROM evidence AS e WHERE e.trial_id = t.trial_id) AS proof FROM trial AS t"
        ).fetchall()
        done = [row for row in rows if row["status"] == "ok"]
        assert not [row["trial_id"] for row in rows if row["status"] in ("failed", "void")]
        assert all(row["has_output"] for row in done)
        # Half a trial would have fewer, one that was stored twice more than the others of its kind.
        kinds: dict[tuple, set] = {}
        for row in done:
            found = kinds.setdefault((row["benchmark"], row["overlay"]), set())
            found.add((row["samples"], row["proof"]))
        assert all(len(found) == 1 and all(min(one) > 0 for one in found) for found in kinds.values()), kinds
        for row in rows:
            if row["status"] != "ok":
                assert (row["has_output"], row["samples"], row["proof"]) == (0, 0, 0)
        return Counter({row["trial_id"]: 1 for row in done})


def told(reader: int) -> list[int]:
    with os.fdopen(reader) as stream:
        return [int(line) for line in stream if line.endswith("\n")]


def test_killed_at_random_moments_it_loses_nothing_and_completes_the_plan(tmp_path, own_cache):
    path, chance, acknowledged = tmp_path / "lab.sqlite", random.Random(6), Counter()
    killed = 0
    between: list[int] = []
    while killed < KILLS:
        process, reader = forked(str(path))
        time.sleep(chance.uniform(0, LONGEST))
        os.kill(process, signal.SIGKILL)
        between.append(len(stored := told(reader)))
        acknowledged.update(stored)
        _, status = os.waitpid(process, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0  # it may have been faster
        killed += os.WIFSIGNALED(status)
        done = whole(path)
        assert set(acknowledged) <= set(done), "a finished trial is lost"
        assert len(done) - len(acknowledged) <= killed, "more than the one that was stored and not yet told"
        assert [p.name for p in tmp_path.iterdir() if p != own_cache] == ["lab.sqlite"]
    run_id = asyncio.run(measure(str(path), lambda trial_id: acknowledged.update([trial_id])))
    assert set(acknowledged.values()) == {1}, "a trial was measured again after it had been stored"
    done = whole(path)
    print(f"{killed} kills, each after {min(between)} to {max(between)} stored trials, {sum(between)} in all")
    with Store.open(path) as store:
        run = store.run(run_id)
        assert (run.state, run.trials_done) == ("done", run.trials_planned)
        assert set(store.trial_ids(run_id)) <= set(done)


# -- a full disk ------------------------------------------------------------------------------------

# Of a disk, of the interpreter, of lab_trouble.py, of a folder for what comes out.
FULL = """
set -eu
mount -t tmpfs -o size=24m tmpfs "$1"
cd "$1"
python=$2 script=$3 kept=$4
"$python" "$script" lab.sqlite >"$kept/first" & sleep 0.05
while kill -0 $! 2>/dev/null && [ "$(wc -l <"$kept/first")" -lt 3 ]; do sleep 0.01; done
# The disk fills up while the run goes on: not a byte is left.
cat /dev/zero >ballast 2>/dev/null || true
code=0; wait $! || code=$?
echo $code >>"$kept/first"
cp lab.sqlite* "$kept"
code=0; "$python" "$script" lab.sqlite >"$kept/again" || code=$?
echo $code >>"$kept/again"
rm ballast
code=0; "$python" "$script" lab.sqlite >"$kept/room" || code=$?
echo $code >>"$kept/room"
ls
cp lab.sqlite "$kept/after.sqlite"
"""


@pytest.mark.root
def test_a_disk_that_fills_up_is_said_so_and_the_run_completes_once_there_is_room(tmp_path, own_cache):
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    kept.mkdir()
    here = Path(__file__).parents[2] / "support"
    words = ["unshare", "--mount", "sh", "-c", FULL, "sh", str(disk), sys.executable]
    done = subprocess.run(
        [*words, str(here / "lab_trouble.py"), str(kept)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{paths.PROVISION / 'src'}:{here}"},
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    told = {name: (kept / name).read_text().splitlines() for name in ("first", "again", "room")}
    for name in ("first", "again"):
        *_, message, code = told[name]
        assert code == "3" and message.startswith(
            f"{disk}/lab.sqlite: the disk is full or the file may not grow; what was stored before is intact"
        )
        assert "./task lab:resume completes a run" in message
    assert told["room"][-1] == "0"
    stored = [int(line) for lines in told.values() for line in lines[:-1] if line.isdecimal()]
    assert len(stored) == len(set(stored)), "a trial was measured again after it had been stored"
    # As the full disk left it, with its -wal: whole, with every trial that was told.
    assert {int(line) for line in told["first"][:-1] if line.isdecimal()} <= set(whole(kept / "lab.sqlite"))
    assert done.stdout.split() == ["lab.sqlite"]  # one plain file again
    after = whole(kept / "after.sqlite")
    with Store.open(kept / "after.sqlite") as store:
        run = store.run(store.find_run(None))
        assert run.state == "done" and run.trials_done == run.trials_planned == len(after) == len(stored)
