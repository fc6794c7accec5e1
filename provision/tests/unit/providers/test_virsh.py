"""What is asked of libvirt, and in which order: all nodes at one moment."""

from ipaddress import IPv4Network
from xml.etree import ElementTree

import pytest
from lab_libvirt import NODES, Hypervisor

from overlaylab.core.errors import NodeError
from overlaylab.providers import virsh


@pytest.fixture
def hypervisor(monkeypatch: pytest.MonkeyPatch) -> Hypervisor:
    found = Hypervisor(networks={"overlaylab-management": True, "overlaylab-pair": True})
    found.define(*NODES)
    monkeypatch.setattr(virsh, "virsh", found.virsh)
    return found


async def test_all_nodes_are_saved_at_one_moment(hypervisor) -> None:
    await virsh.take_snapshot(NODES, "clean")
    assert hypervisor.snapshots == {name: ["clean"] for name in NODES}
    assert set(hypervisor.domains.values()) == {"running"}
    verbs = [line.split()[0] for line in hypervisor.log]
    assert verbs == ["suspend"] * 2 + ["snapshot-create-as"] * 2 + ["resume"] * 2


async def test_nodes_run_on_when_saving_one_fails(hypervisor) -> None:
    hypervisor.fail = f"snapshot-create-as {NODES[1]}"
    with pytest.raises(NodeError, match="no space"):
        await virsh.take_snapshot(NODES, "clean")
    assert set(hypervisor.domains.values()) == {"running"}


async def test_all_nodes_are_reverted_before_any_runs_on(hypervisor) -> None:
    await virsh.take_snapshot(NODES, "clean")
    hypervisor.log.clear()
    await virsh.revert(NODES, "clean")
    assert [line.split()[0] for line in hypervisor.log] == ["snapshot-revert"] * 2 + ["resume"] * 2
    assert set(hypervisor.domains.values()) == {"running"}


async def test_a_snapshot_is_deleted_where_it_is(hypervisor) -> None:
    hypervisor.snapshots[NODES[1]] = ["old"]
    await virsh.delete_snapshot(NODES, "old")
    assert hypervisor.log == [f"snapshot-delete {NODES[1]} old"]


async def test_networks_are_started_where_they_are_not_active(hypervisor) -> None:
    hypervisor.networks["overlaylab-pair"] = False
    await virsh.start_networks(["overlaylab-management", "overlaylab-pair"])
    assert hypervisor.log == ["net-start overlaylab-pair"]


@pytest.mark.parametrize(("dhcp", "options"), [(True, ["no-ping"]), (False, [])])
async def test_addresses_are_offered_at_once(monkeypatch, dhcp, options) -> None:
    """Nodes waited six seconds of their boot for dnsmasq to ping an address before it gave it to them."""
    defined = []

    async def asked(verb: str, *arguments: str, **_: bool) -> str:
        if verb == "net-define":
            defined.append(ElementTree.parse(arguments[0]).getroot())
        return ""

    monkeypatch.setattr(virsh, "virsh", asked)
    await virsh.make_network("lab", IPv4Network("192.0.2.0/24"), dhcp=dhcp)
    (network,) = defined
    found = network.iterfind("{http://libvirt.org/schemas/network/dnsmasq/1.0}options/")
    assert [option.get("value") for option in found] == options
    ranges = [(r.get("start"), r.get("end")) for r in network.iterfind("ip/dhcp/range")]
    assert ranges == ([("192.0.2.2", "192.0.2.254")] if dhcp else [])


async def test_volumes_are_deleted_by_the_beginning_of_their_name(hypervisor) -> None:
    hypervisor.volumes = ["box_one_0.img", "box_one_1.img", "box_two_0.img"]
    await virsh.delete_volume("pool", "box_one")
    assert hypervisor.volumes == ["box_two_0.img"]


async def test_virsh_itself_is_asked_by_argument_and_fails_with_its_words(tmp_path, monkeypatch) -> None:
    program = tmp_path / "virsh"
    program.write_text('#!/bin/sh\necho "$*"\n[ "$4" != bad ] || { echo "error: no domain" >&2; exit 1; }\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert await virsh.virsh("domstate", "a b") == "-q -c qemu:///system domstate a b\n"
    with pytest.raises(NodeError, match="virsh bad x: error: no domain"):
        await virsh.virsh("bad", "x")
    assert await virsh.virsh("bad", "x", check=False) == "-q -c qemu:///system bad x\n"
