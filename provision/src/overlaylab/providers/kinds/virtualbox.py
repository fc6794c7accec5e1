"""Nodes as VirtualBox VMs made by Vagrant, kept clean by snapshots.

Built from VirtualBox's documentation and sources and tested with stand-ins: it has never run on VirtualBox itself.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from typing import Unpack

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.progress import step
from overlaylab.image import virtualbox_box
from overlaylab.providers import How, Say, registry, vboxmanage
from overlaylab.providers.capabilities import Capabilities
from overlaylab.providers.made_nodes import system_of
from overlaylab.providers.snapshots import SnapshotVMs
from overlaylab.specs.cluster import ClusterSpec

CAPABILITIES = Capabilities(
    "virtualbox",
    # Since 6.1 VirtualBox always uses the CPU's own virtualisation, which is what `kvm` says of a result
    # (so for SSH hosts, providers/host_state.py); the provider in the result tells the two apart.
    accelerator="kvm",
    snapshots=True,
    product=("VirtualBox", "VBoxManage"),
)


def _made_here(cluster: str) -> dict[str, str]:
    """UUIDs of the machines that Vagrant made for this cache folder, by node."""
    found = (registry.folder("virtualbox", cluster) / "vagrant" / "machines").glob("*/virtualbox/id")
    return {path.parts[-3]: path.read_text().strip() for path in found}


async def remove_forgotten(cluster: str) -> None:
    """Remove the machines of a cluster whose file is gone, by what Vagrant noted when it made them."""
    left = set((await vboxmanage.registered()).values())
    for uuid in _made_here(cluster).values():
        if uuid in left:
            await vboxmanage.remove(uuid)
    shutil.rmtree(registry.folder("virtualbox", cluster), ignore_errors=True)


class VirtualBox(SnapshotVMs):
    """A cluster of VirtualBox VMs. See `overlaylab.providers.Provider` for the verbs."""

    capabilities = CAPABILITIES
    OFF = vboxmanage.OFF
    # None on the host: an internal network exists while a machine on it runs, and SSH comes by forwarded ports.
    networks: tuple[str, ...] = ()

    def __init__(self, spec: ClusterSpec, say: Say, **how: Unpack[How]) -> None:
        made_of = ["virtualbox", virtualbox_box.recipe()]
        box = virtualbox_box.box_name(system_of(self.name, spec.name, how.get("system")))
        super().__init__(spec, say, "kvm", box, made_of, **how)

    async def states(self) -> dict[str, str]:
        return await vboxmanage.states()

    async def snapshots_of(self, machine: str) -> set[str]:
        return {snapshot.name for snapshot in await vboxmanage.snapshots(machine)}

    async def take(self, snapshot: str) -> None:
        await vboxmanage.take_snapshot(self.machines, snapshot)

    async def restore(self, snapshot: str) -> None:
        await vboxmanage.restore(self.machines, snapshot)

    async def forget(self, snapshots: Sequence[str]) -> None:
        # Merging disks under a running machine is slow and at times refused (manual, "Snapshots").
        self.nodes.drop()
        await vboxmanage.switch_off(self.machines)
        with step("virtualbox-prune", "deleting snapshots of older roles", 20):
            for machine in self.machines:
                await vboxmanage.delete_snapshots(machine, snapshots)
        await self.revert(self.clean_snapshot())

    async def up(self) -> None:
        await vboxmanage.refuse_unusable()
        await super().up()

    async def refuse_foreign(self, machines: Sequence[str]) -> None:
        """UserError where Vagrant did not make them for this cache folder: they are another lab's."""
        known = await vboxmanage.registered()
        ours = set(_made_here(self.spec.name).values())
        for machine in machines:
            if known[machine] not in ours:
                raise UserError(
                    f"VirtualBox machine {machine}",
                    f"must be of this cache folder's lab, {paths.cache()}",
                    seen=f"another with UUID {known[machine]}",
                    fix="Use the cache folder that it was made in (OVERLAYLAB_CACHE); if that is gone, remove it with "
                    f"`VBoxManage controlvm {machine} poweroff; VBoxManage unregistervm {machine} --delete`",
                )

    async def before_vagrant(self) -> None:
        box = await asyncio.to_thread(virtualbox_box.build, self.system_name)
        # Imported machines have disks of their own: no node needs an older box.
        self.vagrant.remove_other_boxes()
        with step("box-add-virtualbox", f"adding the box of image {self.image[:12]}", 20):
            await self.vagrant.add_box(box)

    async def switch_off(self, machines: Sequence[str]) -> None:
        await vboxmanage.switch_off(machines)

    async def remove_machines(self) -> None:
        made = _made_here(self.spec.name).values()
        await self.vagrant("destroy", "-f")
        # What Vagrant lost track of: it forgets a machine that VirtualBox did not show to it.
        left = set((await vboxmanage.registered()).values())
        for uuid in made:
            if uuid in left:
                await vboxmanage.remove(uuid)


PROVIDER = registry.Kind(CAPABILITIES, VirtualBox, remove_forgotten)
