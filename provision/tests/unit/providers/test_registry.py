"""Providers by name: what each of the project's own can, and where the rest follows from that."""

import importlib
from pathlib import Path

import pytest
from lab_commands import refused

from overlaylab.core.errors import UserError
from overlaylab.machine import ready
from overlaylab.machine.ready import Needs
from overlaylab.providers import registry
from overlaylab.providers.capabilities import Capabilities
from overlaylab.specs.cluster import ClusterSpec

CAN = {
    "libvirt": Capabilities("libvirt", snapshots=True, needs=Needs(libvirt=True), fallback=True),
    "virtualbox": Capabilities(
        "virtualbox", accelerator="kvm", snapshots=True, product=("VirtualBox", "VBoxManage")
    ),
    "lxc": Capabilities(
        "lxc",
        accelerator="shared-kernel",
        shares_kernel=True,
        limits_at_creation=True,
        needs=Needs(groups=("system containers",)),
        before_emulation=True,
    ),
    "hosts": Capabilities(
        "hosts",
        accelerator="bare",
        makes_nodes=False,
        on_this_machine=False,
        needs=Needs(groups=("reaching the nodes", "building overlay daemons", "the node kit"), alone=True),
        patience=600,
    ),
}


@pytest.mark.parametrize("name", CAN)
def test_what_each_provider_can(name: str) -> None:
    assert registry.capabilities(name) == CAN[name]


def test_they_are_listed_with_the_fallback_first_and_none_that_an_inventory_chooses() -> None:
    assert registry.names() == ("libvirt", "virtualbox", "lxc")
    assert (registry.fallback(), registry.before_emulation(), registry.of_inventory()) == (
        "libvirt",
        "lxc",
        "hosts",
    )


@pytest.mark.parametrize("ask", [registry.check, registry.capabilities])
def test_an_unknown_provider_is_refused_with_those_that_there_are(ask) -> None:
    with pytest.raises(UserError, match=r"must be one of libvirt, virtualbox, lxc \(found: vmware\)"):
        ask("vmware")
    assert refused("measure", "weave", PROVIDER="vmware").where == "PROVIDER"


@pytest.mark.parametrize("can", [CAN["libvirt"], CAN["lxc"]], ids=lambda can: can.name)
def test_only_nodes_that_keep_their_limits_for_life_are_made_with_them(
    monkeypatch: pytest.MonkeyPatch, can: Capabilities
) -> None:
    made: list[object] = []

    def make(spec: ClusterSpec, say, **how):
        made.extend([spec.name, how])

    module = importlib.import_module(f"overlaylab.providers.kinds.{can.name}")
    monkeypatch.setattr(module, "PROVIDER", registry.Kind(can, make))
    monkeypatch.setattr(ready, "ensure", lambda needs, meanwhile: made.append(needs))
    registry.make(can.name, "pair", print, underlay_mtu=1500, vcpus=2, quota=0.5)
    limits = {"vcpus": 2, "quota": 0.5} if can.limits_at_creation else {}
    assert made == [can.needs, "pair", {"underlay_mtu": 1500, **limits}]


def test_the_fallback_keeps_its_notes_in_the_clusters_folder_and_the_others_below(own_cache: Path) -> None:
    folders = {name: registry.folder(name, "pair") for name in registry.names()}
    root = own_cache / "clusters" / "pair"
    assert folders == {"libvirt": root, "virtualbox": root / "virtualbox", "lxc": root / "lxc"}
    (root / "lxc").mkdir(parents=True)
    assert registry.of_cluster("pair") == "libvirt"
    (root / "lxc" / "state.json").touch()
    assert registry.of_cluster("pair") == "lxc"
    assert [registry.clusters_of(name) for name in registry.names()] == [[], [], ["pair"]]
