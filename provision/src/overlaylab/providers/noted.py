"""Nodes that a provider made: found again by the inventory that it wrote beside its other notes."""

from __future__ import annotations

from pathlib import Path

from overlaylab.inventory import Inventory, load_inventory
from overlaylab.ssh import Nodes


class NotedNodes:
    """folder: where the provider keeps what it knows of the cluster."""

    folder: Path
    _nodes: Nodes | None = None

    @property
    def inventory(self) -> Inventory:
        return load_inventory(self.folder / "inventory.yml")

    @property
    def nodes(self) -> Nodes:
        if self._nodes is None:
            self._nodes = Nodes(self.inventory)
        return self._nodes
