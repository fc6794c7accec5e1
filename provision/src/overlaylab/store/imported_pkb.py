"""PerfKit Benchmarker's samples, one JSON object a line (perfkitbenchmarker/publisher.py, NewlineDelimitedJSONPublisher).

Read are those of its benchmarks iperf, netperf and ping that have a metric here; all others are left out: summaries of others,
and UDP streams, of which it has what was sent. Its iperf and netperf count what the sender handed to its kernel.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from overlaylab.core.model import JSON, Sample
from overlaylab.store.imported_base import Measured, MeasuredTrial, moment, number, stamp, words
from overlaylab.tools.parsers import ParseError

KEYS = {"metric", "value", "unit", "timestamp", "test"}
NAME = "PerfKit Benchmarker's sample"
# Of metadata that were made one text (publisher.GetLabelsFromDict).
_LABEL = re.compile(r"\|([^|:]+):([^|]*)\|")
# What makes a sample one of another benchmark.
APART = ("ip_type", "sending_thread_count")
_STREAM = ("goodput", "Mbits/sec", 1e6)
# (test, metric, what it is here: metric, unit, factor).
_METRICS = (
    ("iperf", re.compile(r"()Throughput"), _STREAM),
    ("netperf", re.compile(r"(TCP_STREAM)_Throughput(_total)?"), _STREAM),
    ("netperf", re.compile(r"(TCP_C?RR|UDP_RR)_Transaction_Rate"), ("transaction_rate", "transactions_per_second", 1)),
    ("netperf", re.compile(r"(TCP_RR|UDP_RR)_Latency_p(?P<percent>\d{1,3}(\.\d{1,6})?)"), ("latency_rtt", "us", 1e-6)),
    ("netperf", re.compile(r"(TCP_CRR)_Latency_p(?P<percent>\d{1,3}(\.\d{1,6})?)"), ("latency_transaction", "us", 1e-6)),
    ("ping", re.compile(r"()Average Latency"), ("latency_rtt", "ms", 1e-3)),
)  # fmt: skip


@dataclass
class _Trial:
    """Samples of one benchmark, none of them twice."""

    parameters: JSON
    samples: list[Sample] = field(default_factory=list)
    lines: list[JSON] = field(default_factory=list)

    def holds(self, sample: Sample) -> bool:
        return any((one.metric, one.quantile) == (sample.metric, sample.quantile) for one in self.samples)


def read(lines: Sequence[JSON]) -> Measured:
    """Raises ParseError."""
    trials: dict[str, list[_Trial]] = {}
    left_out = []
    for line in lines:
        if (found := _sample(line)) is None:
            left_out.append(str(line["metric"]))
            continue
        name, sample, parameters = found
        several = trials.setdefault(name, [])
        # A metric that comes again is of the next repetition.
        trial = next((one for one in several if not one.holds(sample)), None)
        if trial is None:
            several.append(trial := _Trial(parameters))
        trial.samples.append(sample)
        trial.lines.append(line)
    if not trials:
        raise ParseError(
            "PerfKit Benchmarker's samples hold no TCP goodput and no latency of its benchmarks iperf, netperf and ping"
        )
    times = [number(line["timestamp"], f"the timestamp of {NAME}") for line in lines]
    machine = _labels(lines[0]).get("sending_machine_type")
    return Measured(
        tool="perfkitbenchmarker",
        tool_version=words(_labels(lines[0]).get("perfkitbenchmarker_version")),
        started_at=stamp(moment(min(times), f"the timestamp of {NAME}")),
        machine=words(machine),
        trials=tuple(_measured(name, one) for name, several in trials.items() for one in several),
        about={"run_uri": words(lines[0]["run_uri"])} if words(lines[0].get("run_uri")) else {},
        left_out=tuple(left_out),
    )


def _measured(name: str, trial: _Trial) -> MeasuredTrial:
    return MeasuredTrial(
        benchmark=name,
        parameters=trial.parameters,
        direction="client-to-server",
        duration=None,
        raw=json.dumps(trial.lines, ensure_ascii=False),
        samples=tuple(trial.samples),
    )


def _sample(line: JSON) -> tuple[str, Sample, JSON] | None:
    """(name of the benchmark, sample, parameters); None for one that has no metric here. Raises ParseError."""
    for test, pattern, (metric, unit, factor) in _METRICS:
        match = pattern.fullmatch(str(line["metric"])) if line["test"] == test else None
        if match is None:
            continue
        if line["unit"] != unit:
            raise ParseError(f"{NAME} {match[0]} is in {words(str(line['unit']))}, not in {unit}")
        percent = number(float(match["percent"]), NAME) if "percent" in pattern.groupindex else None
        if percent is not None and not 0 < percent < 100:
            return None
        labels = {key: words(_labels(line).get(key)) for key in APART}
        known = {key: said for key, said in labels.items() if said}
        shown = [test, match[1], *known.values()]
        value = number(line["value"], f"{NAME} {match[0]}") * factor
        parameters = {"test": test, "protocol": "udp" if "UDP" in match[1] else "tcp", **known}
        if metric == "goodput":
            parameters["counted"] = "sender"
        return (
            " ".join(filter(None, shown)),
            Sample(metric, value, quantile=percent and percent / 100),
            parameters,
        )
    return None


def _labels(line: JSON) -> dict[str, str]:
    """What it says of itself, whether as an object or as one text."""
    if isinstance(meta := line.get("metadata"), dict):
        return {key: str(value) for key, value in meta.items()}
    labels = line.get("labels")
    return dict(_LABEL.findall(labels)) if isinstance(labels, str) else {}
