"""Drills on real nodes: a part of one drill's proof, in five commits of one drill in containers and of one on VMs.

`./task drill:prove` proves all of a drill; its proof.json says of which state of it.
"""

from __future__ import annotations

import pytest
from lab_turns import EVERY, PASSED_OVER, turn

from overlaylab.core.model import Variant
from overlaylab.drills import proofs, where
from overlaylab.specs import drill as drills
from overlaylab.specs.drill import Drill


def proven(provider: str) -> list[tuple[Drill, Variant]]:
    """Drills that were proven on nodes of that provider and run on those of this machine."""
    assert any(
        proof.provider == provider for name in drills.names() for proof in proofs.read(drills.load(name))
    )
    found: dict[str, tuple[Drill, Variant]] = {}
    for name in drills.names():
        drill = drills.load(name)
        over = {proof.where[1:] for proof in proofs.read(drill) if proof.provider == provider}
        for variant in drill.variants:
            runs = where.reason(drill, variant, where.tier(drill, None), provider) is None
            if runs and (variant.overlay, variant.key) in over:
                found.setdefault(name, (drill, variant))
    return list(found.values())


def sampled(lab_in, provider: str) -> None:
    """A part of the proof of the drill whose turn it is; each time that its turn comes, with another repair."""
    known = proven(provider)
    if not known:
        pytest.skip(f"no drill that was proven with {provider} runs here")
    PASSED_OVER.append(
        f"{len(known) - 1} of {len(known)} drills on {provider}, each taken once in {len(known) * EVERY} commits"
    )
    number = turn() // EVERY
    drill, variant = known[number % len(known)]
    lab = lab_in(
        DRILL=drill.name,
        OVERLAY=f"{variant.overlay}/{variant.key}",
        PROVIDER=provider,
        SAMPLE=str(number // len(known)),
        PROFILE=drill.needs.profile or "none",
    )
    assert "healthy nodes pass all probes and guards, once" in lab.run("drill:prove")


# Of five commits, the cold one takes the slowest.
@pytest.mark.turn("drills")
def test_a_drill_does_what_it_says_on_vms(lab_in) -> None:
    sampled(lab_in, "libvirt")


@pytest.mark.turn("drills")
def test_a_drill_does_what_it_says_in_containers(containers, lab_in) -> None:
    sampled(lab_in, "lxc")
