"""Judging a profile that is in force: measured against asked, with tolerances, pure functions only."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace

from overlaylab.core.model import ProfileCheck
from overlaylab.shaping.cpu import CpuState, same_quota
from overlaylab.specs.profile import Profile

GOODPUT_TOLERANCE = 0.01
# Parts that pings are cut into for the standard error of their median.
BATCHES = 10
RTT_TOLERANCE = 0.05
# Seconds: no RTT is held to better than this.
RTT_FLOOR = 50e-6
# Share of idle CPU below which a node, not the profile, is taken to be the limit.
BUSY = 0.05


@dataclass(frozen=True)
class Rtt:
    """Median of many RTTs and its standard error, in s."""

    median: float
    error: float


def rtt_of(values: list[float]) -> Rtt:
    """Median of RTTs in s, in the order in which they were measured, and its standard error."""
    return Rtt(statistics.median(values), standard_error(values))


def standard_error(values: list[float]) -> float:
    """Standard error of the median, by batches: pings that follow each other are alike, and a machine drifts."""
    # Law, Simulation Modeling and Analysis, 9.5.3: batch means.
    size = max(1, len(values) // BATCHES)
    medians = [statistics.median(values[i : i + size]) for i in range(0, size * BATCHES, size) if values[i:]]
    return statistics.stdev(medians) / math.sqrt(len(medians)) if len(medians) > 1 else math.inf


def rtt_tolerance(expected: float, error: float) -> float:
    """How far, in s, an RTT may lie from what is expected."""
    return max(RTT_TOLERANCE * expected, RTT_FLOOR, 3 * error)


def judge_rtt(
    client: str, server: str, target: float | None, delay: float, undelayed: Rtt, idle: Rtt
) -> list[ProfileCheck]:
    """rtt-baseline and rtt-idle of one pair; delay: one way, s, that was in force when `idle` was measured."""
    out_of_reach = None
    if target is not None and undelayed.median > target:
        out_of_reach = f"exceeds the target of {target * 1e3:.3f} ms: no delay is added"
    baseline = ProfileCheck(
        "rtt-baseline", client, server, target, undelayed.median, None, "s",
        "not-applicable" if out_of_reach else "pass", out_of_reach,
    )  # fmt: skip
    if target is None:
        return [baseline]
    if out_of_reach:
        expected, error = undelayed.median, math.hypot(undelayed.error, idle.error)
    else:
        expected, error = target, idle.error
    tolerance = rtt_tolerance(expected, error)
    verdict, reason = "pass", None
    if abs(idle.median - expected) > tolerance:
        verdict, reason = (
            "fail",
            f"median of many pings; without delay {undelayed.median * 1e3:.3f} ms",
        )
        if out_of_reach:
            verdict, reason = (
                "not-applicable",
                "no delay is added, so this is how far the machine itself drifts",
            )
        elif delay == 0:
            verdict = "not-applicable"
            reason = "delaying takes longer than what is lacking on this accelerator: no delay is added"
    return [
        baseline,
        ProfileCheck("rtt-idle", client, server, expected, idle.median, tolerance, "s", verdict, reason),
    ]


def rtt_not_applied(client: str, server: str, target: float | None, measured: Rtt) -> list[ProfileCheck]:
    """rtt-baseline and rtt-idle of one pair where the nodes' kernel cannot delay: both are the RTT as it is."""
    baseline = ProfileCheck("rtt-baseline", client, server, target, measured.median, None, "s", "pass", None)
    if target is None:
        return [baseline]
    reason = "latency is not applied: the kernel of the nodes has no netem"
    idle = replace(baseline, name="rtt-idle", verdict="not-applicable", reason=reason)
    return [baseline, idle]


def judge_goodput(
    client: str, server: str, expected: float, measured: float, idle_cpu: float
) -> ProfileCheck:
    """Goodput, bit/s, against theory. idle_cpu: share of the busier node's CPU that was idle meanwhile."""
    tolerance = GOODPUT_TOLERANCE * expected
    verdict, reason = "pass", None
    if abs(measured - expected) > tolerance:
        verdict = "fail"
        reason = f"{idle_cpu:.0%} of the busier node's CPU was idle"
        if measured < expected and idle_cpu < BUSY:
            verdict = "not-applicable"
            reason = f"the nodes' CPU carries {measured / 1e6:.0f} Mbit/s and no more on this accelerator"
    return ProfileCheck("goodput", client, server, expected, measured, tolerance, "bit/s", verdict, reason)


def judge_loaded(client: str, server: str, bound: float, pings: list[float], idle_cpu: float) -> ProfileCheck:
    """Median RTT, s, while the rate is used up, against its upper bound."""
    median = statistics.median(pings)
    verdict = "pass" if median <= bound else "not-applicable" if idle_cpu < BUSY else "fail"
    reason = None if median <= bound else f"median of {len(pings)} pings while the rate is used up"
    return ProfileCheck("rtt-loaded", client, server, bound, median, 0.0, "s", verdict, reason)


def cpu_problems(held: CpuState, profile: Profile) -> list[str]:
    """How a node's CPU differs from what it was told, in words. Fewer vCPUs than the tier has are none: a node
    cannot be told to have more, and `judge_cpu` records them."""
    problems = []
    if profile.vcpus is not None and held.vcpus > profile.vcpus:
        problems.append(f"{held.vcpus} vCPUs are in use, not {profile.vcpus}")
    if profile.quota is not None and not same_quota(held.quota, profile.quota):
        problems.append(
            f"{'all' if held.quota is None else f'{held.quota:.0%}'} of the vCPUs' time may be used, not {profile.quota:.0%}"
        )
    return problems


def judge_cpu(held: Mapping[str, CpuState], profile: Profile) -> list[ProfileCheck]:
    """vcpus and quota of each node, as far as the profile states them."""
    checks = []
    for node, state in held.items():
        if profile.vcpus is not None:
            verdict, reason = "pass", None
            if state.vcpus < profile.vcpus:
                verdict = "not-applicable"
                reason = f"the node has {state.vcpus}: what the tier's CPUs decide is not to be seen here"
            elif state.vcpus > profile.vcpus:
                verdict, reason = "fail", "the others are still in use"
            checks.append(
                ProfileCheck("vcpus", node, node, profile.vcpus, state.vcpus, None, "1", verdict, reason)
            )
        if profile.quota is not None:
            verdict = "pass" if same_quota(state.quota, profile.quota) else "fail"
            measured = 1.0 if state.quota is None else state.quota
            checks.append(
                ProfileCheck("quota", node, node, profile.quota, measured, None, "ratio", verdict, None)
            )
    return checks


def place(check: ProfileCheck) -> tuple[str, str, str]:
    return check.name, check.client_node, check.server_node


def with_history(check: ProfileCheck, earlier: dict[tuple[str, str, str], str]) -> ProfileCheck:
    """The check with what its earlier attempts measured in its reason."""
    told = [text for text in (check.reason, earlier.get(place(check))) if text]
    return replace(check, reason="; ".join(told) or None)


def show(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    if unit == "bit/s":
        return f"{value / 1e6:.2f} Mbit/s"
    return f"{value * 1e3:.3f} ms" if unit == "s" else f"{value:.4g}"


def readable(check: ProfileCheck) -> str:
    """One line for the user: what was expected, what was measured, and the verdict."""

    sign = {"pass": "ok", "fail": "FAILED", "not-applicable": "not here"}[check.verdict]
    bound = "at most " if check.name == "rtt-loaded" else ""
    where = check.client_node
    if check.server_node != check.client_node:
        where += f"→{check.server_node}"
    line = (
        f"{check.name} {where}: {show(check.measured, check.unit)}, {bound}{show(check.expected, check.unit)}"
    )
    if check.tolerance:
        line += f" ± {show(check.tolerance, check.unit)}"
    return f"{line}: {sign}" + (f" ({check.reason})" if check.reason else "")
