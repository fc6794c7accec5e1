"""Between two nodes and within one, on system containers: what each is held to, and its proof."""

from __future__ import annotations

import json

import pytest

from overlaylab.shaping import theory

pytestmark = pytest.mark.turn("nodes", together=True)


@pytest.fixture(scope="module")
def within(containers, lab_in):
    """One block of host and flannel's host-gw at 5 Mbit/s, between two nodes and within one."""
    lab = lab_in(PROVIDER="lxc", BLOCKS="1", SUITE="placement", MODES="host-gw", SCALE="0.4")
    lab.output = lab.run("lab:flannel")
    return lab


def test_trials_within_a_node_have_their_own_proof(within) -> None:
    trials = within.query("SELECT overlay, placement, client_node, server_node, status, reason FROM trial")
    assert sorted(trials) == [
        (overlay, placement, "node1", server, "ok", None)
        for overlay in ("flannel", "host")
        for placement, server in (("local", "node1"), ("remote", "node2"))
        for _ in range(2)
    ]
    rows = within.query(
        "SELECT e.kind, e.expected, e.observed FROM evidence AS e JOIN trial AS t USING (trial_id)"
        " WHERE t.placement = 'local' AND t.overlay = 'flannel'"
    )
    assert {kind for kind, *_ in rows} == {"status", "wire", "path", "mtu", "settings", "health"}
    assert {json.loads(observed)["marked"] for kind, _, observed in rows if kind == "wire"} == {0}
    asked = [json.loads(expected) for kind, expected, _ in rows if kind == "mtu"]
    assert {(one["mtu"], one["from"]) for one in asked} == {(1500, "endpoint"), (1500, "endpoint2")}


def test_only_what_leaves_a_node_is_held_to_the_rate(within) -> None:
    found = within.query("SELECT placement, value FROM result WHERE metric = 'goodput' AND t_start IS NULL")
    remote = [value for placement, value in found if placement == "remote"]
    # Two seconds: what the queue holds at their end is a hundredth of them.
    assert remote == [pytest.approx(theory.goodput_theory(5e6, 1500, 0), rel=0.03)] * 2
    assert min(value for placement, value in found if placement == "local") > 10 * max(remote)
