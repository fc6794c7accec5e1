"""Proofs in a drill's folder: kept side by side, and stale once drill, role or image is another."""

import shutil
from dataclasses import replace

import pytest

from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.drills import gameday, proofs, prove, where
from overlaylab.drills.proofs import HOLDS, NONE, STALE, Proof
from overlaylab.specs import drill as drills
from overlaylab.specs.drill import Drill, Needs

FLANNEL = Variant("flannel", "vxlan")


@pytest.fixture
def drill(tmp_path) -> Drill:
    folder = tmp_path / "large-downloads-hang"
    shutil.copytree(drills.load("large-downloads-hang").folder, folder)
    (folder / "proof.json").unlink(missing_ok=True)
    return drills.read_drill(folder)


def proof(drill: Drill, provider: str = "lxc", image: str | None = "an image") -> Proof:
    key = proofs.key(drill, FLANNEL, provider, image)
    values = {"fetched from client": {"healthy": 1.0, "broken": 0.0, "ratio": 0.0}}
    return Proof(**key, accelerator="shared-kernel", at="2026-01-01T00:00:00.000Z", values=values,
                 wrong={"restart-the-web-server": "timed out"}, solutions={"delete-the-rule": "passes"})  # fmt: skip


def test_one_is_read_as_it_was_kept_and_replaced_by_its_like(drill) -> None:
    assert (proofs.read(drill), proofs.state(drill)) == ((), NONE)
    proofs.keep(drill, proof(drill))
    proofs.keep(drill, proof(drill, "libvirt"))
    newer = replace(proof(drill), at="2026-02-01T00:00:00.000Z")
    proofs.keep(drill, newer)
    assert proofs.read(drill) == (proof(drill, "libvirt"), newer)
    assert drills.read_drill(drill.folder).digest == drill.digest  # it is no part of what it proves


def test_it_holds_for_what_it_was_made_of(drill) -> None:
    proofs.keep(drill, proof(drill))
    assert proofs.state(drill) == proofs.state(drill, "an image") == HOLDS
    assert proofs.state(drill, "another") == STALE
    assert proofs.state(replace(drill, digest="0" * 64)) == STALE


def test_a_file_that_is_none_is_no_proof(drill) -> None:
    (drill.folder / "proof.json").write_text('{"proofs": [{}]}')
    assert proofs.read(drill) == ()


def test_proving_carries_on_with_the_same_drill_alone(drill, own_cache) -> None:
    key = proofs.key(drill, FLANNEL, "lxc", None)
    prove.Progress(drill.name, key).note("broken", {"fetched": 1})
    assert prove.Progress(drill.name, key).done == {"broken": {"fetched": 1}}
    assert prove.Progress(drill.name, key | {"drill": "another"}).done == {}
    prove.Progress(drill.name, key).forget()
    assert prove.Progress(drill.name, key).done == {}


# -- where it runs ----------------------------------------------------------------------------------


def test_an_overlay_is_chosen_with_or_without_its_mode(drill) -> None:
    assert where.variants(drill, None) == drill.variants
    assert where.variants(drill, "flannel/host-gw") == (Variant("flannel", "host-gw"),)
    with pytest.raises(UserError, match=r"OVERLAY: must be one that .* applies to \(found: weave\)"):
        where.variants(drill, "weave")


def test_a_tier_that_the_fault_needs_is_in_force(drill) -> None:
    needing = replace(drill, needs=Needs(profile="azure-a1"))
    assert (where.tier(drill, None).name, where.tier(needing, None).name) == ("none", "azure-a1")
    with pytest.raises(UserError, match="PROFILE: must be azure-a1"):
        where.tier(needing, "azure-a0")


def test_a_knob_of_the_kernels_own_is_not_turned_in_containers(drill) -> None:
    own = replace(drill, needs=Needs(own_kernel=True))
    tier = where.tier(own, None)
    assert where.reason(own, FLANNEL, tier, "lxc") == "needs nodes with a kernel of their own"
    assert where.reason(own, FLANNEL, tier, "libvirt") is None
    with pytest.raises(UserError, match="does not run here with PROVIDER=lxc"):
        where.choose(own, None, tier, "lxc")
    assert where.choose(own, "flannel/host-gw", tier, "libvirt") == (Variant("flannel", "host-gw"), "libvirt")


# -- a game day -------------------------------------------------------------------------------------


def test_a_series_is_kept_until_its_last_drill(own_cache) -> None:
    assert gameday.read("pair") is None
    names = gameday.choose(["a", "b", "c"], 2)
    assert len(set(names)) == 2 and set(names) <= {"a", "b", "c"}
    gameday.write("pair", gameday.Series(names, (), "team", None, "lxc"))
    series = gameday.read("pair").after("20260101T000000Z-abcd")
    assert series.left == names[1:] and series.trainee == "team"
    assert series.after("x").left == ()
    with pytest.raises(UserError, match="COUNT: must be at most 3"):
        gameday.choose(["a", "b", "c"], 4)


def test_what_was_not_repaired_counts_nothing() -> None:
    assert gameday.score([100, None, 50]) == 50
