"""What a trial cost its nodes and their machines: CPU time, packets, segments sent again, stolen time. Pure.

CPU time is counted twice, by two who know different things. A node's own kernel counts all its processes and its
softirq work, wherever the tools, the overlay's daemons and the kernel's own encapsulation spent it; what emulating or
exiting to the hypervisor costs, it does not see. The machine counts what the node's virtual machine, or container, used
of its CPUs, with all of that and the devices' threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.model import JSON, PlannedTrial, Sample
from overlaylab.run.plan import LOCAL
from overlaylab.tools import base as tools

# Ticks per second in /proc/stat, on every architecture that Linux shows them to user space on (proc(5)).
USER_HZ = 100
# Of /proc/stat's columns; `user` has guests' time in it, `steal` is somebody else's.
BUSY = ("user", "nice", "system", "irq", "softirq")
GIGABYTE = 1e9

# {node: {"before": its state, "after": its state}}, as `proof.states_around` gives them.
States = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Work:
    """What a trial's CPU time was spent on; None where the tool does not tell."""

    # Bytes, by the application.
    received: float | None
    # Requests that were answered.
    transactions: float | None


def work(trial: PlannedTrial, measured: Iterable[Sample]) -> Work:
    """From the goodput or latency of the whole trial, and how long it was asked to last.

    What a tool omits at the start is taken to have carried as much as the rest: its CPU time counts as well.
    """
    found = {one.metric: one.value for one in measured if one.t_start is None and one.quantile is None}
    seconds = tools.load(trial.tool).duration(trial.parameters)
    goodput, latency = found.get("goodput"), found.get("latency_one_way")
    transactions = trial.parameters.get("transactions")
    if transactions is None and latency:
        # qperf's tests of latency ask again as soon as they are answered.
        transactions = seconds / (2 * latency)
    return Work(None if goodput is None else goodput / 8 * seconds, transactions)


def samples(done: Work, states: States, machine: Mapping[str, float], accelerator: str) -> list[Sample]:
    """What is to be stored beside a trial's own samples.

    machine: {node: CPU seconds that its machine used during the trial}, empty where nobody counts.
    """
    found: list[Sample] = []
    nodes = ACCELERATORS[accelerator]
    own = [machine[node] for node in states if node in machine]
    spent = {
        "cpu": _in_nodes(states) if nodes.has_own_kernel else None,
        "machine_cpu": sum(own) if len(own) == len(states) else None,
    }
    for name, seconds in spent.items():
        if seconds is None:
            continue
        step = len(states) / USER_HZ if name == "cpu" else None
        for metric, amount in (
            (f"{name}_per_gigabyte", (done.received or 0.0) / GIGABYTE),
            (f"{name}_per_transaction", done.transactions or 0.0),
        ):
            if amount > 0:
                found.append(Sample(metric, seconds / amount, resolution=step and step / amount))
    if nodes.has_own_kernel and not nodes.is_emulated and (share := _stolen(states)) is not None:
        found.append(Sample("steal", share))
    return found


def traffic(
    measured: Iterable[Sample], states: States, sender: str, duration: float, trial: PlannedTrial
) -> list[Sample]:
    """packet_rate: what the sender's underlay interface sent per second of the trial; duration: seconds.

    retransmits, where the trial used TCP and its tool counts none: segments that the endpoints' kernels sent again.
    Nothing of a trial within one node: it sends nothing on the underlay, and its second endpoint is not counted.
    """
    if trial.placement == LOCAL:
        return []
    found = []
    packets = _gained(states[sender], "tx_packets")
    if packets is not None and duration > 0:
        found.append(Sample("packet_rate", packets / duration))
    again = [_gained(state, "tcp_retransmits") for state in states.values()]
    counted = any(one.metric == "retransmits" for one in measured)
    if is_tcp(trial) and not counted and None not in again:
        found.append(Sample("retransmits", float(sum(value for value in again if value is not None))))
    return found


def is_tcp(trial: PlannedTrial) -> bool:
    """Whether what it measures is a TCP connection, which the tools' parameters name in two ways."""
    said = str(trial.parameters.get("protocol") or trial.parameters.get("test") or trial.tool)
    return said.startswith(("tcp", "connect"))


def machine_used(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """{node: CPU seconds between two readings}; empty where one was not read, or began anew."""
    used = {node: after[node] - value for node, value in before.items() if node in after}
    return used if len(used) == len(before) and all(value >= 0 for value in used.values()) else {}


def _in_nodes(states: States) -> float | None:
    """CPU seconds of all nodes without those of reading their states; None where one was booted or does not tell."""
    ticks = [_ticks(state, BUSY) for state in states.values()]
    return None if None in ticks else sum(value for value in ticks if value is not None) / USER_HZ


def _stolen(states: States) -> float | None:
    """The largest share of a node's CPU time that its hypervisor gave to others."""
    shares = []
    for state in states.values():
        stolen = _ticks(state, ("steal",))
        total = _ticks(state, (*BUSY, "idle", "iowait", "steal"))
        if stolen is None or not total:
            return None
        shares.append(stolen / total)
    return max(shares)


def _ticks(state: Mapping[str, JSON], columns: Iterable[str]) -> int | None:
    try:
        gained = [state["after"]["cpu"][name] - state["before"]["cpu_end"][name] for name in columns]
    except (KeyError, TypeError):
        return None
    return sum(gained) if min(gained) >= 0 else None


def _gained(state: Mapping[str, JSON], name: str) -> float | None:
    before, after = (state[when].get(name) for when in ("before", "after"))
    return None if before is None or after is None or after < before else after - before
