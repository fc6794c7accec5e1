"""Which provider is taken, and the sentence that says why."""

from dataclasses import replace

import pytest

from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.machine import features as host_features
from overlaylab.machine import packages, ready
from overlaylab.machine.features import ABSENT, LOADABLE, UNTRIED, WORKS, Found
from overlaylab.providers import choice, lxc_host
from overlaylab.specs.profile import load_profile

HOST, FAST, SLOW = Variant("host"), Variant("weave", "fastdp"), Variant("weave", "sleeve")
NONE = load_profile("none")
CAPPED = replace(NONE, name="capped", rate=1e8)
FAR = replace(CAPPED, name="far", within_zone=0.001)
LOSSY = replace(FAR, name="lossy", loss=0.01)


@pytest.fixture
def this(monkeypatch):
    """A machine without KVM whose kernel has everything; this[feature] = state changes that."""
    states = {"kvm": False}

    def look(features):
        return {name: Found(states.get(name, WORKS), name.partition(":")[2]) for name in features}

    monkeypatch.setattr(ready, "accelerator", lambda: "kvm" if states["kvm"] else "tcg")
    monkeypatch.setattr(host_features, "look", look)
    monkeypatch.setattr(host_features, "load", lambda features: (look(features), ("xt_comment",)))
    monkeypatch.setattr(packages, "missing", lambda groups=(): ["lxc"])
    monkeypatch.setattr(packages, "find_program", lambda name: None)
    return states


def test_kvm_comes_first(this):
    this["kvm"] = True
    assert choice.choose(None, [HOST], NONE) == ("libvirt", "provider libvirt: KVM works here")


def test_without_kvm_this_kernel_is_next(this):
    assert choice.choose("", [HOST, FAST], FAR) == (
        "lxc",
        "provider lxc: no KVM here, and this machine's kernel has all that is needed",
    )


def test_modules_that_will_come_are_told(this):
    this.update({"xt:comment": LOADABLE, "qdisc:netem": LOADABLE})
    assert choice.choose(None, [HOST, SLOW], FAR) == (
        "lxc",
        "provider lxc: no KVM here, and this machine's kernel has all that is needed; it loads netem and comment",
    )


def test_what_this_kernel_lacks_leaves_emulated_cpus(this):
    this.update({"xt:comment": ABSENT, "genl:ovs_datapath": ABSENT})
    assert choice.choose(None, [HOST, SLOW, FAST], CAPPED) == (
        "libvirt",
        "provider libvirt, emulated CPUs: no KVM here, and weave needs xt_comment and openvswitch, which this kernel lacks",
    )


def test_a_latency_that_cannot_be_applied_is_a_lack_where_nobody_asked(this):
    this["qdisc:netem"] = ABSENT
    assert choice.choose(None, [HOST], FAR) == (
        "libvirt",
        "provider libvirt, emulated CPUs: no KVM here, and the latency of profile far needs netem, which this kernel "
        "lacks",
    )
    assert choice.choose(None, [HOST], CAPPED)[0] == "lxc"


def test_all_that_lacks_is_told_with_what_needs_it(this):
    this.update({"xt:comment": ABSENT, "qdisc:netem": ABSENT, "link:veth": ABSENT})
    assert choice.choose(None, [HOST, SLOW], LOSSY)[1] == (
        "provider libvirt, emulated CPUs: no KVM here, and every system container needs veth, and weave needs "
        "xt_comment, and profile lossy needs netem, which this kernel lacks"
    )


def test_what_was_not_tried_is_not_chosen(this):
    this["link:veth"] = UNTRIED
    assert choice.choose(None, [HOST], NONE) == (
        "libvirt",
        "provider libvirt, emulated CPUs: no KVM here, and whether this kernel has veth cannot be told without root "
        "(PROVIDER=lxc tries)",
    )


def test_lxc_that_was_asked_for_measures_without_the_latency(this):
    this["qdisc:netem"] = ABSENT
    assert choice.choose("lxc", [HOST, FAST], FAR) == (
        "lxc",
        "provider lxc, as asked; latency is not applied, as this kernel lacks netem",
    )


def test_lxc_that_was_asked_for_may_be_tried_as_root_later(this):
    this.update({"link:veth": UNTRIED, "xt:comment": LOADABLE})
    assert choice.choose("lxc", [SLOW], NONE) == ("lxc", "provider lxc, as asked; it loads comment")


def test_lxc_is_asked_for_whether_kvm_works_or_not(this):
    this["kvm"] = True
    assert choice.choose("lxc", [HOST], NONE) == ("lxc", "provider lxc, as asked")


def test_libvirt_that_was_asked_for_says_how_its_cpus_run(this):
    assert choice.choose("libvirt", [FAST], LOSSY) == (
        "libvirt",
        "provider libvirt, as asked; emulated CPUs: no KVM here",
    )
    this["kvm"] = True
    assert choice.choose("libvirt", [FAST], LOSSY) == ("libvirt", "provider libvirt, as asked")


def test_lxc_that_cannot_run_it_is_refused_with_all_that_lacks(this):
    this.update({"xt:comment": ABSENT, "genl:ovs_datapath": ABSENT, "qdisc:netem": ABSENT})
    with pytest.raises(UserError) as error:
        choice.choose("lxc", [HOST, FAST], LOSSY)
    assert str(error.value) == (
        "PROVIDER=lxc: this machine's kernel must have all that its nodes need (found: weave needs xt_comment and "
        "openvswitch, and profile lossy needs netem, which it lacks). Leave PROVIDER out or take PROVIDER=libvirt, whose nodes "
        "have a kernel of their own; ./task doctor shows what runs where"
    )


def test_virtualbox_has_to_be_installed(this, monkeypatch):
    with pytest.raises(UserError) as error:
        choice.choose("virtualbox", [HOST], NONE)
    assert str(error.value) == (
        "PROVIDER=virtualbox: must be installed to be used (found: no VBoxManage). Install VirtualBox, or leave "
        "PROVIDER out for what fits this machine"
    )
    monkeypatch.setattr(packages, "find_program", lambda name: f"/usr/bin/{name}")
    assert choice.choose("virtualbox", [HOST], NONE) == (
        "virtualbox",
        "provider virtualbox, as asked",
    )


def test_an_unknown_provider_is_refused(this):
    with pytest.raises(UserError) as error:
        choice.choose("docker", [HOST], NONE)
    assert str(error.value) == (
        "PROVIDER: must be one of libvirt, virtualbox, lxc (found: docker). Leave it out for what fits this machine; "
        "./task doctor shows which runs what"
    )


@pytest.fixture
def noted(monkeypatch):
    """Names of modules that are noted as having come for nodes."""
    names = []
    monkeypatch.setattr(lxc_host, "remember_modules", names.extend)
    return names


def test_what_came_for_nodes_on_this_kernel_is_noted(this, noted):
    choice.load("libvirt", [HOST, SLOW], FAR)
    assert noted == []
    choice.load("lxc", [HOST, SLOW], FAR)
    assert noted == ["xt_comment"]


def test_loading_refuses_what_turns_out_to_be_absent(this, noted):
    this["xt:comment"] = ABSENT
    with pytest.raises(UserError, match=r"found: weave needs xt_comment, which it lacks"):
        choice.load("lxc", [HOST, SLOW], FAR)
    assert noted == []


def test_a_system_that_runs_in_vms_alone(this):
    assert choice.choose(None, [HOST], NONE, "flatcar") == (
        "libvirt",
        "provider libvirt, emulated CPUs: no KVM here, and Flatcar Container Linux runs in VMs alone: its /usr is a "
        "partition of its own, which dm-verity guards",
    )
    with pytest.raises(UserError) as refused:
        choice.choose("lxc", [HOST], NONE, "flatcar")
    assert str(refused.value) == (
        "PROVIDER=lxc, SYSTEM=flatcar: Flatcar Container Linux must run in VMs (found: its /usr is a partition of its own, "
        "which dm-verity guards). Leave PROVIDER out or take PROVIDER=libvirt"
    )
    assert choice.choose(None, [HOST], NONE, "ubuntu")[0] == "lxc"
