"""Several tiers as one group: what PROFILES takes, which provider serves all, and how a group is found again."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from overlaylab.core.errors import UserError
from overlaylab.core.lock import cluster_lock
from overlaylab.machine import ready
from overlaylab.providers import choice
from overlaylab.results import tiers
from overlaylab.run import experiment
from overlaylab.run.options import Options
from overlaylab.store.store import Store

sys.path.insert(0, str(Path(__file__).parents[2] / "fixtures" / "results"))
import maker

# -- what was typed ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("machine")
def test_each_tier_is_a_request_of_its_own_in_the_order_given() -> None:
    found = tiers.requests("azure-a3,azure-a0 , azure-a1", "weave", Options(blocks=2, modes="fastdp"))
    names = ("azure-a3", "azure-a0", "azure-a1")
    assert tuple(one.profile.name for one in found) == names
    assert {one.profiles for one in found} == {names}
    assert len({one.group for one in found}) == 1 and found[0].group
    assert len({one.seed for one in found}) == 1  # one order of blocks on all tiers
    assert tiers.requests("azure-a0", "weave")[0].group != found[0].group
    stored = found[1].arguments()
    assert (stored["profile"], stored["profiles"], stored["group"]) == (
        "azure-a0",
        list(names),
        found[0].group,
    )
    assert "group" not in experiment.request("weave").arguments()


@pytest.mark.usefixtures("machine")
def test_the_command_line_asks_for_all_tiers() -> None:
    asked, _ = tiers.requests("azure-a0,azure-a1", "host", Options(seed=7))
    assert experiment.command_line(asked) == (
        "./task lab:host PROFILES=azure-a0,azure-a1 CLUSTER=pair SUITE=quick BLOCKS=6 SCALE=1.0 SEED=7"
    )


@pytest.mark.usefixtures("machine")
def test_a_stored_tier_asks_for_the_same_again_and_for_its_neighbours() -> None:
    first, second = tiers.requests("azure-a0,azure-a1", "weave", Options(seed=7, modes="fastdp", scale=2))
    stored = first.arguments()
    assert experiment.again(stored, "libvirt").arguments() == stored | {"provider": "libvirt"}
    other = experiment.again(stored, "libvirt", "azure-a1")
    assert other.arguments() == second.arguments() | {"provider": "libvirt"}
    assert other.profile == second.profile


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    ("profiles", "rule", "seen"),
    [
        ("azure-a0,,azure-a1", "must be names with single commas between them", '"azure-a0,,azure-a1"'),
        ("azure-a0,", "must be names with single commas between them", '"azure-a0,"'),
        ("azure-a0,azure-a1,azure-a0", "must name each tier once", '"azure-a0,azure-a1,azure-a0"'),
        ("azure-a0,azure-a99", "must be profiles in profiles/", '"azure-a99"'),
    ],
)
def test_wrong_names_are_refused(profiles, rule, seen) -> None:
    with pytest.raises(UserError) as wrong:
        tiers.requests(profiles, "weave")
    assert (wrong.value.where, wrong.value.rule, wrong.value.seen) == ("PROFILES", rule, seen)
    assert "azure-a1" in wrong.value.fix or "BLOCKS" in wrong.value.fix


@pytest.mark.usefixtures("machine")
def test_every_tier_is_checked_before_the_first_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []

    def check(tier, where) -> None:
        checked.append(tier.name)
        if tier.name == "azure-a1":
            raise UserError("azure-a1", "must know the zones", fix="Add them")

    monkeypatch.setattr(experiment.profile, "check_zones", check)
    with pytest.raises(UserError, match="azure-a1: must know the zones"):
        tiers.requests("azure-a0,azure-a1,azure-a2", "weave")
    assert checked == ["azure-a0", "azure-a1"]


# -- one provider for all ---------------------------------------------------------------------------


@pytest.fixture
def asked(machine):
    return tiers.requests("azure-a0,azure-a1", "weave")


def chooses(monkeypatch, **of_tier: tuple[str, str]) -> None:
    def choose(asked, variants, profile, system) -> tuple[str, str]:
        return of_tier[profile.name.replace("-", "_")]

    monkeypatch.setattr(choice, "choose", choose)
    monkeypatch.setattr(ready, "accelerator", lambda: "tcg")


def test_what_all_tiers_choose_is_taken(asked, monkeypatch) -> None:
    same = ("lxc", "provider lxc: this kernel has all that is needed")
    chooses(monkeypatch, azure_a0=same, azure_a1=same)
    assert tiers.choose_provider(asked) == same


@pytest.mark.parametrize(
    ("provider", "said"),
    [
        ("libvirt", "why azure-a0; the other tiers likewise"),
        ("lxc", "why azure-a0; why azure-a1"),  # what a kernel cannot hold a tier to is that tier's own
    ],
)
def test_reasons_that_differ_by_tier_are_said_shortly(asked, monkeypatch, provider, said) -> None:
    chooses(monkeypatch, azure_a0=(provider, "why azure-a0"), azure_a1=(provider, "why azure-a1"))
    assert tiers.choose_provider(asked) == (provider, said)


def test_where_the_choice_differs_it_is_vms_for_all_with_the_reason(asked, monkeypatch) -> None:
    chooses(
        monkeypatch,
        azure_a0=("lxc", "provider lxc: this kernel has all that is needed"),
        azure_a1=("libvirt", "provider libvirt, emulated CPUs: no KVM here, and azure-a1 needs netem"),
    )
    assert tiers.choose_provider(asked) == (
        "libvirt",
        "provider libvirt, emulated CPUs: no KVM here, and azure-a1 needs netem. So it is VMs for all tiers "
        "(azure-a1 decides): accelerators are never mixed",
    )


# -- groups in the database -------------------------------------------------------------------------

GROUP = "20000101T000000Z-aaaa"


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "lab.sqlite") as opened:
        opened.db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        yield opened


def run(store, profile, *, state="done", group=GROUP, names=("azure-a0", "azure-a1"), **changes) -> str:
    arguments = {"group": group, "profiles": list(names)} if group else {}
    record = replace(maker.RUN, profile=profile, arguments=arguments, **changes)
    run_id = store.begin_run(record, maker.plan(record, [maker.TCP]))
    store.set_run_state(run_id, state)
    # Runs of one second would be in no order.
    count = store.db.execute("SELECT count(*) FROM _run").fetchone()[0]
    with store.db:
        store.db.execute("UPDATE _run SET created_at = ? WHERE run_id = ?", (f"2026-01-{count:02}", run_id))
    return run_id


def test_a_group_knows_its_runs_and_what_is_left_in_the_order_asked_for(store) -> None:
    names = ("azure-a0", "azure-a1", "azure-a2", "azure-a3")
    a1 = run(store, "azure-a1", names=names, state="interrupted")
    a3 = run(store, "azure-a3", names=names)
    run(store, "azure-a2", group=None)
    (found,) = tiers.groups(store)
    assert (found.group, found.profiles, found.cluster) == (GROUP, names, "pair")
    assert found.run_ids == (("azure-a0", None), ("azure-a1", a1), ("azure-a2", None), ("azure-a3", a3))
    assert found.left == (("azure-a0", None), ("azure-a1", a1), ("azure-a2", None))
    assert tiers.group_of(store, a3) == found


def test_a_group_is_found_by_its_id_part_of_it_or_as_the_newest(store) -> None:
    older = run(store, "azure-a0", group="20260101T000000Z-aaaa")
    newer = run(store, "azure-a0", group="20260202T000000Z-bbbb")
    run(store, "azure-a0", group=None)
    found = {
        text: tiers.find_group(store, text).runs["azure-a0"][0] for text in ("aaaa", "20260202", "newest")
    }
    assert found == {"aaaa": older, "20260202": newer, "newest": newer}
    for text, count in (("2026", 2), ("cccc", "none")):
        with pytest.raises(UserError) as wrong:
            tiers.find_group(store, text)
        assert (wrong.value.where, wrong.value.seen) == ("GROUP", f"{text}, which fits {count}")
        assert "20260202T000000Z-bbbb, 20260101T000000Z-aaaa" in wrong.value.fix


def test_without_a_group_the_error_says_how_to_get_one(store) -> None:
    alone = run(store, "azure-a0", group=None)
    assert tiers.groups(store) == []
    assert tiers.group_of(store, alone) is None
    with pytest.raises(UserError, match=r"PROFILES=azure-a0,azure-a1"):
        tiers.find_group(store, "newest")


def test_the_newest_unfinished_may_be_a_group_whose_runs_are_all_done(store) -> None:
    assert tiers.latest_unfinished(store, "pair") is None
    old = run(store, "azure-a0", group=None, state="interrupted")
    assert tiers.latest_unfinished(store, "pair") == old
    done = run(store, "azure-a0")  # azure-a1 was never begun
    run(store, "azure-a2", group=None)
    assert tiers.latest_unfinished(store, "pair") == done
    assert tiers.latest_unfinished(store, "trio") is None
    run(store, "azure-a1")
    assert tiers.latest_unfinished(store, "pair") == old


def test_a_cluster_in_use_is_passed_over_where_another_waits(store, own_cache) -> None:
    other = run(store, "azure-a0", group=None, state="interrupted", cluster="trio")
    newest = run(store, "azure-a0", group=None, state="running")
    assert tiers.latest_unfinished(store) == newest
    with cluster_lock("pair", "measuring weave"):
        assert tiers.latest_unfinished(store) == other
        assert tiers.latest_unfinished(store, "pair") == newest
        with cluster_lock("trio", "measuring weave"):
            assert tiers.latest_unfinished(store) == newest
