"""What Vagrant would do slower: the box and its volume are put where it looks, and nodes found by their leases."""

import pytest
from lab_libvirt import NODES, Hypervisor

from overlaylab.image import boxes, node_image, vagrant
from overlaylab.machine import ready
from overlaylab.providers import virsh
from overlaylab.providers.kinds import libvirt
from overlaylab.providers.kinds.libvirt import Libvirt
from overlaylab.specs import cluster


@pytest.fixture
def hypervisor(monkeypatch: pytest.MonkeyPatch) -> Hypervisor:
    found = Hypervisor()
    monkeypatch.setattr(virsh, "virsh", found.virsh)
    return found


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch, own_cache) -> Libvirt:
    monkeypatch.setattr(ready, "accelerator", lambda: "tcg")
    monkeypatch.setattr(node_image, "image_key", lambda system="debian": "0123456789abcdef")
    return Libvirt(cluster.load_cluster("pair"), print)


async def test_the_boxs_disk_is_a_volume_without_a_copy(provider, hypervisor) -> None:
    added = vagrant.box_folder(provider.box, "libvirt")
    added.mkdir(parents=True)
    (added / "box.img").write_text("disk")
    vagrant.pool_path().mkdir()
    await provider._offer(added)
    (volume,) = vagrant.pool_path().iterdir()
    assert volume.name == vagrant.box_volume(added)
    assert volume.stat().st_ino == (added / "box.img").stat().st_ino
    await provider._offer(added)
    assert hypervisor.log == ["pool-refresh overlaylab-test"], "again"


async def test_nodes_are_found_by_their_leases(provider, hypervisor) -> None:
    hypervisor.leases = dict(zip(NODES, ("192.168.76.41", "192.168.76.162"), strict=True))
    found = await provider.found()
    assert [(node.name, node.ssh_host, node.ssh_port, node.zone) for node in found] == [
        ("node1", "192.168.76.41", 22, "a"),
        ("node2", "192.168.76.162", 22, "a"),
    ]
    assert str(found[1].underlay_address) == "192.168.77.12/24"
    del hypervisor.leases[NODES[1]]
    with pytest.raises(virsh.VirshError, match="no address was leased"):
        await provider.found()


def test_a_box_is_brought_where_the_image_is_there(provider) -> None:
    libvirt.bring_box()
    assert not vagrant.home().exists(), "there is no image"
    image = node_image.folder()
    image.mkdir(parents=True)
    boxes.write_box({"metadata.json": b"{}", "box.img": b"disk"}, node_image.box_path())
    (image / "manifest.json").write_text('{"format": 2}')
    libvirt.bring_box()
    assert (
        vagrant.box_folder("overlaylab/debian-0123456789ab", "libvirt") / "box.img"
    ).read_bytes() == b"disk"
