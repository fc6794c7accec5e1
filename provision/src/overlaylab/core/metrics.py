"""What is measured: metrics, their units, and which values they can have.

Their one home: unit tests hold the rows of the database's table `metric` and viewer/src/contract/terms.ts to it. A tool
declares what it alone measures in its own file; `tools.base.metrics` collects both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# Units whose ratio to the host means something; a count or a loss may be zero on the host.
COMPARED_UNITS = ("bit/s", "s", "1/s")
UNITS = (*COMPARED_UNITS, "ratio", "bytes", "1")
HIGHER, LOWER = "higher", "lower"

# What the names of all latencies begin with.
LATENCY = "latency"
GOODPUT = "goodput"

# s: no tool waits so long for a packet.
LONGEST = 3600.0
# bit/s: above what any link carries.
FASTEST = 1e14
# A rare event is not counted so often: such a count has fallen below zero in 32 bits.
MOST_RARE = 2.0**31 - 1


@dataclass(frozen=True)
class Metric:
    name: str
    unit: str
    # HIGHER or LOWER.
    better: str
    # In the database's table `metric`.
    description: str
    # Its place among the tables and its key in the database; None: as the store gives it, behind all others.
    order: int | None = None
    # Beyond it lies another unit, or damage.
    most: float = math.inf
    # Whether zero over a whole trial was measured; else it means that nothing was.
    zero_whole: bool = True
    # Likewise over a part of a trial.
    zero_part: bool = True


def is_latency(metric: str) -> bool:
    """By its name, as files of other labs may hold metrics that this one does not know."""
    return metric.startswith(LATENCY)


def is_speed(metric: str) -> bool:
    """Whether people call less or more of it faster and slower: less goodput and more latency are both slower."""
    return metric == GOODPUT or is_latency(metric)


def _rate(name: str, order: int, description: str, *, zero_part: bool) -> Metric:
    return Metric(name, "bit/s", HIGHER, description, order, FASTEST, zero_whole=False, zero_part=zero_part)


def _latency(kind: str, order: int, description: str) -> Metric:
    name = f"{LATENCY}_{kind}"
    return Metric(name, "s", LOWER, description, order, LONGEST, zero_whole=False, zero_part=False)


def _cost(name: str, unit: str, order: int, description: str) -> Metric:
    return Metric(name, unit, LOWER, description, order)


_MEASURED = (
    # Nothing may arrive for a second.
    _rate(GOODPUT, 10, "application bytes received per second, as bits", zero_part=True),
    Metric(
        "transaction_rate", "1/s", HIGHER, "requests per second that were answered, one at a time", 15,
        zero_whole=False, zero_part=False,
    ),
    _latency("one_way", 20, "half a request and its answer, as qperf tcp_lat and udp_lat count it"),
    _latency("rtt", 30, "a request and its answer, both ways"),
    _latency(
        "transaction", 35,
        "a TCP connection set up, a request, its answer, and the end, as netperf TCP_CRR counts it",
    ),
    Metric("jitter", "s", LOWER, "RFC 3550 interarrival jitter, as iperf prints it", 40, LONGEST),
    Metric("loss", "ratio", LOWER, "datagrams that did not arrive, over those sent", 50, 1.0),
    Metric("reordered", "1", LOWER, "datagrams that arrived after a later one", 55, MOST_RARE),
    Metric("duplicates", "1", LOWER, "datagrams that arrived again", 57, MOST_RARE),
    _rate(
        "offered", 60,
        "application bytes really sent per second, as bits: what the sender's CPU managed",
        zero_part=False,
    ),
    Metric("datagrams", "1", HIGHER, "datagrams sent", 70, zero_whole=False, zero_part=False),
    Metric("retransmits", "1", LOWER, "TCP segments sent again, as the sender's kernel counts them", 80, MOST_RARE),
    Metric(
        "cpu_client", "ratio", LOWER,
        "share of the CPUs of the client's node that was busy, as the tool saw it", 90, 1.0,
    ),
    Metric(
        "cpu_server", "ratio", LOWER,
        "share of the CPUs of the server's node that was busy, as the tool saw it", 91, 1.0,
    ),
)  # fmt: skip

_COSTS = (
    _cost(
        "cpu_per_gigabyte", "s", 100,
        "CPU time of both nodes, all processes and softirq, as their kernels count it, per 10^9 application bytes received",
    ),
    _cost("cpu_per_transaction", "s", 101, "the same per request and its answer"),
    _cost(
        "machine_cpu_per_gigabyte", "s", 102,
        "CPU time that the machine spent on both nodes, as its hypervisor or control groups count it, per 10^9 application bytes received",
    ),
    _cost("machine_cpu_per_transaction", "s", 103, "the same per request and its answer"),
    _cost("packet_rate", "1/s", 110, "packets that the sender's underlay interface sent per second"),
    _cost(
        "steal", "ratio", 120,
        "share of a node's CPU time that its hypervisor gave to others, the larger of both; NULL where it is not measured",
    ),
)  # fmt: skip

# What the lab counts beside a trial's own values.
COSTS = frozenset(metric.name for metric in _COSTS)
METRICS = {metric.name: metric for metric in (*_MEASURED, *_COSTS)}
