"""Documents of k8s-netperf (https://github.com/cloud-bulldozer/k8s-netperf, pkg/archive/archive.go: Doc).

Each is a test, and its values are means over ``samples`` trials, with 0 for what was not measured: a 0 is no value. Left out:

- UDP_STREAM, of which iperf3's rate is what was sent, and ib_write_bw, which uses no socket;
- requests in bursts or in parallel, as ours are one at a time;
- the latencies of a stream (how long sending took) and of uperf (of means of intervals).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from overlaylab.core.model import JSON, Sample
from overlaylab.store.imported_base import Measured, MeasuredTrial, moment, number, seconds, stamp, words
from overlaylab.tools.parsers import ParseError, count

KEYS = {"driver", "profile", "throughput", "tputMetric"}
NAME = "k8s-netperf's document"
# What drivers call the unit of a stream, in bit/s.
RATES = {"Mb/s": 1e6, "Mbps": 1e6, "10^6bits/s": 1e6}
TRANSACTIONS = ("OP/s", "Trans/s")
COUNTED = {"iperf3": "receiver", "netperf": "sender", "uperf": "sender"}
LATENCIES = {"TCP_RR": "latency_rtt", "UDP_RR": "latency_rtt", "TCP_CRR": "latency_transaction"}
# What is not between two pods on two nodes has a name of its own.
WHERE = {
    "hostNetwork": "host network", "service": "service", "local": "same node", "acrossAZ": "across zones",
    "virt": "VMs", "externalServer": "external server",
}  # fmt: skip


def read(documents: Sequence[JSON]) -> Measured:
    """Raises ParseError."""
    trials, left_out, times = [], [], []
    for one in documents:
        name = _name(one)
        times.append(seconds(one.get("timestamp"), "k8s-netperf's timestamp"))
        samples = tuple(_samples(one, name))
        if not samples:
            left_out.append(name)
            continue
        trials.append(
            MeasuredTrial(
                benchmark=name,
                parameters=_parameters(one),
                direction="client-to-server",
                duration=number(one["duration"], "k8s-netperf's duration") if one.get("duration") else None,
                raw=json.dumps(one, ensure_ascii=False),
                samples=samples,
            )
        )
    if not trials:
        raise ParseError("k8s-netperf's documents have no rate of TCP, and no single requests")
    first = documents[0]
    return Measured(
        tool="k8s-netperf",
        tool_version=words(first.get("toolVersion")),
        started_at=stamp(moment(min(times), "k8s-netperf's timestamp")),
        machine=None,
        trials=tuple(trials),
        about={"uuid": words(first["uuid"])} if words(first.get("uuid")) else {},
        left_out=tuple(left_out),
    )


def _name(one: JSON) -> str:
    """Of the benchmark: driver, profile, size, and what else makes it another test."""
    parts = [
        one["driver"],
        one["profile"],
        f"{count('k8s-netperf', 'messageSize', one.get('messageSize'))} B",
    ]
    for key, label in (("parallelism", "streams"), ("burst", "in a burst")):
        if (several := count("k8s-netperf", key, one.get(key, 0))) > 1:
            parts.append(f"{several} {label}")
    return (
        words(" ".join([*map(str, parts), *(said for key, said in WHERE.items() if one.get(key))]))
        or "unnamed"
    )


def _parameters(one: JSON) -> JSON:
    kept = ("messageSize", "parallelism", "samples", *WHERE)
    found = {key: one[key] for key in kept if isinstance(one.get(key), int)}
    protocol = "udp" if str(one["profile"]).startswith("UDP") else "tcp"
    return {**found, "protocol": protocol, "counted": COUNTED[one["driver"]]}


def _samples(one: JSON, name: str) -> list[Sample]:
    """Empty where it has no metric here."""
    driver, profile, unit = (str(one[key]) for key in ("driver", "profile", "tputMetric"))
    value = number(one["throughput"], f"the throughput of {name}")
    if driver not in COUNTED or value == 0 or (one.get("samples") == 0):
        return []
    if profile == "TCP_STREAM":
        if unit not in RATES:
            raise ParseError(f"{NAME} {name} has a rate in {words(unit)}, not in {' or '.join(RATES)}")
        found = [Sample("goodput", value * RATES[unit])]
        again = number(one.get("tcpRetransmits", 0), f"the retransmits of {name}")
        return [*found, Sample("retransmits", again)] if again else found
    if profile not in LATENCIES or one.get("burst", 0) > 0 or one.get("parallelism", 1) > 1:
        return []
    if unit not in TRANSACTIONS:
        raise ParseError(f"{NAME} {name} has a rate in {words(unit)}, not in {' or '.join(TRANSACTIONS)}")
    found = [Sample("transaction_rate", value)]
    slow = number(one.get("latency", 0), f"the latency of {name}")
    if driver == "netperf" and slow:
        if one.get("ltcyMetric") != "usec":
            raise ParseError(
                f"{NAME} {name} has a latency in {words(str(one.get('ltcyMetric')))}, not in usec"
            )
        found.append(Sample(LATENCIES[profile], slow / 1e6, quantile=0.99))
    return found
