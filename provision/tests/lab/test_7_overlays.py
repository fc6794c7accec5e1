"""Every overlay on real nodes: measured in one run with its proof, converged again, reset without a trace.

One mode of each family is taken, another one after each commit; OVERLAYLAB_MODES=all takes all of them, and
OVERLAYLAB_MODES=weave/sleeve,flannel/udp just these.
"""

from __future__ import annotations

import os

import pytest
from lab_turns import turn
from test_3_roles import states

from overlaylab import ansible, netstate, overlays, requirements, shaping_scripts
from overlaylab.model import Variant
from overlaylab.profile import load_profile

TIER = load_profile("azure-a0")


def families() -> list[tuple[Variant, ...]]:
    """The modes that share a family, of every overlay that VMs can carry."""
    found: list[tuple[Variant, ...]] = []
    for name in overlays.names():
        overlay, grouped = overlays.load(name), {}
        for key, mode in overlay.modes.items():
            variant = overlay.variant(key)
            if requirements.verdict(variant, TIER, "libvirt").runs:
                grouped.setdefault(mode.family or key, []).append(variant)
        found += map(tuple, grouped.values())
    return found


WANTED = os.environ.get("OVERLAYLAB_MODES", "")


def chosen() -> tuple[Variant, ...]:
    every = tuple(variant for family in families() for variant in family)
    if WANTED == "all":
        return every
    if WANTED:
        return tuple(variant for variant in every if word(variant) in WANTED.split(","))
    return tuple(family[turn() % len(family)] for family in families())


def word(variant: Variant) -> str:
    return f"{variant.overlay}/{variant.key}"


VARIANTS = chosen()
each = pytest.mark.parametrize("variant", VARIANTS, ids=word)


@pytest.fixture(scope="module")
def measured(lab_in):
    """One short block of all of them, under one tier."""
    lab = lab_in(BLOCKS="1", SCALE="0.4", PROVIDER="libvirt", MODES=",".join(map(word, VARIANTS)))
    lab.output = lab.run("lab:all", seconds=2400)
    return lab


@each
def test_every_trial_has_its_proof(measured, variant: Variant) -> None:
    trials = measured.query(
        "SELECT trial_id, status, reason FROM trial WHERE overlay = ? AND mode IS ? AND encrypted = ?",
        variant.overlay,
        variant.mode,
        variant.encrypted,
    )
    assert [(status, reason) for _, status, reason in trials] == [("ok", None)] * 2
    for trial_id, *_ in trials:
        rows = measured.query("SELECT kind, phase, ok FROM evidence WHERE trial_id = ?", trial_id)
        assert all(ok for *_, ok in rows)
        assert {(kind, phase) for kind, phase, _ in rows} >= {
            (kind, phase) for kind in ("status", "wire", "path", "mtu") for phase in ("before", "after")
        }
        assert (("health", "during", 1) in rows) == bool(overlays.units_of(variant))


@pytest.fixture(scope="module")
def clean(nodes) -> dict:
    """What the nodes are like before any overlay."""
    nodes.clean()
    # The tier's MTU is set before an overlay comes, and is not the overlay's to take back.
    nodes.sh(shaping_scripts.mtu_script("eth1", TIER.mtu))
    return states(nodes)


@each
def test_a_reset_leaves_no_trace(measured, nodes, clean, variant: Variant) -> None:
    nodes.converge(variant)
    arguments = dict(overlays.load(variant.overlay).modes[variant.key].arguments)
    # It takes ten seconds: without being asked, that is done to one of them.
    if WANTED or VARIANTS.index(variant) == turn() % len(VARIANTS):
        again = ansible.run_playbook(nodes.inventory, variant.overlay, "converge", arguments)
        assert again.changed == {"node1": 0, "node2": 0}
    ansible.run_playbook(nodes.inventory, variant.overlay, "reset", arguments)
    after = states(nodes)
    assert {name: netstate.difference(clean[name], after[name]) for name in clean} == {
        "node1": [],
        "node2": [],
    }


def test_all_are_in_one_table(measured) -> None:
    for variant in VARIANTS:
        assert variant.overlay in measured.output
