"""Nodes that a provider made: found again by the inventory that it wrote beside its other notes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Unpack

from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.image import node_image, systems
from overlaylab.image.vagrant import read_json
from overlaylab.nodes import ansible
from overlaylab.nodes.ssh import Nodes
from overlaylab.providers import How, Say, registry, requirements
from overlaylab.providers.capabilities import Capabilities
from overlaylab.shaping import scripts
from overlaylab.shaping.cpu import CpuHolder, InNode
from overlaylab.specs import overlays
from overlaylab.specs.cluster import ClusterSpec
from overlaylab.specs.inventory import Inventory, load_inventory


def system_of(provider: str, cluster: str, asked: str | None) -> str:
    """The system that nodes are to have: as asked, else as they were made, else the default. Raises UserError."""
    noted = read_json(registry.folder(provider, cluster) / "state.json").get("system")
    if noted and not asked and noted not in systems.names():
        raise UserError(
            f"cluster {cluster}",
            "must have nodes of a system that has a definition",
            seen=f"{noted}, which has none any more",
            fix=f"Name the folder that holds it in {systems.MORE}, or remove the nodes: ./task lab:destroy CLUSTER={cluster}",
        )
    return requirements.check_system(provider, asked or noted or systems.DEFAULT).name


class MadeNodes:
    """The nodes of a cluster's file."""

    capabilities: Capabilities

    def __init__(self, spec: ClusterSpec, say: Say, **how: Unpack[How]) -> None:
        self.spec, self.say = spec, say
        self.cluster = spec.name
        # As `packer/systems` has it.
        self.system_name = system_of(self.name, spec.name, how.get("system"))
        self.underlay_mtu = how.get("underlay_mtu")
        self.role_arguments = how.get("role_arguments") or {}
        self._image = node_image.image_key(self.system_name)
        # Where the provider keeps what it knows of the cluster.
        self.folder = registry.folder(self.name, spec.name)
        self._nodes: Nodes | None = None
        # When the inventory was written that `_nodes` was made of, in ns.
        self._as_of: int | None = None

    @property
    def image(self) -> str:
        """The image's key. One that was not built of the locked packages is another image."""
        return "-".join(filter(None, (self._image, node_image.drift(self.system_name))))

    @property
    def system(self) -> str:
        drift = node_image.drift(self.system_name)
        return f"{self.system_name}, drifted {drift}" if drift else self.system_name

    @property
    def kit(self) -> str | None:
        return (node_image.manifest(self.system_name) or {}).get("kit")

    @property
    def name(self) -> str:
        return self.capabilities.name

    @property
    def inventory(self) -> Inventory:
        return load_inventory(self.folder / "inventory.yml")

    @property
    def nodes(self) -> Nodes:
        """Made anew where another command has made the nodes anew: each has a host key of its own."""
        written = self._written_at()
        if self._nodes is not None and None not in (written, self._as_of) and written != self._as_of:
            self._nodes.drop()
            self._nodes = None
        if self._nodes is None:
            self._nodes, self._as_of = Nodes(self.inventory), written
        return self._nodes

    def _written_at(self) -> int | None:
        try:
            return (self.folder / "inventory.yml").stat().st_mtime_ns
        except FileNotFoundError:
            return None

    @property
    def cpu(self) -> CpuHolder:
        return InNode(self.nodes)

    async def cpu_seconds(self) -> dict[str, float]:
        return {}

    async def attach(self) -> None:
        """Nothing to do where networks come up by themselves or with the nodes."""

    async def kept(self) -> set[str]:
        return set()

    def is_converged(self, variant: Variant, snapshots: Iterable[str]) -> bool:
        return False

    async def converge(self, variant: Variant) -> None:
        """Let Ansible bring clean nodes, or a relative's, to the variant; the MTU first, which daemons look at."""
        if self.underlay_mtu:
            for node in self.nodes.values():
                await node.sh(scripts.mtu_script(node.spec.underlay_interface, self.underlay_mtu))
        await asyncio.to_thread(
            ansible.run_playbook,
            self.folder / "inventory.yml",
            variant.overlay,
            "converge",
            overlays.arguments_of(variant, self.role_arguments),
        )
