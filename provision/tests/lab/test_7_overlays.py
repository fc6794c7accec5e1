"""Every overlay on real nodes: measured in one run with its proof, converged again, its policy tried, reset.

One mode in five is taken, others after each commit, in containers where those can carry it: they answer sooner. Of those
that take VMs it is one in ten. OVERLAYLAB_MODES=all takes all of them, and OVERLAYLAB_MODES=weave/sleeve,flannel/udp just
these, all on VMs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache

import pytest
from conftest import Cluster, Lab
from lab_turns import EVERY, PASSED_OVER, share, turn
from test_3_roles import states

from overlaylab.core.model import Variant
from overlaylab.live import policy_lab
from overlaylab.nodes import ansible, netstate
from overlaylab.providers import requirements
from overlaylab.run import evidence
from overlaylab.shaping import scripts
from overlaylab.specs import overlays
from overlaylab.specs.profile import load_profile

TIER = load_profile("azure-a0")


def modes() -> tuple[Variant, ...]:
    """Every mode of every overlay that VMs can carry, but for those that are taken by name alone."""
    found = []
    for name in overlays.names():
        overlay = overlays.load(name)
        variants = (overlay.variant(key) for key, mode in overlay.modes.items() if not mode.only_by_name)
        found += [one for one in variants if requirements.verdict(one, TIER, "libvirt").runs]
    return tuple(found)


WANTED = os.environ.get("OVERLAYLAB_MODES", "")


def chosen() -> tuple[Variant, ...]:
    every = modes()
    if WANTED == "all":
        return every
    if WANTED:
        return tuple(variant for variant in every if word(variant) in WANTED.split(","))
    taken = []
    for where, often in (("lxc", EVERY), ("libvirt", 2 * EVERY)):
        there = [variant for variant in every if provider(variant) == where]
        ours = share(there, often)
        taken += ours
        PASSED_OVER.append(
            f"{len(there) - len(ours)} of {len(there)} modes of overlays on {where}, each taken once in {often} commits"
        )
    return tuple(taken)


def word(variant: Variant) -> str:
    return f"{variant.overlay}/{variant.key}"


def provider(variant: Variant) -> str:
    shared = not WANTED and requirements.verdict(variant, TIER, "lxc").runs
    return "lxc" if shared else "libvirt"


# Asked once: what an ordinary user cannot tell of the kernel is known as soon as a first task has tried it as root.
WHERE = {variant: provider(variant) for variant in chosen()}
PROVIDERS = sorted(set(WHERE.values()))
each = pytest.mark.parametrize(
    ("variant", "where"),
    WHERE.items(),
    ids=[f"{word(variant)} on {where}" for variant, where in WHERE.items()],
)


@pytest.fixture(scope="module")
def measured(lab_in) -> Callable[[str], Lab]:
    """measured(PROVIDER): one short block of all that run there, under one tier."""

    @cache
    def measure(where: str) -> Lab:
        modes = ",".join(word(variant) for variant, there in WHERE.items() if there == where)
        lab = lab_in(BLOCKS="1", SCALE="0.4", PROVIDER=where, MODES=modes)
        lab.output = lab.run("lab:all", seconds=2400)
        return lab

    return measure


@each
def test_every_trial_has_its_proof(measured, variant: Variant, where: str) -> None:
    lab = measured(where)
    trials = lab.query(
        "SELECT trial_id, status, reason FROM trial WHERE overlay = ? AND mode IS ? AND encrypted = ?",
        variant.overlay,
        variant.mode,
        variant.encrypted,
    )
    assert [(status, reason) for _, status, reason in trials] == [("ok", None)] * 2
    for trial_id, *_ in trials:
        rows = lab.query("SELECT kind, phase, ok FROM evidence WHERE trial_id = ?", trial_id)
        assert all(ok for *_, ok in rows)
        assert {(kind, phase) for kind, phase, _ in rows} >= {
            (kind, phase) for kind in ("status", "wire", "path", "mtu") for phase in ("before", "after")
        }
        assert (("health", "during", 1) in rows) == bool(overlays.units_of(variant))


@pytest.fixture(scope="module")
def clean(request) -> Callable[[str], tuple[Cluster, dict]]:
    """clean(PROVIDER): the nodes there, and what they are like before any overlay."""

    @cache
    def look(where: str) -> tuple[Cluster, dict]:
        nodes = request.getfixturevalue("containers" if where == "lxc" else "nodes")
        nodes.clean()
        # The tier's MTU is set before an overlay comes, and is not the overlay's to take back.
        nodes.sh(scripts.mtu_script("eth1", TIER.mtu))
        return nodes, states(nodes)

    return look


@each
def test_a_reset_leaves_no_trace(measured, clean, variant: Variant, where: str) -> None:
    measured(where)
    nodes, before = clean(where)
    nodes.converge(variant)
    arguments = dict(overlays.load(variant.overlay).modes[variant.key].arguments)
    # It takes ten seconds: without being asked, that is done to one of them.
    if WANTED or list(WHERE).index(variant) == turn() % len(WHERE):
        again = ansible.run_playbook(nodes.inventory, variant.overlay, "converge", arguments)
        assert again.changed == {"node1": 0, "node2": 0}
    if overlays.load(variant.overlay).enforces_policy:
        assert obeyed(nodes) == {"deny": "stops", "allow": "passes", "rules 100": "passes", "clear": "passes"}
    ansible.run_playbook(nodes.inventory, variant.overlay, "reset", arguments)
    after = states(nodes)
    assert {name: netstate.difference(before[name], after[name]) for name in before} == {
        "node1": [],
        "node2": [],
    }


def obeyed(nodes: Cluster) -> dict[str, str]:
    """{what the policy on node2 is told, in turn: what becomes of pings to its endpoint}."""
    target = json.loads(nodes.sh(evidence.STATUS, only=["node2"])["node2"])["endpoint_address"]
    ping = (
        f"ip netns exec endpoint ping -n -q -c 2 -i 0.2 -W 1 {target} >/dev/null && echo passes || echo stops"
    )
    seen = {}
    for told in ("deny", "allow", "rules 100", "clear"):
        nodes.sh(f"{policy_lab.COMMAND} {told}", only=["node2"])
        seen[told] = nodes.sh(ping, only=["node1"])["node1"].strip()
    return seen


@pytest.mark.parametrize("where", PROVIDERS)
def test_all_are_in_one_table(measured, where: str) -> None:
    there = [variant.overlay for variant, provider in WHERE.items() if provider == where]
    output = measured(where).output
    assert [overlay for overlay in there if overlay not in output] == []
