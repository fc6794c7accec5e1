"""The main job on real VMs: verified profile, host and Weave measured, each trial with its proof."""

from __future__ import annotations

import json

import pytest

from overlaylab.shaping import theory

# What CI types before all tests measures the same, under another tier.
pytestmark = pytest.mark.turn("nodes", together=True)


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
    goodputs = [each for name, *each in checks if name == "goodput"]
    assert len(goodputs) == 2, "both directions"
    for verdict, expected, found in goodputs:
        assert expected == pytest.approx(theory.goodput_theory(5e6, 1500, 0))
        # A machine that is full of other work carries less, and the check says that it does not apply.
        if verdict == "pass":
            assert found == pytest.approx(expected, rel=0.01)
        else:
            assert 0 < found < expected


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
    # An emulated CPU that is also busy with something else keeps a tunnel from the last points; more never passes. What the
    # bytes on the wire say of headers, the next test holds closer.
    headers = theory.ratio_theory(1500, 50, 1376)
    assert headers - 0.06 < ratio["fastdp"] < headers + 0.01
    # How much of it a router in user space keeps up with is a matter of the machine's other work, too.
    assert 0 < ratio["sleeve"] < theory.ratio_theory(1500, 62, 1438) + 0.01


def test_of_the_bytes_on_the_wire_all_but_headers_is_payload(measured) -> None:
    """However fast a router in user space is: what a mode's packets hold does not depend on how many pass."""
    share = {}
    for mode, observed, stdout in measured.query(
        "SELECT coalesce(t.mode, t.overlay), e.observed, t.stdout FROM trial t JOIN evidence e USING (trial_id)"
        " WHERE e.kind = 'accounting' AND t.tool = 'iperf3'"
    ):
        # With the seconds that warm up, which the wire does not tell apart.
        seconds = json.loads(stdout)["server_output_json"]["intervals"]
        share[mode] = sum(one["sum"]["bytes"] for one in seconds) / json.loads(observed)["peer_rx_bytes"]
    host = theory.goodput_theory(1, 1500, 0)
    most = {
        "host": host,
        "fastdp": host * theory.ratio_theory(1500, 50, 1376),
        "sleeve": host * theory.ratio_theory(1500, 62, 1438),
    }
    assert share.keys() == most.keys()
    # Handshakes, heartbeats, pings and what is sent twice make it less, and nothing makes it more.
    assert all(most[mode] - 0.05 < share[mode] < most[mode] + 0.005 for mode in most), (share, most)


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
