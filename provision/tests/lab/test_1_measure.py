"""The main job on real VMs: verified profile, host and Weave measured, each trial with its proof."""

from __future__ import annotations

import json

import pytest

from overlaylab import theory


@pytest.fixture(scope="module")
def measured(lab_in):
    """One block of host, fastdp and sleeve at 5 Mbit/s."""
    lab = lab_in(BLOCKS="1", MODES="fastdp,sleeve", SCALE="2")
    lab.output = lab.run("lab:weave")
    return lab


def test_profile_was_verified_by_sending_and_counting(measured) -> None:
    checks = measured.query("SELECT name, verdict, expected, measured FROM profile_check")
    assert {name for name, *_ in checks} == {"rtt-baseline", "rtt-idle", "rtt-loaded", "goodput", "vcpus"}
    assert {verdict for _, verdict, *_ in checks} <= {"pass", "not-applicable"}
    goodputs = [(expected, found) for name, _, expected, found in checks if name == "goodput"]
    assert len(goodputs) == 2, "both directions"
    for expected, found in goodputs:
        assert expected == pytest.approx(theory.goodput_theory(5e6, 1500, 0))
        assert found == pytest.approx(expected, rel=0.01)


def test_every_trial_is_ok_and_has_its_proof(measured) -> None:
    trials = measured.query("SELECT trial_id, overlay, mode, status, reason FROM trial")
    assert len(trials) == 6
    assert [(status, reason) for *_, status, reason in trials] == [("ok", None)] * 6
    for trial_id, overlay, *_ in trials:
        rows = measured.query("SELECT kind, phase, ok FROM evidence WHERE trial_id = ?", trial_id)
        assert {(kind, phase) for kind, phase, _ in rows} >= {
            (kind, phase) for kind in ("status", "wire", "path", "mtu") for phase in ("before", "after")
        } | {("settings", "before"), ("accounting", "after")}
        assert all(ok for *_, ok in rows)
        assert (("health", "during", 1) in rows) == (overlay != "host")


def test_what_carried_the_packets_was_the_modes_own(measured) -> None:
    rows = measured.query("SELECT coalesce(mode, overlay), observed FROM evidence WHERE kind = 'path'")
    words = {"host": "dev eth1 src", "fastdp": "SetTunnelAction{", "sleeve": " established sleeve mtu "}
    for mode, observed in rows:
        lines = json.loads(observed)["lines"]
        assert lines and all(words[mode] in line for line in lines), lines


def test_both_ends_pinged_and_their_daemons_were_seen_half_way(measured) -> None:
    for kind, overlay in (("mtu", "host"), ("mtu", "weave"), ("health", "weave")):
        nodes = measured.query(
            "SELECT DISTINCT node FROM evidence WHERE kind = ? AND overlay = ? ORDER BY node", kind, overlay
        )
        assert nodes == [("node1",), ("node2",)]
    rows = measured.query("SELECT observed FROM evidence WHERE kind = 'health'")
    weavers = [json.loads(observed)["overlaylab-weave.service"] for (observed,) in rows]
    assert all(len(one["before"]) == 1 and one["cpu_seconds"] > 0 for one in weavers)
    assert any(one["during"] == one["before"] for one in weavers)


def test_goodput_is_what_headers_leave(measured) -> None:
    found = dict(
        measured.query(
            "SELECT coalesce(mode, overlay), value FROM result"
            " WHERE metric = 'goodput' AND t_start IS NULL AND quantile IS NULL"
        )
    )
    assert found["host"] == pytest.approx(theory.goodput_theory(5e6, 1500, 0), rel=0.01)
    ratio = {mode: value / found["host"] for mode, value in found.items()}
    assert ratio["fastdp"] == pytest.approx(theory.ratio_theory(1500, 50, 1376), abs=0.01)
    # A router in user space keeps up with 5 Mbit/s where nothing else takes its CPU; more than this never passes.
    most = theory.ratio_theory(1500, 62, 1438)
    assert most - 0.05 < ratio["sleeve"] < most + 0.01


def test_the_wire_showed_each_mode(measured) -> None:
    rows = measured.query(
        "SELECT mode, observed, expected FROM evidence WHERE kind = 'wire' AND mode IS NOT NULL"
    )
    filters = {mode: json.loads(expected)["filter"] for mode, _, expected in rows}
    assert filters == {"fastdp": "udp port 6784", "sleeve": "udp port 6783"}
    for _, observed, _ in rows:
        seen = json.loads(observed)
        assert seen["encapsulated"] >= 3
        assert seen["marked"] >= 3
        assert seen["bare_icmp"] == 0


def test_table_is_printed_and_can_be_printed_again(measured) -> None:
    again = measured.run("results:show")
    for text in (measured.output, again):
        for word in ("host", "fastdp", "sleeve", "ratio to host", "emulated CPU"):
            assert word in text


def test_database_is_one_plain_file(measured) -> None:
    assert measured.query("PRAGMA integrity_check") == [("ok",)]
    assert [path.name for path in measured.database.parent.iterdir()] == ["lab.sqlite"]
