"""The lab on system containers: this machine's kernel and CPU, so these are done before any VM has booted."""

from __future__ import annotations

import pytest
from test_3_roles import states

from overlaylab.core.model import Variant
from overlaylab.nodes import ansible, netstate
from overlaylab.shaping import scripts, theory
from overlaylab.specs import overlays


@pytest.fixture(scope="module")
def measured(containers, lab_in):
    """Two blocks of the host network at 100 Mbit/s."""
    lab = lab_in(PROVIDER="lxc", BLOCKS="2", PROFILE="azure-a1")
    lab.output = lab.run("lab:host")
    return lab


@pytest.mark.turn("nodes", together=True)
def test_goodput_is_theory_and_every_trial_has_its_proof(measured) -> None:
    trials = measured.query("SELECT status, reason FROM trial")
    assert trials == [("ok", None)] * 4
    goodputs = measured.query("SELECT value FROM result WHERE metric = 'goodput' AND t_start IS NULL")
    most = theory.goodput_theory(100e6, 1500, 0)
    # Of five seconds, a machine that stands still for 50 ms takes a hundredth; it does not do so in every block.
    assert max(goodputs)[0] == pytest.approx(most, rel=0.01)
    assert 0 < min(goodputs)[0] <= 1.01 * most
    assert len(goodputs) == 2
    kinds = measured.query("SELECT kind, min(ok) FROM evidence GROUP BY kind ORDER BY kind")
    assert kinds == [(kind, 1) for kind in ("accounting", "mtu", "path", "settings", "status", "wire")]


@pytest.mark.turn("nodes", together=True)
def test_results_say_that_the_kernel_is_shared(measured) -> None:
    assert measured.query("SELECT provider, accelerator FROM run") == [("lxc", "shared-kernel")]
    assert "the machine's own CPU and kernel (system containers)" in measured.output
    assert "provider lxc, as asked" in measured.output


@pytest.mark.turn("nodes", together=True)
def test_a_latency_is_in_force_or_recorded_as_not_applied(measured) -> None:
    verdict, expected, reason = measured.query(
        "SELECT verdict, expected, reason FROM profile_check WHERE name = 'rtt-idle'"
    )[0]
    assert expected == pytest.approx(0.000966)
    if verdict != "pass":
        assert (verdict, reason) == (
            "not-applicable",
            "latency is not applied: the kernel of the nodes has no netem",
        )


@pytest.mark.turn("nodes")
def test_a_second_endpoint_is_made_once_and_a_reset_takes_it_away(containers) -> None:
    containers.clean()
    # Set before an overlay comes, and not the overlay's to take back.
    containers.sh(scripts.mtu_script("eth1", 1500))
    before = states(containers)
    flannel = Variant("flannel", "host-gw")
    containers.converge(flannel)
    said = [containers.sh("/opt/overlaylab/overlay/overlay-start endpoint2") for _ in range(2)]
    assert said == [dict.fromkeys(before, "changed\n"), dict.fromkeys(before, "unchanged\n")]
    arguments = dict(overlays.load("flannel").modes["host-gw"].arguments)
    ansible.run_playbook(containers.inventory, "flannel", "reset", arguments)
    after = states(containers)
    assert {name: netstate.difference(before[name], after[name]) for name in before} == {
        "node1": [],
        "node2": [],
    }


@pytest.mark.turn("nodes")
def test_nodes_are_looked_at_and_entered_like_vms(containers, lab_in) -> None:
    lab = lab_in(PROVIDER="lxc")
    lab.run("lab:up")
    status = lab.run("lab:status")
    assert "cluster pair (lxc)" in status and status.count("running") == 2
    assert lab.run("lab:ssh", "--", "node2", "cat", "/run/systemd/container").split()[-1] == "lxc"
