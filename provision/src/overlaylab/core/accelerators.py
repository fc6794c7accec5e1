"""On what the nodes' CPUs run: the accelerators that every result carries, in words."""

from __future__ import annotations

ACCELERATORS = {
    "kvm": "the machine's own CPU, virtualised (KVM)",
    "tcg": "emulated CPU (TCG), no KVM",
    "shared-kernel": "the machine's own CPU and kernel (system containers)",
    "bare": "the hosts' own CPUs (nothing emulated by this lab)",
}
