"""The demo that comes with the viewer: a viewer refuses an older schema, so it must be of the newest."""

import gzip
from pathlib import Path

import lab_attempts
import pytest

from overlaylab.core.errors import UserError
from overlaylab.report import comparison, demo
from overlaylab.store import attempts
from overlaylab.store.store import Store


def test_the_demo_is_of_the_newest_schema_with_nothing_to_be_made_anew(tmp_path) -> None:
    file = demo.unpacked(demo.DEMO, tmp_path)
    with Store.open(file, create=False) as store:
        assert comparison.refresh(store).made == (), "./task viewer:demo makes it current"
        runs = store.db.execute("SELECT suite, origin, accelerator FROM run ORDER BY suite").fetchall()
        assert {row["origin"] for row in runs} == {"measured"}
        assert {"full", "quick", "skybet-2017", "deitcher-2016", "bench:profiles"} <= {
            row["suite"] for row in runs
        }
    assert not list(tmp_path.glob("*.bak")), "it was of an older schema: ./task viewer:demo makes it current"


def test_one_whose_runs_are_told_by_older_statistics_is_made_anew_and_once(tmp_path) -> None:
    file = demo.unpacked(demo.DEMO, tmp_path)
    with Store.open(file, create=False) as store:
        store.db.execute("UPDATE _comparison_made SET made_by = made_by - 1")
        store.db.commit()
    copy = tmp_path / "old" / "demo.sqlite.gz"
    copy.parent.mkdir()
    copy.write_bytes(gzip.compress(file.read_bytes()))
    assert demo.make_current(copy)
    made = copy.read_bytes()
    assert not demo.make_current(copy)
    assert copy.read_bytes() == made


# Of the demo: two variants, seven blocks of 28.
RUN = "20261122T010819Z-ec5c"
SAID = (
    "SELECT trial_id - (SELECT min(trial_id) FROM trial AS first WHERE first.run_id = t.run_id), overlay, mode, block,"
    " position, status, argv, (SELECT group_concat(metric || value) FROM result AS r WHERE r.trial_id = t.trial_id),"
    " (SELECT count(*) FROM evidence AS e WHERE e.trial_id = t.trial_id)"
    " FROM trial AS t WHERE run_id = ? ORDER BY trial_id"
)
CHECKS = "SELECT name, client_node, measured, verdict FROM profile_check WHERE run_id = ? ORDER BY check_id"
VERDICTS = "SELECT overlay, mode, metric, ratio, interval_low, verdict FROM comparison WHERE run_id = ? ORDER BY 1, 2, 3"


def said(file, query: str) -> list[tuple]:
    with Store.open(file, create=False) as store:
        return [tuple(row) for row in store.db.execute(query, (RUN,))]


def packed_with(store: Store, file) -> None:
    store.db.commit()
    file.write_bytes(gzip.compress(Path(store.path).read_bytes()))


def test_a_run_is_added_whole_under_numbers_of_its_own(tmp_path) -> None:
    results = demo.unpacked(demo.DEMO, tmp_path)
    packed = tmp_path / "other" / "demo.sqlite.gz"
    packed.parent.mkdir()
    with Store.open(packed.parent / "without.sqlite") as store:
        store.db.execute("INSERT INTO _variant VALUES (1, 'weave', 'fastdp', 0)")
        packed_with(store, packed)
    demo.add(results, RUN, packed)
    added = demo.unpacked(packed, packed.parent)
    for query in (SAID, CHECKS, VERDICTS):
        assert said(added, query) == said(results, query) != []
    with Store.open(added, create=False) as store:
        assert store.db.execute("PRAGMA foreign_key_check").fetchall() == []
        assert [
            tuple(row) for row in store.db.execute("SELECT overlay, mode FROM _variant ORDER BY variant_id")
        ] == [
            ("weave", "fastdp"),
            ("host", None),
            ("macvlan", "bridge"),
        ]


def test_what_a_tool_declares_keeps_its_name_under_another_number(tmp_path) -> None:
    results = demo.unpacked(demo.DEMO, tmp_path)
    packed = tmp_path / "other" / "demo.sqlite.gz"
    packed.parent.mkdir()
    declare = "INSERT INTO metric VALUES (1000, ?, 's', 'lower', 'of a tool')"
    with Store.open(packed.parent / "without.sqlite") as store:
        store.db.execute(declare, ("other_wait",))
        packed_with(store, packed)
    with Store.open(results, create=False) as store:
        store.db.execute(declare, ("own_wait",))
        (goodput,) = store.db.execute("SELECT metric_id FROM metric WHERE name = 'goodput'").fetchone()
        for table in ("_sample", "_trial_summary", "_histogram"):
            store.db.execute(f"UPDATE {table} SET metric_id = 1000 WHERE metric_id = ?", (goodput,))
        store.db.commit()
    demo.add(results, RUN, packed)
    with Store.open(demo.unpacked(packed, packed.parent), create=False) as store:
        assert store.db.execute("PRAGMA foreign_key_check").fetchall() == []
        names = [name for (name,) in store.db.execute("SELECT DISTINCT metric FROM result ORDER BY 1")]
    assert "own_wait" in names
    assert not {"goodput", "other_wait"} & set(names)


def test_a_run_is_not_added_twice_nor_before_its_end(tmp_path) -> None:
    results = demo.unpacked(demo.DEMO, tmp_path)
    packed = tmp_path / "demo.sqlite.gz"
    packed.write_bytes(demo.DEMO.read_bytes())
    with pytest.raises(UserError, match="is in it"):
        demo.add(results, RUN, packed)
    with Store.open(results, create=False) as store:
        store.db.execute("UPDATE _run SET state = 'interrupted' WHERE run_id = ?", (RUN,))
        store.db.commit()
    with pytest.raises(UserError, match="is interrupted"):
        demo.add(results, RUN, packed)
    assert packed.read_bytes() == demo.DEMO.read_bytes()


def test_an_attempt_at_a_drill_is_added_whole_once_it_has_ended(tmp_path) -> None:
    results, packed = tmp_path / "lab.sqlite", tmp_path / "demo.sqlite.gz"
    packed.write_bytes(demo.DEMO.read_bytes())
    with Store.open(results) as store:
        ended = lab_attempts.repaired(store)
        running = lab_attempts.begin(store)
    demo.add(results, ended, packed)
    with (
        Store.open(results, create=False) as source,
        Store.open(demo.unpacked(packed, tmp_path), create=False) as copy,
    ):
        assert attempts.attempt(copy, ended) == attempts.attempt(source, ended)
        told = [[tuple(row) for row in attempts.events(one, ended)] for one in (copy, source)]
        assert told[0] == told[1] != []
        count = "SELECT count(*) FROM attempt_value WHERE attempt_id = ?"
        (values,) = source.db.execute(count, (ended,)).fetchone()
        assert copy.db.execute(count, (ended,)).fetchone()[0] == values > 0
        assert copy.db.execute("PRAGMA foreign_key_check").fetchall() == []
    with pytest.raises(UserError, match="has each attempt once"):
        demo.add(results, ended, packed)
    with pytest.raises(UserError, match="is running"):
        demo.add(results, running, packed)
