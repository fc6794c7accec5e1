"""Files that are known, and not read here: their names, so that a refusal says what was given."""

from __future__ import annotations

import json
import re

_PKB = {"metric", "value", "unit", "timestamp", "test"}
"""Keys of each line (perfkitbenchmarker/publisher.py, NewlineDelimitedJSONPublisher)."""
_K8S_NETPERF = {"driver", "profile", "throughput", "tputMetric"}
"""Keys of each document (pkg/archive/archive.go, Doc)."""
_KNB = {"node2node", "pod2pod", "pod2svc"}
"""Keys below ``data`` (knb -o json)."""
PKB = "PerfKit Benchmarker's samples, whose own iperf3 reports can be imported"
K8S_NETPERF = "k8s-netperf's summary, which holds means of trials, with 0 for what is missing"
KNB = "knb's summary, which holds one mean for each direction"
_TEXTS = (
    (re.compile(r"\[ *\d+\] +[\d.]+- *[\d.]+ sec +", re.MULTILINE), "the text of iperf, which rounds"),
    (
        re.compile(r"^iperf 3\.|\[ *ID\] Interval", re.MULTILINE),
        "the text of iperf3, which rounds: iperf3 --json",
    ),
    (re.compile(r"^MIGRATED |^\w+=[\d.]+\nTHROUGHPUT_UNITS=", re.MULTILINE), "the text of netperf"),
    (re.compile(r"^sockperf: ", re.MULTILINE), "the text of sockperf"),
    (re.compile(r"^\d+ packets transmitted, ", re.MULTILINE), "the text of ping"),
    (re.compile(r"^(tcp|udp)_(bw|lat):$", re.MULTILINE), "the text of qperf"),
)


def of_text(text: str) -> str | None:
    """What a text is that is not one JSON value; None where it is unknown."""
    first = text.lstrip().partition("\n")[0]
    try:
        if other := of_json(json.loads(first)):
            return other
    except (ValueError, RecursionError):
        pass
    return next((name for pattern, name in _TEXTS if pattern.search(text)), None)


def of_json(value: object) -> str | None:
    """What a JSON value is; None where it is unknown, or read here."""
    if isinstance(value, list) and value and isinstance(value[0], dict) and value[0].keys() >= _K8S_NETPERF:
        return K8S_NETPERF
    if not isinstance(value, dict):
        return None
    if value.keys() >= _PKB:
        return PKB
    data = value.get("data")
    return KNB if isinstance(data, dict) and data.keys() & _KNB else None
