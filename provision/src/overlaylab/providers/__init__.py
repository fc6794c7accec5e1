"""How nodes come to be in a wanted state: one file per provider, one protocol for all.

Invariant: nothing above this package knows which provider it talks to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from overlaylab.cpu import CpuHolder
from overlaylab.inventory import Inventory
from overlaylab.model import JSON, Variant
from overlaylab.ssh import Nodes

Say = Callable[[str], None]
"""Takes one line for the user about what goes on."""


@dataclass(frozen=True)
class Entered:
    """What entering a variant cost, in seconds: `revert` until SSH answered, `converge` where Ansible ran."""

    revert: float
    converge: float


class Provider(Protocol):
    """A cluster of nodes that can be put into the state of any variant, again and again."""

    name: str
    accelerator: str
    image: str | None
    cluster: str
    nodes: Nodes
    snapshots: bool

    @property
    def inventory(self) -> Inventory: ...

    @property
    def cpu(self) -> CpuHolder:
        """Holds the nodes to a profile's vCPUs and quota; `enter` leaves none in force."""
        ...

    def describe(self) -> JSON:
        """What a run records about the nodes: vCPUs, memory, addresses."""
        ...

    async def prepare(self, variants: Sequence[Variant], say: Say) -> None:
        """Bring the cluster up and converge what is not converged yet."""
        ...

    async def enter(self, variant: Variant) -> Entered:
        """Put all nodes into the converged state of `variant`, profile none, with SSH connected."""
        ...

    async def renew(self) -> None:
        """Say that the runner is alive, where a dead man's timer waits for it."""
        ...

    async def leave(self) -> None:
        """Leave the nodes as somebody else would want to find them."""
        ...
