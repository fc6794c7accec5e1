"""How nodes come to be in a wanted state: one file per provider (`kinds/`), one protocol for all.

Not here: a profile's numbers in tc's words, and what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypedDict

from overlaylab.core.model import JSON, Variant
from overlaylab.nodes.ssh import Nodes
from overlaylab.providers.capabilities import Capabilities
from overlaylab.shaping.cpu import CpuHolder
from overlaylab.specs.cluster import ClusterSpec
from overlaylab.specs.inventory import Inventory

# Takes one line for the user about what goes on.
Say = Callable[[str], None]


class How(TypedDict, total=False):
    """What nodes are made for. vcpus, quota: kept from providers that change them while nodes run."""

    underlay_mtu: int | None
    role_arguments: JSON | None
    vcpus: int | None
    quota: float | None
    # As `packer/systems` has it; absent: as nodes that are there were made, else the default.
    system: str | None


@dataclass(frozen=True)
class Entered:
    """What entering a variant cost."""

    # Seconds until SSH answered.
    revert: float
    # Seconds that Ansible ran; 0 where it did not.
    converge: float
    # The nodes were booted for it, rather than put back to a state that was saved, or left as they were.
    booted: bool = False


class Machines(Protocol):
    """The nodes of one cluster: made, listed and ended.

    Where the lab makes none (`Capabilities.makes_nodes`), what would make or end them raises UserError.
    """

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def name(self) -> str:
        """That of the capabilities."""
        ...

    @property
    def accelerator(self) -> str: ...

    @property
    def image(self) -> str | None:
        """The key of the image that the nodes were made from; None where they were there before."""
        ...

    @property
    def system(self) -> str | None:
        """What the nodes' system is: the image's, as `packer/systems` has it, else as the hosts say; None: not asked yet."""
        ...

    @property
    def kit(self) -> str | None:
        """Digest of the node kit that the nodes have; None: they were not asked, or their image is not there."""
        ...

    @property
    def cluster(self) -> str: ...

    @property
    def nodes(self) -> Nodes: ...

    @property
    def inventory(self) -> Inventory: ...

    @property
    def spec(self) -> ClusterSpec:
        """The cluster's file. UserError where an inventory takes its place."""
        ...

    @property
    def folder(self) -> Path:
        """What is known of nodes that were made here; `inventory.yml` is in it. UserError where none are made."""
        ...

    @property
    def networks(self) -> Sequence[str]:
        """Names of the networks that were made on this machine for the nodes."""
        ...

    def describe(self) -> JSON:
        """What a run records about the nodes: vCPUs, memory, addresses."""
        ...

    async def status(self) -> dict[str, str]:
        """State of each node in the words of what it runs on; ``running`` and ``absent`` are common to all."""
        ...

    async def up(self) -> None:
        """Nodes that run in the clean state, made if need be."""
        ...

    async def attach(self) -> None:
        """Bring up the networks of nodes that run, where something has ended them."""
        ...

    async def down(self) -> None:
        """Switch the nodes off; what was converged is kept where there are snapshots."""
        ...

    async def remove_nodes(self) -> None:
        """Remove the nodes and all that was made for them; none is no error."""
        ...

    async def cpu_seconds(self) -> dict[str, float]:
        """{node: CPU time that its machine has used so far, as this machine counts it}; empty where nobody does."""
        ...


class VariantState(Protocol):
    """Puts nodes into the state of any variant, again and again."""

    @property
    def cpu(self) -> CpuHolder:
        """Holds the nodes to a profile's vCPUs and quota; `enter` leaves none in force."""
        ...

    async def kept(self) -> set[str]:
        """Snapshots that all nodes have; none where there are no snapshots (`Capabilities`)."""
        ...

    def is_converged(self, variant: Variant, snapshots: Iterable[str]) -> bool:
        """Whether one of the snapshots is the variant's, under whatever MTU and arguments."""
        ...

    async def prepare(self, variants: Sequence[Variant], say: Say) -> None:
        """Bring the cluster up and converge what is not converged yet."""
        ...

    # fresh: the provider's own nodes are booted for it and converged anew. What a saved state repeats each time (memory
    # layout, hash seeds, the order in which daemons came up) is then drawn again.
    async def enter(self, variant: Variant, fresh: bool = False) -> Entered:
        """Put all nodes into the converged state of `variant`, profile none, with SSH connected."""
        ...

    async def renew(self) -> None:
        """Say that the runner is alive, where a dead man's timer waits for it (`Capabilities.patience`)."""
        ...

    async def leave(self) -> None:
        """Leave the nodes as somebody else would want to find them."""
        ...


class Provider(Machines, VariantState, Protocol):
    """A cluster of nodes, and what puts them into the state of any variant."""
