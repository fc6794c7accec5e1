"""On what the nodes' CPUs run: the accelerators that every result carries.

Their one home: unit tests hold the database's CHECK, the pages that list them and viewer/src/contract/terms.ts to it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Accelerator:
    # What the CPUs are, under a table.
    words: str
    # What the nodes are, in the viewer.
    nodes: str
    # What a reader of its results has to know; None where nothing.
    caveat: str | None = None
    # Slower than the machine's own CPU, and never told of stolen time.
    is_emulated: bool = False
    # Else /proc/stat and the qdiscs of a node are those of its machine's kernel.
    has_own_kernel: bool = True
    # Seconds around the trials of one cell where none were measured yet: revert, profile, servers, proof.
    cell_overhead: float = 13.0


ACCELERATORS = {
    "kvm": Accelerator(
        words="the machine's own CPU, virtualised (KVM)",
        nodes="virtual machines with hardware support",
        cell_overhead=8.0,
    ),
    "tcg": Accelerator(
        words="emulated CPU (TCG), no KVM",
        nodes="virtual machines on emulated CPUs: ratios near the CPU's limit tell about the emulation",
        caveat="Emulated CPU: where a ratio lies below its header theory, the emulated CPU decided it, "
        "and a CPU-bound ratio from here is not a cloud's. It falls asleep between packets that are 10 ms apart or more: "
        "such pings take up to 1 ms longer.",
        is_emulated=True,
        cell_overhead=8.0,
    ),
    "shared-kernel": Accelerator(
        words="the machine's own CPU and kernel (system containers)",
        nodes="system containers on the machine's own kernel",
        caveat="CPU-bound ratios are this machine's, not a cloud's.",
        has_own_kernel=False,
        cell_overhead=20.0,
    ),
    "bare": Accelerator(
        words="the hosts' own CPUs (nothing emulated by this lab)",
        nodes="the machines themselves",
    ),
}
