"""``knb --output json`` of the k8s-bench-suite (https://github.com/InfraBuilder/k8s-bench-suite): one rate for each test.

knb takes it from the receiver's line of ``iperf3 --format m --omit 1``, in whole or tenths of Mbit/s. CPU and memory are means
of the whole node, waiting for disks among them, and are left out.
"""

from __future__ import annotations

import json

from overlaylab.core.model import JSON, Sample
from overlaylab.store.imported_base import (
    Measured,
    MeasuredTrial,
    member,
    moment,
    number,
    seconds,
    stamp,
    words,
)
from overlaylab.tools.parsers import ParseError

KEYS = {"metadata", "data"}
NAME = "knb's results"
WAYS, PROTOCOLS = ("pod2pod", "pod2svc"), ("tcp", "udp")


def read(report: JSON) -> Measured:
    """Raises ParseError."""
    meta = member(report, "metadata", dict, NAME)
    if meta.get("generator") != "knb":
        raise ParseError(f"its generator is {words(str(meta.get('generator')))}, not knb")
    data = member(report, "data", dict, NAME)
    trials, left_out = [], ["idle"] if "idle" in data else []
    for way in (way for way in WAYS if way in data):
        for protocol, test in member(data, way, dict, NAME).items():
            name = f"knb {way} {protocol}"
            if protocol not in PROTOCOLS or not isinstance(test, dict):
                raise ParseError(f"{NAME} have an unknown test {words(name)}")
            rate = number(test.get("bandwidth"), f"the bandwidth of {name}") * 1e6
            left_out += [f"{name} {end} {what}" for end in ("client", "server") for what in ("cpu", "ram")]
            trials.append(
                MeasuredTrial(
                    benchmark=name,
                    parameters={"protocol": protocol, "way": way, "counted": "receiver"},
                    direction="client-to-server",
                    duration=None,
                    raw=json.dumps(test, ensure_ascii=False),
                    samples=(Sample("goodput", rate),),
                )
            )
    if not trials:
        raise ParseError(f"{NAME} have no bandwidth: nothing but an idle node was measured")
    about = {key: words(data.get(key)) for key in ("k8s-version", "mtu")} | {"title": words(meta.get("name"))}
    return Measured(
        tool="knb",
        tool_version=words(meta.get("version")),
        started_at=stamp(moment(seconds(meta.get("date"), "knb's date"), "knb's date")),
        machine=words(" ".join(str(data[key]) for key in ("kernel", "cpu") if data.get(key))),
        trials=tuple(trials),
        about={key: said for key, said in about.items() if said},
        left_out=tuple(left_out),
    )
