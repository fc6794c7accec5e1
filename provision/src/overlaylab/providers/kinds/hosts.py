"""Plain SSH hosts that already exist, by an inventory."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from overlaylab.core.errors import UserError
from overlaylab.core.model import JSON
from overlaylab.machine import packages, ready
from overlaylab.nodes.ssh import Nodes
from overlaylab.providers import How, Say, registry
from overlaylab.providers.capabilities import Capabilities
from overlaylab.providers.host_state import PATIENCE, HostState
from overlaylab.specs.cluster import ClusterSpec
from overlaylab.specs.inventory import EXTERNAL, Inventory, load_inventory

CAPABILITIES = Capabilities(
    "hosts",
    accelerator="bare",
    makes_nodes=False,
    on_this_machine=False,
    needs=ready.Needs(groups=(packages.REACHING, packages.BUILDING, packages.KIT), alone=True),
    patience=PATIENCE,
)


class Hosts(HostState):
    """An inventory of SSH hosts. See `overlaylab.providers.Provider` for the verbs."""

    capabilities = CAPABILITIES
    image = None
    networks = ()

    def __init__(self, path: Path, say: Say, **how: Unpack[How]) -> None:
        self._inventory = load_inventory(path)
        self._check_maker()
        super().__init__(path, Nodes(self._inventory), **how)
        self.say = say
        self.cluster = self._inventory.name

    def _check_maker(self) -> None:
        known = (EXTERNAL, *registry.names())
        if self._inventory.provider not in known:
            raise UserError(
                f"{self._inventory.name}: overlaylab_provider",
                f"must be one of {', '.join(known)}",
                seen=self._inventory.provider,
                fix="Leave it out for hosts that are not the lab's own",
            )

    @property
    def name(self) -> str:
        return self.capabilities.name

    @property
    def inventory(self) -> Inventory:
        return self._inventory

    @property
    def spec(self) -> ClusterSpec:
        raise self._not_ours("described by a cluster file")

    @property
    def folder(self) -> Path:
        raise self._not_ours("made here")

    def _not_ours(self, what: str) -> UserError:
        return UserError(
            f"{self.path}", f"its hosts are there already and cannot be {what}",
            fix="Leave INVENTORY out for nodes of the lab's own",
        )  # fmt: skip

    async def status(self) -> dict[str, str]:
        """They are taken to be up: connecting to them tells."""
        return {node.name: "running" for node in self._inventory.nodes}

    async def up(self) -> None:
        """Nothing to do, as `status` has it."""

    async def attach(self) -> None:
        """Nothing to do, as `up` has it."""

    async def down(self) -> None:
        raise self._not_ours("switched off")

    async def remove_nodes(self) -> None:
        raise self._not_ours("removed")

    def describe(self) -> JSON:
        return {
            node.name: {
                "underlay_address": str(node.underlay_address),
                "zone": node.zone,
                **self.facts[node.name],
            }
            for node in self._inventory.nodes
        }

    async def cpu_seconds(self) -> dict[str, float]:
        """Their hypervisor, where they have one, is not ours to ask."""
        return {}


async def remove_all(path: Path, say: Say) -> dict[str, list[str]]:
    """`registry.remove_all`."""
    return await Hosts(path, say).remove_all()


PROVIDER = registry.Kind(CAPABILITIES, Hosts, remove_all=remove_all)
