"""What a provider can and what it needs: asked in place of its name."""

from __future__ import annotations

from dataclasses import dataclass, field

from overlaylab.machine.ready import Needs


@dataclass(frozen=True)
class Capabilities:
    """One provider, as far as others have to know it."""

    # What PROVIDER=, results and notes on the disk call it.
    name: str
    # How its nodes' CPUs run (core.accelerators), or are taken to until the nodes tell; None: under KVM where this
    # machine has it, else emulated.
    accelerator: str | None = None
    # What was converged is kept, and put back in seconds.
    snapshots: bool = False
    # Nodes run on this machine's kernel: they have what it has, and its modules are loaded for them.
    shares_kernel: bool = False
    # vCPUs and quota are given to nodes when they are made, and are theirs for life; else changed while they run.
    limits_at_creation: bool = False
    # The lab makes the nodes and ends them, where PROVIDER= says so; else an inventory names them.
    makes_nodes: bool = True
    # Nodes run on this machine.
    on_this_machine: bool = True
    # What a command makes ready on this machine first.
    needs: Needs = field(default_factory=Needs)
    # (its name, a program of it) of what users install themselves; None: the lab installs all that it takes.
    product: tuple[str, str] | None = None
    # Taken where nobody says which: exactly one is.
    fallback: bool = False
    # Taken in the fallback's place where that would emulate CPUs and this machine's kernel has all that is needed.
    before_emulation: bool = False
    # Seconds without a word from the runner after which nodes clean themselves up; None: they never do.
    patience: float | None = None
