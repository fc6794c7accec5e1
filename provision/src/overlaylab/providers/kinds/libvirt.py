"""Nodes as libvirt VMs made by Vagrant, kept clean by snapshots."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import Unpack

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.progress import step
from overlaylab.image import boxes, node_image, systems, vagrant
from overlaylab.image.vagrant import pool, pool_path
from overlaylab.machine import bundle_source, ready, services, ssh_keys
from overlaylab.providers import How, Say, registry, virsh
from overlaylab.providers.capabilities import Capabilities
from overlaylab.providers.libvirt_cpu import LibvirtCpu
from overlaylab.providers.made_nodes import system_of
from overlaylab.providers.snapshots import SnapshotVMs
from overlaylab.specs.cluster import ClusterSpec
from overlaylab.specs.inventory import InventoryNode, load_inventory

CAPABILITIES = Capabilities("libvirt", snapshots=True, needs=ready.MACHINES, fallback=True)

# As the Vagrantfile has it.
MANAGEMENT_ADDRESSES = IPv4Network("192.168.76.0/24")
# The network of eth0, which all clusters share.
MANAGEMENT = "overlaylab-management"


def box_name(system: str) -> str:
    """Under which Vagrant gets the image."""
    return f"overlaylab/{system}-{node_image.image_key(system)[:12]}"


def bring_box() -> None:
    """Have the image where Vagrant looks for it, if it is there or in a bundle. Takes no Vagrant. Raises UserError."""
    system = systems.DEFAULT
    if bundle_source.present():
        node_image.build(system)
    if node_image.manifest(system):
        boxes.unpack(node_image.box_path(system), vagrant.box_folder(box_name(system), CAPABILITIES.name))


async def remove_domains(domains: Sequence[str], networks: Sequence[str]) -> None:
    """Delete the domains that there are, with disks and snapshots, and the networks that nobody needs then."""
    for domain in domains:
        if domain in await virsh.domains():
            await virsh.virsh("destroy", domain, check=False)
            await virsh.virsh("undefine", domain, "--remove-all-storage", "--snapshots-metadata")
    known = (await virsh.virsh("net-list", "--all", "--name")).split()
    shared = any(name.startswith("overlaylab-") for name in await virsh.domains())
    for network in networks:
        if network == MANAGEMENT and shared:  # nodes of another cluster would lose their way in
            continue
        if network in known:
            await virsh.virsh("net-destroy", network, check=False)
            await virsh.virsh("net-undefine", network, check=False)


async def remove_forgotten(cluster: str) -> None:
    """Remove the nodes of a cluster whose file is gone, by what was noted when they were made."""
    inventory = paths.cache() / "clusters" / cluster / "inventory.yml"
    names = [node.name for node in load_inventory(inventory).nodes] if inventory.exists() else []
    domains = [f"overlaylab-{cluster}-{name}" for name in names]
    await remove_domains(domains, [MANAGEMENT, f"overlaylab-{cluster}"])
    shutil.rmtree(inventory.parent / "vagrant", ignore_errors=True)
    for name in ("inventory.yml", "state.json"):
        (inventory.parent / name).unlink(missing_ok=True)


async def remove_pool() -> None:
    """Remove the storage pool of this cache folder."""
    if services.is_installed() and pool_path().exists():
        services.ensure_running()
        await virsh.remove_pool(pool())
        shutil.rmtree(pool_path(), ignore_errors=True)


class Libvirt(SnapshotVMs):
    """A cluster of libvirt VMs. See `overlaylab.providers.Provider` for the verbs."""

    capabilities = CAPABILITIES
    OFF = frozenset({"shut off"})

    def __init__(self, spec: ClusterSpec, say: Say, **how: Unpack[How]) -> None:
        self.box = box_name(system_of(self.name, spec.name, how.get("system")))
        super().__init__(spec, say, ready.accelerator(), self.box, **how)
        self.networks = [MANAGEMENT, f"overlaylab-{spec.name}"]

    @property
    def cpu(self) -> LibvirtCpu:
        return LibvirtCpu(
            self.nodes,
            {node.name: machine for node, machine in zip(self.spec.nodes, self.machines, strict=True)},
        )

    async def cpu_seconds(self) -> dict[str, float]:
        used = await virsh.cpu_seconds(self.machines)
        return {
            node.name: used[machine]
            for node, machine in zip(self.spec.nodes, self.machines, strict=True)
            if machine in used
        }

    async def states(self) -> dict[str, str]:
        return await virsh.domains()

    async def snapshots_of(self, machine: str) -> set[str]:
        return await virsh.snapshots(machine)

    async def take(self, snapshot: str) -> None:
        await virsh.take_snapshot(self.machines, snapshot)

    async def restore(self, snapshot: str) -> None:
        await virsh.start_networks(self.networks)
        await virsh.revert(self.machines, snapshot)

    async def forget(self, snapshots: Sequence[str]) -> None:
        for name in snapshots:
            await virsh.delete_snapshot(self.machines, name)

    async def refuse_foreign(self, machines: Sequence[str]) -> None:
        """UserError where nodes of that name lie in another storage pool: they are somebody else's lab."""
        for domain in machines:
            disks = [
                line.split()[-1]
                for line in (await virsh.virsh("domblklist", domain)).splitlines()
                if line.strip()
            ]
            if disks and not any(disk.startswith(f"{pool_path()}/") for disk in disks):
                raise UserError(
                    f"domain {domain}",
                    f"must be of this cache folder's lab, {paths.cache()}",
                    seen=disks[0],
                    fix="Another user's lab runs on this machine: use that cache folder (OVERLAYLAB_CACHE), "
                    "or have it removed there with ./task lab:destroy",
                )

    async def before_vagrant(self) -> None:
        pool_path().mkdir(parents=True, exist_ok=True)
        await virsh.start_pool(pool(), str(pool_path()))
        if not any(name.startswith("overlaylab-") for name in await virsh.domains()):
            # No node's disk is based on an older box any more.
            for volume in self.vagrant.remove_other_boxes():
                await virsh.delete_volume(pool(), volume)
        with step("box-add", f"adding the box of image {self.image[:12]}", 20):
            await self.vagrant.add_box(node_image.box_path(self.system_name))
        await self._offer(vagrant.box_folder(self.box, self.name))
        await virsh.make_network(MANAGEMENT, MANAGEMENT_ADDRESSES, dhcp=True)
        await virsh.make_network(self.networks[1], self.spec.underlay, mtu=9001)

    async def _offer(self, added: Path) -> None:
        """Have the box's disk in the storage pool without a copy of it, which Vagrant would make."""
        volume = pool_path() / vagrant.box_volume(added)
        if not volume.exists():
            # What libvirt has made its own may not be linked again (proc(5), protected_hardlinks): then it is copied.
            with contextlib.suppress(OSError):
                volume.hardlink_to(added / boxes.DISK)
            await virsh.virsh("pool-refresh", pool())

    async def found(self) -> tuple[InventoryNode, ...]:
        addresses = await asyncio.gather(*map(virsh.address, self.machines))
        return tuple(
            InventoryNode(
                name=node.name,
                ssh_host=address,
                ssh_port=22,
                ssh_user="lab",
                ssh_key=ssh_keys.ensure(),
                host_key=None,
                underlay_interface="eth1",
                underlay_address=node.underlay_address,
                zone=node.zone,
            )
            for node, address in zip(self.spec.nodes, addresses, strict=True)
        )

    async def switch_off(self, machines: Sequence[str]) -> None:
        for domain in machines:
            await virsh.virsh("destroy", domain)

    async def remove_machines(self) -> None:
        known = await virsh.domains()
        for domain in self.machines:
            if domain in known:
                for name in await virsh.snapshots(domain):
                    await virsh.virsh("snapshot-delete", domain, name, "--metadata", check=False)
        await self.vagrant("destroy", "-f")
        # What Vagrant no longer knows of, after a folder was deleted by hand, say.
        await remove_domains(self.machines, self.networks)

    async def attach(self) -> None:
        await virsh.start_networks(self.networks)


PROVIDER = registry.Kind(CAPABILITIES, Libvirt, remove_forgotten, remove_pool, bring_box)
