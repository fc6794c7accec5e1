"""What variants and profiles need, and where that runs."""

from dataclasses import replace

import pytest

from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.machine import features as host_features
from overlaylab.machine import packages
from overlaylab.machine.features import ABSENT, LOADABLE, UNTRIED, WORKS, Found
from overlaylab.providers import requirements
from overlaylab.providers.requirements import Needed, Verdict
from overlaylab.specs import overlays
from overlaylab.specs.profile import Profile, load_profile

QUEUES = ("qdisc:htb", "qdisc:bfifo", "filter:u32")


def tier(**numbers) -> Profile:
    """A profile with these numbers, in base units, and no others."""
    return replace(load_profile("none"), **numbers)


def kernel(features, **states: str) -> dict[str, Found]:
    """All features work but those whose name (after the colon) is given another state."""
    found = {}
    for feature in features:
        state = states.get(feature.partition(":")[2], WORKS)
        found[feature] = Found(state, f"module_{feature.partition(':')[2]}" if state == LOADABLE else "")
    return found


@pytest.mark.parametrize("name", overlays.names())
def test_every_mode_of_every_role_declares_what_can_be_tried(name):
    overlay = overlays.load(name)
    for key in overlay.modes:
        needed = requirements.of_variant(overlay.variant(key))
        assert not needed.soft
        assert [feature for feature in needed.hard if host_features.command(feature) is None] == []


def test_the_nodes_own_network_needs_nothing_of_its_own():
    assert requirements.of_variant(Variant("host")) == Needed()


def test_a_mode_adds_to_what_all_modes_need():
    fast = requirements.of_variant(Variant("weave", "fastdp")).hard
    slow = requirements.of_variant(Variant("weave", "sleeve")).hard
    assert set(fast) - set(slow) == {"genl:ovs_datapath", "link:vxlan"}
    assert set(slow) < set(fast)
    assert "link:veth" in slow


@pytest.mark.parametrize(
    ("numbers", "hard", "soft"),
    [
        ({}, (), {}),
        ({"mtu": 1500}, (), {}),
        ({"rate": 5e6}, QUEUES, {}),
        ({"rate": 5e6, "jitter": 0.001}, (*QUEUES, "qdisc:netem"), {}),
        (
            {"rate": 5e6, "ingress_metered": True},
            (*QUEUES, "link:ifb", "qdisc:ingress", "action:mirred"),
            {},
        ),
        ({"ingress_metered": True}, (), {}),
        ({"loss": 0.01}, (*QUEUES, "qdisc:netem"), {}),
        ({"between_zones": {("a", "b"): 0.02}, "rate": 5e6}, QUEUES, {"qdisc:netem": "latency"}),
        ({"within_zone": 0.0}, (), {}),
    ],
)
def test_a_profiles_needs_follow_from_its_numbers(numbers, hard, soft):
    assert requirements.of_profile(tier(**numbers)) == Needed(hard, soft)


def test_a_latency_alone_is_soft_with_all_that_it_takes():
    soft = dict.fromkeys(("qdisc:netem", *QUEUES), "latency")
    assert requirements.of_profile(tier(within_zone=0.001)) == Needed((), soft)


def test_a_latency_beside_a_cap_leaves_only_netem_soft():
    asked = requirements.of_profile(tier(within_zone=0.001, rate=5e6))
    assert asked == Needed(QUEUES, {"qdisc:netem": "latency"})


def test_netem_that_is_hard_is_not_soft_as_well():
    asked = requirements.of_profile(tier(within_zone=0.001, loss=0.01))
    assert asked == Needed((*QUEUES, "qdisc:netem"), {})


def test_every_feature_that_is_there_runs():
    wanted = Needed(("link:veth",), {"qdisc:netem": "latency"})
    assert requirements.judge(wanted, kernel(wanted.features)) == Verdict(True)


def test_what_is_absent_is_the_reason():
    wanted = Needed(("link:dummy", "link:veth", "genl:ovs_datapath", "link:dummy"))
    verdict = requirements.judge(wanted, kernel(wanted.features, dummy=ABSENT, ovs_datapath=ABSENT))
    assert verdict == Verdict(False, "lacks dummy and openvswitch", lacks=("link:dummy", "genl:ovs_datapath"))


def test_what_lacks_softly_runs_and_is_told():
    wanted = Needed(("qdisc:htb",), {"qdisc:netem": "latency"})
    verdict = requirements.judge(wanted, kernel(wanted.features, netem=ABSENT))
    assert verdict == Verdict(True, soft=("latency",), soft_lacks=("qdisc:netem",))


def test_a_module_that_can_be_loaded_is_no_lack():
    wanted = Needed(("link:dummy", "link:veth"), {"qdisc:netem": "latency"})
    verdict = requirements.judge(wanted, kernel(wanted.features, dummy=LOADABLE, netem=LOADABLE))
    assert verdict == Verdict(True, loads=("module_dummy", "module_netem"))


def test_what_was_not_tried_is_not_taken_for_granted():
    wanted = Needed(("link:dummy", "link:veth"), {"qdisc:netem": "latency"})
    verdict = requirements.judge(wanted, kernel(wanted.features, dummy=UNTRIED, netem=UNTRIED))
    assert verdict == Verdict(False, "not known without root: dummy", untried=("link:dummy", "qdisc:netem"))


@pytest.fixture
def host(monkeypatch):
    """A host whose kernel lacks openvswitch and netem, without VirtualBox, with lxc still to be installed."""
    asked = []

    def look(features):
        asked.append(tuple(features))
        return kernel(features, ovs_datapath=ABSENT, netem=ABSENT)

    monkeypatch.setattr(host_features, "look", look)
    monkeypatch.setattr(packages, "find_program", lambda name: None)
    monkeypatch.setattr(packages, "missing", lambda groups=(): ["qemu-utils", "lxc"])
    return asked


def test_vms_run_whatever_this_kernel_lacks(host):
    assert requirements.verdict(Variant("weave", "fastdp"), None, "libvirt") == Verdict(True)
    assert host == []


def test_virtualbox_runs_where_it_is_installed(host, monkeypatch):
    assert requirements.verdict(Variant("host"), None, "virtualbox") == Verdict(False, "not installed")
    monkeypatch.setattr(packages, "find_program", lambda name: f"/usr/bin/{name}")
    assert requirements.verdict(Variant("host"), None, "virtualbox") == Verdict(True)


def test_system_containers_need_what_variant_profile_and_they_themselves_need(host):
    verdict = requirements.verdict(Variant("host"), tier(within_zone=0.001), "lxc")
    assert verdict == Verdict(True, soft=("latency",), soft_lacks=("qdisc:netem",), installs=("lxc",))
    assert host == [("link:bridge", "link:veth", "fs:overlay", "qdisc:netem", *QUEUES)]


def test_what_this_kernel_leaves_out_of_a_profile_is_told_without_a_variant(host):
    assert requirements.not_applied(tier(within_zone=0.001)) == ("latency",)
    assert requirements.not_applied(tier(rate=5e6)) == ()


def test_a_system_without_apt_is_not_told_packages(host, monkeypatch):
    def missing(groups=()):
        raise UserError("system", "must have", fix="Install them.")

    monkeypatch.setattr(packages, "missing", missing)
    assert requirements.absent_packages([packages.CONTAINERS]) == ()


def test_the_survey_tries_everything_at_once(host):
    rows = requirements.survey()
    assert len(host) == 1
    titles = [row.title for row in rows]
    assert "host" in titles
    assert "weave fastdp-encrypted" in titles
    assert "profile none" in titles
    reasons = {row.title: row.verdicts["lxc"].reason for row in rows}
    assert reasons["weave fastdp"] == "lacks openvswitch"
    assert reasons["weave sleeve"] is None
    assert reasons["host"] is None
    row = rows[titles.index("weave sleeve")]
    assert (row.overlay, row.mode, row.profile) == ("weave", "sleeve", None)
    assert list(row.verdicts) == ["libvirt", "virtualbox", "lxc"]


@pytest.mark.parametrize(
    ("words", "text"), [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_listed(words, text):
    assert requirements.listed(words) == text


SR_IOV = Variant("sr-iov")


@pytest.mark.parametrize("provider", ["libvirt", "virtualbox", "lxc"])
def test_virtual_functions_are_on_no_node_that_the_lab_makes(provider):
    reason = "not on this machine: needs a network card with virtual functions (SR-IOV)"
    assert requirements.verdict(SR_IOV, None, provider) == Verdict(False, reason, lacks=("nic:sriov",))
    with pytest.raises(
        UserError, match=r"sr-iov: needs a network card .*not on this machine: .*INVENTORY=hosts.yml"
    ):
        requirements.refuse_cards([Variant("host"), SR_IOV], tier(), provider)


def test_hosts_of_an_inventory_may_have_them_but_no_profile_that_shapes():
    assert requirements.verdict(SR_IOV, None, "hosts") == Verdict(True)
    requirements.refuse_cards([SR_IOV], tier(mtu=1500), "hosts")
    requirements.refuse_cards([Variant("host")], tier(rate=5e6), "hosts")
    with pytest.raises(
        UserError, match=r"PROFILE=none: cannot be put in force on sr-iov .*the card itself switches"
    ):
        requirements.refuse_cards([SR_IOV], tier(rate=5e6), "hosts")
