"""Parsers of netperf and sockperf: what a request and its answer take, with closed and with open loop."""

import pytest
from test_parsers import FIXTURES, parse

from overlaylab.core.model import Sample
from overlaylab.tools.parsers import ParseError, netperf, sockperf

NETPERF, SOCKPERF = FIXTURES / "netperf", FIXTURES / "sockperf"
RR = {"test": "tcp_rr", "transactions": 1000, "request": 300}
SAID = {
    "THROUGHPUT": "1000.00",
    "ELAPSED_TIME": "1.00",
    "MEAN_LATENCY": "990.50",
    "P50_LATENCY": "900",
    "P90_LATENCY": "1200",
    "P99_LATENCY": "1500",
    "LOCAL_CPU_UTIL": "12.50",
    "LOCAL_CPU_COUNT": "2",
    "REMOTE_CPU_UTIL": "-1.00",
    "REMOTE_CPU_COUNT": "2",
    "THROUGHPUT_UNITS": "Trans/s",
}


def netperf_said(**other: str | None) -> str:
    said = {k: v for k, v in (SAID | other).items() if v is not None}
    return "".join(f"{name}={value}\n" for name, value in said.items())


def test_netperf_values_are_in_base_units_and_what_was_not_measured_is_left_out() -> None:
    assert netperf.parse(netperf_said(), "", 0, RR) == [
        Sample("transaction_rate", 1000.0),
        Sample("latency_rtt", 990.5 / 1e6),
        Sample("latency_rtt", 900 / 1e6, quantile=0.5),
        Sample("latency_rtt", 1200 / 1e6, quantile=0.9),
        Sample("latency_rtt", 1500 / 1e6, quantile=0.99),
        # A hundredth of a second of two CPUs, over one second.
        Sample("cpu_client", 0.125, resolution=0.005),
    ]


def test_a_transaction_with_its_connection_is_another_metric() -> None:
    metrics = {sample.metric for sample in parse(NETPERF / "2.7.0-tcp_crr.out")}
    assert metrics == {"transaction_rate", "latency_transaction", "cpu_client", "cpu_server"}


@pytest.mark.parametrize("case", ["tcp_rr", "udp_rr", "tcp_crr", "tcp_rr-64k", "udp_rr-8k"])
def test_one_transaction_at_a_time(case: str) -> None:
    """A closed loop: the rate is one over the mean, but for the time between an answer and the next request."""
    rate, mean, *_ = parse(NETPERF / f"2.7.0-{case}.out")
    assert rate.value * mean.value == pytest.approx(1, rel=0.02)


def test_transactions_that_took_less_than_netperfs_hundredths_are_measured() -> None:
    """netperf prints ELAPSED_TIME=0.00; CPU time is counted in ticks of .01 s, and was not measured."""
    assert parse(NETPERF / "2.7.0-tcp_crr-brief.out") == [
        Sample("transaction_rate", 10010.01),
        Sample("latency_transaction", 95.8 / 1e6),
        Sample("latency_transaction", 82 / 1e6, quantile=0.5),
        Sample("latency_transaction", 140 / 1e6, quantile=0.9),
        Sample("latency_transaction", 140 / 1e6, quantile=0.99),
    ]


@pytest.mark.parametrize(
    ("elapsed", "resolution"), [("0.01", None), ("0.09", None), ("0.10", 0.01 / 0.2), ("0.14", 0.01 / 0.28)]
)
def test_cpu_time_of_few_ticks_was_not_measured(elapsed: str, resolution: float | None) -> None:
    """Nothing but whole ticks is counted: none in 14 ms is not an idle CPU."""
    said = netperf_said(ELAPSED_TIME=elapsed, LOCAL_CPU_UTIL="0.00")
    given = {**RR, "transactions": round(1000 * float(elapsed))}
    found = [sample for sample in netperf.parse(said, "", 0, given) if sample.metric == "cpu_client"]
    assert found == ([] if resolution is None else [Sample("cpu_client", 0.0, resolution=resolution)])


@pytest.mark.parametrize(
    ("stdout", "exit_code", "reason"),
    [
        ("", 0, "no THROUGHPUT"),
        (netperf_said(P99_LATENCY=None), 0, "no P99_LATENCY"),
        (netperf_said(THROUGHPUT="0.00"), 0, "completed no transaction"),
        (netperf_said(ELAPSED_TIME="-0.01"), 0, "time that passed as -0.01 s"),
        (netperf_said(THROUGHPUT_UNITS="10^6bits/s"), 0, "in '10.6bits/s', not in 'Trans/s'"),
        (netperf_said(MEAN_LATENCY="0.00"), 0, "latency_rtt as 0"),
        (netperf_said(MEAN_LATENCY="-1.00"), 0, "latency_rtt as -1e-06"),
        (netperf_said(MEAN_LATENCY="100000000"), 0, "a mean latency of 100 s and a rate of 1000 tr"),
        (netperf_said(MEAN_LATENCY="9.9"), 0, "a mean latency of 9.9e-06 s and a rate of 1000 tr"),
        (netperf_said(THROUGHPUT="1530", MEAN_LATENCY="650"), 0, "in 1 s, which are not the 1000 asked for"),
        (netperf_said(ELAPSED_TIME="0.60"), 0, "in 0.6 s, which are not the 1000 asked for"),
        (netperf_said(THROUGHPUT="999999999"), 0, "and a rate of 1e.09 transactions"),
        (netperf_said(P50_LATENCY="nan"), 0, "'nan', which is no number"),
        (netperf_said(P50_LATENCY="900000"), 0, "percentile 50 of latency_rtt as 0.9, above percentile 90, "),
        (netperf_said(LOCAL_CPU_UTIL="120.00"), 0, "cpu_client as 1.2"),
        (netperf_said(LOCAL_CPU_COUNT="0"), 0, "counted 0 CPUs"),
        ("netperf: cannot do that\n", 0, "no THROUGHPUT: netperf: cannot do that"),
        (netperf_said(), 124, "did not end in time"),
    ],
)
def test_netperf_output_without_a_measurement(stdout: str, exit_code: int, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        netperf.parse(stdout, "", exit_code, RR)


def test_every_message_of_sockperf_is_there_at_its_time() -> None:
    samples = parse(SOCKPERF / "3.7-udp.out")
    whole = {s.metric: s.value for s in samples if s.t_start is None and s.quantile is None}
    each = [s for s in samples if s.t_start is not None]
    assert set(whole) == {"loss", "duplicates", "reordered", "offered", "datagrams"}
    assert len(each) == whole["datagrams"]
    assert (whole["loss"], whole["duplicates"], whole["reordered"]) == (0, 0, 0)
    assert each[0].t_start == 0
    assert [s.t_start for s in each] == sorted(s.t_start for s in each)
    # 100 messages of 64 bytes a second.
    assert whole["offered"] == pytest.approx(100 * 64 * 8, rel=0.05)


def test_sockperfs_own_median_is_that_of_its_messages() -> None:
    samples = parse(SOCKPERF / "3.7-udp.out")
    each = sorted(s.value for s in samples if s.t_start is not None)
    (median,) = [s.value for s in samples if s.quantile == 0.5]
    assert median == pytest.approx(each[int(0.5 + 0.5 * len(each)) - 1], abs=2e-9)
    # The 99th percentile of some fifty messages would be their largest.
    assert max(s.quantile for s in samples if s.quantile) == 0.9


def test_a_stall_is_seen_by_every_message_that_it_held_up() -> None:
    """TCP held everything back for .3 s: with an open loop that is some 30 messages, not one."""
    slow = [s for s in parse(SOCKPERF / "3.7-tcp-stall.out") if s.t_start is not None and s.value > 0.02]
    assert len(slow) >= 15
    assert max(s.value for s in slow) > 0.15


def test_messages_lost_doubled_and_overtaken_are_counted() -> None:
    def whole(case: str) -> dict[str, float]:
        return {s.metric: s.value for s in parse(SOCKPERF / f"3.7-{case}.out") if s.t_start is None}

    assert whole("udp-stall")["loss"] > 0.1
    assert whole("udp-overload")["loss"] > 0.3
    moved = whole("udp-overtaken")
    assert (moved["reordered"], moved["duplicates"]) == (14, 12)
    # Those that were overtaken are answered, and not in the log.
    assert moved["loss"] == 0


ROWS = "0, 10.000000000, 10.000100000, 100.000\n1, 10.010000000, 10.010300000, 300.000\n"


def log(rows: str = ROWS, end: str = "-" * 30 + "\n", errors: str = "0", received: int = 2) -> str:
    return (
        "sockperf: [Total Run] RunTime=1.000 sec; Warm up time=400 msec; SentMessages=100; ReceivedMessages=100\n"
        f"sockperf: [Valid Duration] RunTime=0.010 sec; SentMessages=2; ReceivedMessages={received}\n"
        f"sockperf: \x1b[0;31m# dropped messages = {errors}; # duplicated messages = 0;"
        " # out-of-order messages = 0\x1b[0m\n"
        "sockperf: ---> percentile 50.000 =  100.000\n"
        f"{'-' * 30}\npacket, txTime(sec), rxTime(sec), rtt(usec)\n{rows}{end}"
    )


def test_sockperf_with_colours() -> None:
    given = {"protocol": "tcp", "message": 64, "duration": 1}
    assert sockperf.parse(log(errors="2"), "", 0, given) == [
        Sample("latency_rtt", 0.0001, quantile=0.5),
        Sample("latency_rtt", 0.0001, 0.0, 0.0),
        Sample("latency_rtt", 0.0003, 0.01, 0.01),
        Sample("loss", 0.5, resolution=0.25),
        Sample("duplicates", 0),
        Sample("reordered", 0),
    ]


@pytest.mark.parametrize(
    ("stdout", "exit_code", "reason"),
    [
        ("", 0, "cut short"),
        (log(), 1, "exit code 1"),
        (log(end=""), 0, "log is cut short"),
        (log(received=3), 0, "counted 3 answers and logged 2"),
        (log(rows="", received=0), 0, "counted 0 answers and logged 0"),
        (log(rows=ROWS.replace("300.000", "0.000")), 0, "does not agree with itself"),
        (log(rows=ROWS.replace("1, ", "7, ")), 0, "another line"),
        (log().replace("rtt(usec)", "latency(usec)"), 0, "log is missing"),
        (log().replace("RunTime=1.000", "RunTime=0.200"), 0, "ran for 0.2 s of 1"),
        (log().replace("percentile 50", "percentile 51"), 0, "no median"),
    ],
)
def test_sockperf_output_without_a_measurement(stdout: str, exit_code: int, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        sockperf.parse(stdout, "", exit_code, {"protocol": "udp", "message": 64, "duration": 1})
