"""Nodes as libvirt VMs: snapshots by what went into them, reverts, and what is removed."""

import pytest
from lab_builders import inventory
from lab_fakes import FakeNodes
from lab_libvirt import NODES, Hypervisor

from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import Variant
from overlaylab.image import node_image
from overlaylab.machine import ready as host
from overlaylab.machine import ssh_keys
from overlaylab.nodes import ansible
from overlaylab.providers import snapshots, virsh
from overlaylab.providers.kinds import libvirt
from overlaylab.providers.kinds.libvirt import Libvirt
from overlaylab.shaping import scripts as shaping_scripts
from overlaylab.specs import cluster, overlays
from overlaylab.specs.inventory import write_inventory

HOST, FASTDP, SEALED = Variant("host"), Variant("weave", "fastdp"), Variant("weave", "fastdp", True)


@pytest.fixture
def hypervisor(monkeypatch: pytest.MonkeyPatch) -> Hypervisor:
    found = Hypervisor(networks={"overlaylab-management": True, "overlaylab-pair": True})
    found.define(*NODES)
    monkeypatch.setattr(virsh, "virsh", found.virsh)
    return found


@pytest.fixture
def playbooks(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    called: list[tuple] = []
    monkeypatch.setattr(ansible, "run_playbook", lambda *arguments: called.append(arguments[1:]))
    return called


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, own_cache, hypervisor, playbooks):
    """make(image=…, …): the cluster pair on nodes that answer, with that image and accelerator."""

    def build(image_key: str = "0123456789abcdef", accelerator: str = "tcg", **options) -> Libvirt:
        monkeypatch.setattr(host, "accelerator", lambda: accelerator)
        monkeypatch.setattr(node_image, "image_key", lambda system: image_key)
        provider = Libvirt(cluster.load_cluster("pair"), lambda text: None, **options)
        provider.folder.mkdir(parents=True, exist_ok=True)
        write_inventory(provider.folder / "inventory.yml", inventory("a", "a"))
        provider._nodes = FakeNodes(provider.inventory, {"date -u -s": "", "ip link set dev": ""})  # type: ignore[assignment]

        async def removed(*arguments: str) -> str:
            assert arguments == ("destroy", "-f")
            for name in NODES:
                hypervisor.domains.pop(name, None)
            return ""

        provider.vagrant = removed  # type: ignore[assignment]
        return provider

    return build


def ready(provider: Libvirt, hypervisor: Hypervisor, *snapshots: str) -> None:
    """The nodes are of this image and cluster, and have their clean snapshot and these."""
    (provider.folder / "state.json").write_text(f'{{"key": "{provider.key}"}}')
    for name in NODES:
        hypervisor.snapshots[name] = [provider.clean_snapshot(), *snapshots]


def test_the_quota_is_libvirts(make) -> None:
    provider = make()
    assert provider.cpu.domains == dict(zip(("node1", "node2"), NODES, strict=True))
    assert provider.cpu.nodes is provider.nodes


# -- names of snapshots -----------------------------------------------------------------------------


def test_a_snapshots_name_changes_with_all_that_went_in(make, monkeypatch) -> None:
    base = make()
    names = [base.snapshot(FASTDP), base.clean_snapshot()]
    assert names[0].startswith("weave-") and "-fastdp-" in names[0]
    others = [
        make(image_key="fedcba9876543210"),
        make(accelerator="kvm"),
        make(underlay_mtu=1500),
        make(role_arguments={"weave": {"overlay_weave_mtu": 1410}}),
    ]
    found = [other.snapshot(FASTDP) for other in others]
    with monkeypatch.context() as patched:
        patched.setattr(snapshots.naming, "script", lambda node: "another")
        found.append(make().snapshot(FASTDP))
    monkeypatch.setattr(overlays, "role_digest", lambda name: "another")
    found.append(make().snapshot(FASTDP))
    found += [base.snapshot(SEALED), base.snapshot(HOST)]
    assert len({*names, *found}) == len(names) + len(found)
    assert make().clean_snapshot() == base.clean_snapshot()


def test_a_role_that_is_edited_during_a_run_does_not_change_the_run(make, monkeypatch) -> None:
    provider = make()
    before = provider.snapshot(FASTDP)
    monkeypatch.setattr(overlays, "role_digest", lambda name: "edited")
    assert provider.snapshot(FASTDP) == before
    assert make().snapshot(FASTDP) != before


def test_arguments_of_another_overlay_do_not_count(make) -> None:
    assert make(role_arguments={"other": {"x": 1}}).snapshot(FASTDP) == make().snapshot(FASTDP)


# -- states -----------------------------------------------------------------------------------------


async def test_entering_reverts_connects_anew_and_sets_the_clocks(make, hypervisor) -> None:
    provider = make()
    ready(provider, hypervisor, provider.snapshot(FASTDP))
    entered = await provider.enter(FASTDP)
    assert entered.converge == 0 and entered.revert >= 0
    assert [line for line in hypervisor.log if "revert" in line] == [
        f"snapshot-revert {name} {provider.snapshot(FASTDP)} --paused" for name in NODES
    ]
    assert provider.nodes.dropped == 1
    for node in provider.nodes.values():
        assert node.connected
        assert [script.split()[:3] for script in node.log] == [["date", "-u", "-s"]]


async def test_a_fresh_block_boots_the_clean_nodes_and_converges_anew(
    make, hypervisor, playbooks, monkeypatch
) -> None:
    provider = make()
    ready(provider, hypervisor, provider.snapshot(FASTDP))
    boots = {name: iter(["one\n", "", "one\n", "two\n"]) for name in provider.nodes}
    for name, node in provider.nodes.items():
        node.answers |= {"boot_id": lambda _, n=name: next(boots[n]), "systemctl --no-block reboot": ""}

    async def sleep(seconds: float) -> None:
        pass

    monkeypatch.setattr(snapshots.asyncio, "sleep", sleep)
    entered = await provider.enter(FASTDP, fresh=True)
    assert (entered.booted, (await provider.enter(FASTDP)).booted) == (True, False)
    assert [line.split()[2] for line in hypervisor.log if line.startswith(f"snapshot-revert {NODES[0]}")] == [
        provider.clean_snapshot(),
        provider.snapshot(FASTDP),
    ]
    assert [call[:2] for call in playbooks] == [("weave", "converge")]


async def test_nodes_that_do_not_boot_are_not_waited_for_for_ever(make, hypervisor, monkeypatch) -> None:
    provider = make()
    ready(provider, hypervisor)
    monkeypatch.setattr(snapshots, "BOOT_SECONDS", -1)
    for node in provider.nodes.values():
        node.answers |= {"boot_id": "one\n", "systemctl --no-block reboot": ""}
    with pytest.raises(NodeError, match="node1 has not booted after -1 s"):
        await provider.enter(HOST, fresh=True)


async def test_nodes_are_named_by_their_state(make, hypervisor) -> None:
    hypervisor.domains[NODES[0]] = "shut off"
    del hypervisor.domains[NODES[1]]
    assert await make().status() == {"node1": "shut off", "node2": "absent"}


async def test_what_is_converged_is_not_converged_again(make, hypervisor, playbooks) -> None:
    provider = make()
    ready(provider, hypervisor, provider.snapshot(HOST), provider.snapshot(FASTDP))
    await provider.prepare([HOST, FASTDP], print)
    assert playbooks == []
    assert hypervisor.log == []


async def test_what_only_one_node_has_is_converged_again(make, hypervisor, playbooks) -> None:
    """A runner that was killed while the nodes were saved leaves such."""
    provider = make()
    ready(provider, hypervisor)
    hypervisor.snapshots[NODES[0]].append(provider.snapshot(HOST))
    await provider.prepare([HOST], print)
    assert [call[:2] for call in playbooks] == [("host", "converge")]
    for name in NODES:
        assert hypervisor.snapshots[name] == [provider.clean_snapshot(), provider.snapshot(HOST)]


async def test_a_mode_is_converged_from_its_familys_state_where_there_is_one(
    make, hypervisor, playbooks
) -> None:
    provider = make(underlay_mtu=1500)
    ready(provider, hypervisor)
    await provider.prepare([HOST, FASTDP, SEALED], print)
    reverted = [line.split()[2] for line in hypervisor.log if line.startswith(f"snapshot-revert {NODES[0]}")]
    # Not once more for the last: fastdp was saved a moment before.
    assert reverted == [provider.clean_snapshot(), provider.clean_snapshot()]
    assert hypervisor.snapshots[NODES[1]] == [
        provider.clean_snapshot(),
        *map(provider.snapshot, (HOST, FASTDP, SEALED)),
    ]
    assert playbooks == [
        ("host", "converge", {}),
        ("weave", "converge", {"overlay_weave_mode": "fastdp", "overlay_weave_encrypted": False}),
        ("weave", "converge", {"overlay_weave_mode": "fastdp", "overlay_weave_encrypted": True}),
    ]
    scripts = [script for script in provider.nodes["node1"].log if "ip link set" in script]
    assert scripts == [shaping_scripts.mtu_script("eth1", 1500)] * 3


async def test_nodes_that_just_came_up_clean_are_not_put_back_once_more(make, hypervisor, playbooks) -> None:
    provider = make()
    ready(provider, hypervisor)
    hypervisor.domains[NODES[0]] = "shut off"
    await provider.prepare([HOST, FASTDP], print)
    reverted = [line.split()[2] for line in hypervisor.log if line.startswith(f"snapshot-revert {NODES[0]}")]
    # Once as they came up, and once before the second overlay.
    assert reverted == [provider.clean_snapshot()] * 2


async def test_states_of_an_older_role_are_deleted_and_others_stay(make, hypervisor) -> None:
    provider = make()
    other = make(underlay_mtu=1500)
    ready(
        provider,
        hypervisor,
        provider.snapshot(HOST),
        other.snapshot(FASTDP),
        "weave-0123-fastdp-4567",
        "clean-old",
    )
    await provider.prepare([HOST], print)
    assert hypervisor.snapshots[NODES[0]] == [
        provider.clean_snapshot(),
        provider.snapshot(HOST),
        other.snapshot(FASTDP),
    ]


async def test_up_reverts_nodes_that_are_there(make, hypervisor) -> None:
    provider = make()
    ready(provider, hypervisor)
    await provider.up()
    assert [line.split()[0] for line in hypervisor.log] == ["snapshot-revert"] * 2 + ["resume"] * 2


@pytest.mark.parametrize("how", ["another image", "another SSH key", "one node", "no clean state"])
async def test_up_makes_nodes_anew_where_they_are_not_what_was_asked_for(
    make, hypervisor, monkeypatch, how
) -> None:
    provider = make()
    ready(provider, hypervisor)
    if how == "another image":
        provider = make(image_key="another")
    elif how == "another SSH key":
        ssh_keys.make(ssh_keys.ensure())  # the nodes let in the one that they were made with
        provider = make()
    elif how == "one node":
        del hypervisor.domains[NODES[1]]
    else:
        hypervisor.snapshots[NODES[1]] = []
    made: list[str] = []

    async def make_nodes() -> None:
        made.append(" ".join(hypervisor.domains))

    monkeypatch.setattr(provider, "_make", make_nodes)
    await provider.up()
    assert made == [""]  # the old ones are gone by then
    assert not (provider.folder / "state.json").exists()


async def test_down_switches_off_and_keeps_states(make, hypervisor) -> None:
    provider = make()
    ready(provider, hypervisor)
    hypervisor.domains[NODES[1]] = "shut off"
    hypervisor.define("somebody-elses")
    await provider.down()
    assert hypervisor.log == [f"destroy {NODES[0]}"]
    assert hypervisor.snapshots[NODES[0]] == [provider.clean_snapshot()]


async def test_nodes_that_were_left_half_made_are_switched_off(make, hypervisor) -> None:
    provider = make()
    (provider.folder / "inventory.yml").unlink()
    provider._nodes = None
    await provider.down()
    assert hypervisor.log == [f"destroy {name}" for name in NODES]


async def test_removing_takes_nodes_that_vagrant_has_forgotten_and_their_networks(make, hypervisor) -> None:
    provider = make()
    ready(provider, hypervisor)

    async def knows_nothing(*arguments: str) -> str:
        return ""

    provider.vagrant = knows_nothing
    hypervisor.define("somebody-elses")
    hypervisor.networks["default"] = True
    await provider.remove_nodes()
    assert list(hypervisor.domains) == ["somebody-elses"]
    assert hypervisor.networks == {"default": True}
    assert not (provider.folder / "state.json").exists()


async def test_removing_one_cluster_leaves_the_others_their_management_network(make, hypervisor) -> None:
    provider = make()
    hypervisor.define("overlaylab-trio-node1")
    hypervisor.networks["overlaylab-trio"] = True
    await provider.remove_nodes()
    assert hypervisor.networks == {"overlaylab-management": True, "overlaylab-trio": True}


async def test_leaving_gives_up_the_connections_only(make, hypervisor) -> None:
    provider = make()
    await provider.renew()
    await provider.leave()
    assert hypervisor.log == []
    assert provider.nodes.dropped == 1


async def test_somebody_elses_nodes_are_left_alone(make, hypervisor) -> None:
    hypervisor.pool = "/var/tmp/overlaylab-somebody/pool"
    with pytest.raises(UserError, match=r"domain overlaylab-pair-node1: must be of this cache folder's lab"):
        await make().up()
    assert list(hypervisor.domains) == list(NODES)
    assert hypervisor.log == []


async def test_nodes_that_do_not_come_back_are_made_anew(make, hypervisor, monkeypatch) -> None:
    provider = make()
    ready(provider, hypervisor)
    hypervisor.fail = "snapshot-revert"
    made: list[str] = []

    async def make_nodes() -> None:
        made.append(" ".join(hypervisor.domains))

    async def remove_nodes() -> None:
        hypervisor.domains.clear()

    monkeypatch.setattr(provider, "_make", make_nodes)
    monkeypatch.setattr(provider, "remove_nodes", remove_nodes)
    await provider.up()
    assert made == [""], "made once, after the old ones were removed"


async def test_nodes_that_are_off_are_brought_up_before_anything_is_entered(
    make, hypervisor, monkeypatch
) -> None:
    provider = make()
    ready(provider, hypervisor)
    hypervisor.domains[NODES[1]] = "shut off"
    called: list[str] = []

    async def up() -> None:
        called.append("up")

    monkeypatch.setattr(provider, "up", up)
    await provider.prepare([], print)
    assert called == ["up"]


async def test_nodes_of_a_cluster_whose_file_is_gone_are_removed_by_what_was_noted(
    hypervisor, own_cache
) -> None:
    (own_cache / "clusters" / "pair").mkdir(parents=True)
    write_inventory(own_cache / "clusters" / "pair" / "inventory.yml", inventory("a", "a"))
    hypervisor.define("overlaylab-pair-zones-node1")
    await libvirt.remove_forgotten("pair")
    assert list(hypervisor.domains) == ["overlaylab-pair-zones-node1"]
    assert list(hypervisor.networks) == ["overlaylab-management"], "another cluster needs it"
    await libvirt.remove_forgotten("never-made")


def test_a_variant_counts_as_converged_under_any_mtu(make) -> None:
    plain, jumbo = make(), make(underlay_mtu=9001)
    assert plain.is_converged(FASTDP, [jumbo.snapshot(FASTDP)])
    assert not plain.is_converged(FASTDP, [jumbo.snapshot(SEALED), jumbo.snapshot(HOST), "weave-0-fastdp-1"])
