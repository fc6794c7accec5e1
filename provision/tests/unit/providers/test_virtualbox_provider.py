"""Nodes as VirtualBox VMs, on a VBoxManage in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from lab_builders import inventory
from lab_fakes import FakeNodes
from lab_virtualbox import NODES, FakeVagrant, Hypervisor, install

from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import Variant
from overlaylab.image import node_image, virtualbox_box
from overlaylab.machine import ready as host
from overlaylab.nodes import ansible, ssh
from overlaylab.providers.kinds import virtualbox
from overlaylab.providers.kinds.virtualbox import VirtualBox
from overlaylab.shaping import cpu
from overlaylab.specs import cluster, overlays
from overlaylab.specs.inventory import load_inventory, write_inventory

HOST, FASTDP, SEALED = Variant("host"), Variant("weave", "fastdp"), Variant("weave", "fastdp", True)


@pytest.fixture
def hypervisor(monkeypatch: pytest.MonkeyPatch) -> Hypervisor:
    return install(monkeypatch)


@pytest.fixture
def playbooks(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    called: list[tuple] = []
    monkeypatch.setattr(ansible, "run_playbook", lambda *arguments: called.append(arguments))
    return called


HOST_KEYS = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBbt5OIZOtue0R0K1mGhSK+GYJrVp9DIzAeIk6gkqZqQ",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBkVF0oI0cHzqLK/0OJSXE6XqZ9aFH32A74eKZprgHFN",
)


async def pin(nodes):
    """Each node shows a key of its own."""
    return tuple(replace(node, host_key=key) for node, key in zip(nodes, HOST_KEYS, strict=True))


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, own_cache, hypervisor, playbooks):
    """make(image=…, …): the cluster pair on nodes that answer, with that image."""

    def build(image_key: str = "0123456789abcdef", **options) -> VirtualBox:
        monkeypatch.setattr(host, "accelerator", lambda: pytest.fail("KVM is not asked for"))
        monkeypatch.setattr(host, "preflight", lambda **_: None)
        monkeypatch.setattr(node_image, "image_key", lambda system="debian": image_key)
        monkeypatch.setattr(node_image, "build", lambda system: own_cache)
        monkeypatch.setattr(ssh, "pin", pin)
        monkeypatch.setattr(virtualbox_box, "build", lambda system: Path("/images/overlaylab-virtualbox.box"))
        provider = VirtualBox(cluster.load_cluster("pair"), lambda text: None, **options)
        provider.folder.mkdir(parents=True, exist_ok=True)
        write_inventory(provider.folder / "inventory.yml", inventory("a", "a"))
        answers = {"date -u -s": "", "ip link set dev": "", "/etc/hostname": ""}
        monkeypatch.setattr("overlaylab.providers.made_nodes.Nodes", lambda found: FakeNodes(found, answers))
        provider.vagrant = FakeVagrant(provider, hypervisor)  # type: ignore[assignment]
        provider.vagrant.note()
        return provider

    return build


def ready(provider: VirtualBox, hypervisor: Hypervisor, *snapshots: str) -> None:
    """The nodes are of this image and cluster, and have their clean snapshot and these below it."""
    (provider.folder / "state.json").write_text(f'{{"key": "{provider.key}"}}')
    for name in NODES:
        for snapshot in (provider.clean_snapshot(), *snapshots):
            hypervisor.add(name, snapshot)


def memories(hypervisor: Hypervisor) -> list[str | None]:
    return [hypervisor.machines[name].memory for name in NODES]


# -- what a run records -----------------------------------------------------------------------------


def test_its_own_folder_box_and_cpu(make, own_cache) -> None:
    provider = make()
    assert provider.folder == own_cache / "clusters" / "pair" / "virtualbox"
    assert (provider.name, provider.accelerator, provider.capabilities.snapshots) == (
        "virtualbox",
        "kvm",
        True,
    )
    assert provider.networks == ()
    assert provider.describe()["node1"]["cpus"] == provider.spec.nodes[0].cpus
    assert type(provider.cpu) is cpu.InNode


def test_states_of_another_image_box_or_mtu_have_other_names(make, monkeypatch) -> None:
    base = make()
    names = {base.clean_snapshot(), make(image_key="fedcba9876543210").clean_snapshot()}
    monkeypatch.setattr(virtualbox_box, "recipe", lambda: "another0")
    names.add(make().clean_snapshot())
    names |= {base.snapshot(FASTDP), make(underlay_mtu=1500).snapshot(FASTDP)}
    assert len(names) == 5


def test_nodes_on_forwarded_ports_of_the_loopback_make_an_inventory(tmp_path) -> None:
    """As `vagrant ssh-config` gives them: one address, a port each."""
    found = inventory("a", "a")
    nodes = tuple(
        replace(node, ssh_host="127.0.0.1", ssh_port=port)
        for node, port in zip(found.nodes, (2222, 2200), strict=True)
    )
    write_inventory(tmp_path / "inventory.yml", replace(found, provider="virtualbox", nodes=nodes))
    read = load_inventory(tmp_path / "inventory.yml")
    assert [(node.ssh_host, node.ssh_port) for node in read.nodes] == [
        ("127.0.0.1", 2222),
        ("127.0.0.1", 2200),
    ]
    assert not any(node.management_on_underlay for node in read.nodes)


# -- states -----------------------------------------------------------------------------------------


async def test_entering_switches_off_restores_and_starts_all(make, hypervisor) -> None:
    provider = make()
    ready(provider, hypervisor, provider.snapshot(FASTDP))
    entered = await provider.enter(FASTDP)
    assert entered.converge == 0 and entered.revert >= 0
    name = provider.snapshot(FASTDP)
    assert hypervisor.log == [
        *(f"controlvm {node} poweroff" for node in NODES),
        *(f"snapshot {node} restore {name}" for node in NODES),
        *(f"startvm {node} --type headless" for node in NODES),
    ]
    assert memories(hypervisor) == [name, name]
    assert provider.nodes.dropped == 1
    for node in provider.nodes.values():
        assert node.connected
        assert [script.split()[:3] for script in node.log] == [["date", "-u", "-s"]]


async def test_nothing_is_switched_off_for_a_snapshot_that_is_not_there(make, hypervisor) -> None:
    provider = make()
    ready(provider, hypervisor)
    with pytest.raises(NodeError, match=f"machine {NODES[0]} has no snapshot host-"):
        await provider.enter(HOST)
    assert hypervisor.log == []


@pytest.mark.parametrize("state", ["poweroff", "saved", "aborted", "paused", "gurumeditation"])
async def test_entering_from_any_state(make, hypervisor, state) -> None:
    provider = make()
    ready(provider, hypervisor, provider.snapshot(HOST))
    hypervisor.machines[NODES[1]].state = state
    await provider.enter(HOST)
    assert await provider.status() == {"node1": "running", "node2": "running"}


async def test_a_snapshot_keeps_the_memory_of_one_moment(make, hypervisor) -> None:
    provider = make()
    await provider.take("a")
    assert hypervisor.log == [
        *(f"controlvm {node} pause" for node in NODES),
        *(f"snapshot {node} take a" for node in NODES),
        *(f"controlvm {node} resume" for node in NODES),
    ]
    assert [hypervisor.machines[name].root.memory for name in NODES] == ["fresh", "fresh"]
    assert await provider.status() == {"node1": "running", "node2": "running"}


async def test_nodes_go_on_where_one_could_not_be_saved(make, hypervisor) -> None:
    provider = make()
    hypervisor.fail = f"snapshot {NODES[1]} take"
    with pytest.raises(NodeError, match="no space"):
        await provider.take("a")
    assert await provider.status() == {"node1": "running", "node2": "running"}


async def test_what_only_one_node_has_is_put_aside_and_taken_again(make, hypervisor, playbooks) -> None:
    """A runner that was killed while the nodes were saved leaves such."""
    provider = make()
    ready(provider, hypervisor)
    hypervisor.add(NODES[0], provider.snapshot(HOST))
    await provider.prepare([HOST], print)
    assert [call[1:3] for call in playbooks] == [("host", "converge")]
    for name in NODES:
        assert sorted(hypervisor.snapshots(name).values()) == sorted(
            [provider.clean_snapshot(), provider.snapshot(HOST)]
        ), "the leftover is gone"
    assert await provider.kept() == {provider.clean_snapshot(), provider.snapshot(HOST)}
    assert await provider.status() == {"node1": "running", "node2": "running"}


async def test_a_mode_is_converged_from_its_familys_state(make, hypervisor, playbooks) -> None:
    provider = make(underlay_mtu=1500)
    ready(provider, hypervisor)
    await provider.prepare([HOST, FASTDP, SEALED], print)
    clean, plain, sealed = provider.clean_snapshot(), provider.snapshot(FASTDP), provider.snapshot(SEALED)
    assert hypervisor.snapshots(NODES[1]) == {
        "": clean,
        "-1": provider.snapshot(HOST),
        "-2": plain,
        "-2-1": sealed,
    }
    assert [call[0] for call in playbooks] == [provider.folder / "inventory.yml"] * 3
    assert await provider.kept() == {clean, provider.snapshot(HOST), plain, sealed}


async def test_what_is_converged_is_not_converged_again(make, hypervisor, playbooks) -> None:
    provider = make()
    ready(provider, hypervisor, provider.snapshot(HOST), provider.snapshot(FASTDP))
    await provider.prepare([HOST, FASTDP], print)
    assert (playbooks, hypervisor.log) == ([], [])


async def test_states_of_an_older_role_are_deleted_children_first(make, hypervisor) -> None:
    provider = make()
    other = make(underlay_mtu=1500)
    ready(provider, hypervisor, provider.snapshot(HOST), other.snapshot(FASTDP))
    for name in NODES:
        hypervisor.add(name, "weave-0123-fastdp-4567")
        for child in ("a", "b"):
            hypervisor.add(name, f"weave-0123-fastdp-{child}", parent="weave-0123-fastdp-4567")
    await provider.prepare([HOST], print)
    for name in NODES:
        assert hypervisor.snapshots(name) == {
            "": provider.clean_snapshot(),
            "-1": provider.snapshot(HOST),
            "-2": other.snapshot(FASTDP),
        }
    assert memories(hypervisor) == [provider.clean_snapshot()] * 2
    assert await provider.status() == {"node1": "running", "node2": "running"}


# -- life -------------------------------------------------------------------------------------------


async def test_nodes_are_made_saved_and_noted(make, hypervisor, own_cache) -> None:
    hypervisor.machines.clear()
    provider = make()
    await provider.up()
    assert provider.vagrant.log == [
        "remove other boxes",
        "add overlaylab-virtualbox.box",
        "up --no-destroy-on-error",
    ]
    assert await provider.kept() == {provider.clean_snapshot()}
    noted = load_inventory(provider.folder / "inventory.yml")
    assert noted.provider == "virtualbox"
    assert tuple(node.host_key for node in noted.nodes) == HOST_KEYS
    hypervisor.log.clear()
    await provider.up()
    assert provider.vagrant.log[3:] == []
    assert [line.split()[0] for line in hypervisor.log] == ["controlvm"] * 2 + ["snapshot"] * 2 + [
        "startvm"
    ] * 2


async def test_nodes_of_another_image_are_made_anew(make, hypervisor) -> None:
    provider = make()
    ready(provider, hypervisor)
    provider = make(image_key="another")
    before = {machine.uuid for machine in hypervisor.machines.values()}
    await provider.up()
    assert provider.vagrant.log[0] == "destroy -f"
    assert before.isdisjoint(machine.uuid for machine in hypervisor.machines.values())


async def test_nodes_that_do_not_come_back_are_made_anew(make, hypervisor) -> None:
    provider = make()
    ready(provider, hypervisor)
    hypervisor.fail = "startvm"
    provider.vagrant.__class__ = type(
        "Healing", (FakeVagrant,), {"remove_other_boxes": lambda self: setattr(hypervisor, "fail", None)}
    )
    await provider.up()
    assert [line.split()[0] for line in provider.vagrant.log] == ["destroy", "add", "up"]
    assert await provider.status() == {"node1": "running", "node2": "running"}


async def test_somebody_elses_nodes_are_left_alone(make, hypervisor) -> None:
    provider = make()
    hypervisor.machines[NODES[1]].uuid = "ffffffff-0000-4000-8000-000000000000"
    with pytest.raises(
        UserError, match=r"VirtualBox machine overlaylab-pair-node2: must be of this cache"
    ) as wrong:
        await provider.up()
    assert "VBoxManage unregistervm overlaylab-pair-node2 --delete" in wrong.value.fix
    await provider.remove_nodes()
    assert list(hypervisor.machines) == [NODES[1]]
    assert not [line for line in hypervisor.log if NODES[1] in line]


async def test_down_switches_off_and_keeps_states(make, hypervisor) -> None:
    provider = make()
    ready(provider, hypervisor)
    hypervisor.machines[NODES[1]].state = "poweroff"
    hypervisor.define("overlaylab-trio-node1", "somebody-elses")
    await provider.down()
    assert hypervisor.log == [f"controlvm {NODES[0]} poweroff"]
    assert await provider.kept() == {provider.clean_snapshot()}


async def test_removing_takes_nodes_that_vagrant_has_forgotten(make, hypervisor) -> None:
    provider = make()
    ready(provider, hypervisor)

    async def knows_nothing(*arguments: str) -> str:
        return ""

    provider.vagrant = knows_nothing
    hypervisor.define("somebody-elses")
    await provider.remove_nodes()
    assert list(hypervisor.machines) == ["somebody-elses"]
    assert not (provider.folder / "state.json").exists()


async def test_a_cluster_without_nodes_has_nothing_kept(make, hypervisor) -> None:
    provider = make()
    del hypervisor.machines[NODES[1]]
    assert await provider.status() == {"node1": "running", "node2": "absent"}
    assert await provider.kept() == set()


def test_an_overlay_of_today_counts_as_converged(make, monkeypatch) -> None:
    provider = make()
    assert provider.is_converged(FASTDP, [make(underlay_mtu=9001).snapshot(FASTDP)])
    before = provider.snapshot(FASTDP)
    monkeypatch.setattr(overlays, "role_digest", lambda name: "edited")
    assert not make().is_converged(FASTDP, [before])


async def test_up_refuses_a_virtualbox_that_cannot_run_the_nodes(make, hypervisor) -> None:
    hypervisor.version = (0, "6.0.24r139119\n", "")
    with pytest.raises(UserError, match=r"needs VirtualBox 6\.1 or later"):
        await make().up()
    assert hypervisor.log == []


async def test_machines_of_a_cluster_whose_file_is_gone_are_removed(hypervisor, own_cache) -> None:
    hypervisor.define("overlaylab-old-node1", "somebody-elses")
    noted = own_cache / "clusters" / "old" / "virtualbox" / "vagrant" / "machines" / "node1" / "virtualbox"
    noted.mkdir(parents=True)
    (noted / "id").write_text(hypervisor.machines["overlaylab-old-node1"].uuid)
    await virtualbox.remove_forgotten("old")
    assert set(hypervisor.machines) == {*NODES, "somebody-elses"}
    assert not (own_cache / "clusters" / "old" / "virtualbox").exists()
