"""netperf -t TCP_RR|UDP_RR|TCP_CRR -j -c -C -P 0 -- -k SELECTORS: a line ``SELECTOR=value`` for each of them."""

from __future__ import annotations

from overlaylab.core.model import JSON, Sample
from overlaylab.tools.parsers import ParseError, checked, failure, number

TOOL = "netperf"
QUANTILES = {"P50_LATENCY": 0.5, "P90_LATENCY": 0.9, "P99_LATENCY": 0.99}
CPU = {"cpu_client": "LOCAL_CPU", "cpu_server": "REMOTE_CPU"}
SELECTORS = (
    "THROUGHPUT",
    "ELAPSED_TIME",
    "MEAN_LATENCY",
    *QUANTILES,
    "LOCAL_CPU_UTIL",
    "LOCAL_CPU_COUNT",
    "REMOTE_CPU_UTIL",
    "REMOTE_CPU_COUNT",
    "THROUGHPUT_UNITS",  # the end: a unit that is cut short is another unit
)
# s: the kernel's /proc/stat, which netperf reads on Linux, counts CPU time in hundredths (proc(5), USER_HZ).
TICK = 0.01
# s: of fewer ticks, whole ones say next to nothing; two CPUs that worked for 14 ms may both come out as idle.
BRIEFEST = 10 * TICK

# How far, as a factor, numbers may be apart that tell the same, and are rounded.
APART = 1.5


def parse(stdout: str, stderr: str, exit_code: int | None, parameters: JSON) -> list[Sample]:
    """transaction_rate; latency_rtt, with tcp_crr latency_transaction (mean, then netperf's own percentiles); CPU.

    A mean is over transactions that waited for each other: closed loop. Raises ParseError.
    """
    if exit_code != 0:
        raise failure(TOOL, stdout, stderr, exit_code)
    said = dict(line.split("=", 1) for line in stdout.splitlines() if "=" in line)
    missing = [name for name in SELECTORS if name not in said]
    if missing:
        words = next((line.strip() for line in stdout.splitlines() if line.strip() and "=" not in line), "")
        told = f": {words}" if words else ""
        raise ParseError(f"netperf printed no {missing[0]}{told}")
    if said["THROUGHPUT_UNITS"] != "Trans/s":
        raise ParseError(f"netperf gave its rate in {said['THROUGHPUT_UNITS']!r}, not in 'Trans/s'")
    rate, elapsed = _number(said, "THROUGHPUT"), _number(said, "ELAPSED_TIME")
    if rate <= 0:
        raise ParseError("netperf completed no transaction")
    if elapsed < 0:
        raise ParseError(f"netperf gave the time that passed as {elapsed:g} s")
    _check_agreement(rate, elapsed, _micro(said, "MEAN_LATENCY"), parameters["transactions"])
    metric = "latency_transaction" if parameters["test"] == "tcp_crr" else "latency_rtt"
    return checked(
        TOOL,
        [
            Sample("transaction_rate", rate),
            Sample(metric, _micro(said, "MEAN_LATENCY")),
            *(Sample(metric, _micro(said, name), quantile=q) for name, q in QUANTILES.items()),
            *(sample for metric, prefix in CPU.items() for sample in _cpu(metric, said, prefix, elapsed)),
        ],
    )


def _check_agreement(rate: float, elapsed: float, mean: float, asked: int) -> None:
    """Numbers that cannot be of one trial of so many transactions, one after the other. Raises ParseError.

    Between an answer and the next request little time passes, but netperf's own start counts in a brief trial.
    """
    if mean * rate > APART or (elapsed >= BRIEFEST and 0 < mean * rate < 0.1):
        raise ParseError(f"netperf gave a mean latency of {mean:g} s and a rate of {rate:g} transactions/s")
    # The time is printed in hundredths.
    least, most = rate * (elapsed - TICK) / APART, rate * (elapsed + TICK) * APART
    if not least <= asked <= most:
        raise ParseError(
            f"netperf gave {rate:g} transactions/s in {elapsed:g} s, which are not the {asked} asked for"
        )


def _cpu(metric: str, said: dict[str, str], prefix: str, elapsed: float) -> list[Sample]:
    """None where netperf did not measure it, and says -1, or had too few ticks to measure it in."""
    percent, cpus = _number(said, f"{prefix}_UTIL"), _number(said, f"{prefix}_COUNT")
    # The time is printed in hundredths: 50 transactions may take 0.00 s.
    if percent < 0 or elapsed < BRIEFEST:
        return []
    if cpus < 1:
        raise ParseError(f"netperf counted {cpus:g} CPUs")
    return [Sample(metric, percent / 100, resolution=TICK / (elapsed * cpus))]


def _micro(said: dict[str, str], name: str) -> float:
    """A latency, which netperf prints in microseconds, in seconds."""
    return _number(said, name) / 1e6


def _number(said: dict[str, str], name: str) -> float:
    return number(TOOL, name, said[name])
