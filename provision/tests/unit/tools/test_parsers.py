"""Parsers against recorded outputs (fixtures/record.py): values, and what must not become a value."""

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from overlaylab.core.model import Sample
from overlaylab.tools import base
from overlaylab.tools.parsers import ParseError, checked, iperf3, ping, qperf

FIXTURES = Path(__file__).parents[2] / "fixtures"
CASES = sorted(p for tool in base.names() for p in (FIXTURES / tool).glob("*.out"))
IPERF = {"protocol": "tcp", "duration": 2, "omit": 1, "streams": 1}
BANDWIDTH = {"test": "tcp_bw", "duration": 2}


def context(out: Path) -> dict:
    return json.loads(out.with_name(out.name.removesuffix(".out") + ".json").read_text())


def name(out: Path) -> str:
    return f"{out.parent.name}/{out.name}"


def good(tool: str) -> list[Path]:
    return [p for p in CASES if p.parent.name == tool and context(p).get("samples")]


def parse(out: Path, stdout: str | None = None) -> list[Sample]:
    given = context(out)
    text = out.read_text() if stdout is None else stdout
    return base.load(out.parent.name).parse(text, given["stderr"], given["exit_code"], given["parameters"])


@pytest.mark.parametrize("out", CASES, ids=name)
def test_recorded_output(out: Path, golden) -> None:
    given = context(out)
    outcome = {k: given[k] for k in ("parameters", "stderr", "exit_code")}
    try:
        # What is None says nothing: leaving it out keeps the files readable.
        outcome["samples"] = [{k: v for k, v in asdict(s).items() if v is not None} for s in parse(out)]
    except ParseError as wrong:
        outcome["error"] = wrong.reason
    golden(out.with_name(out.name.removesuffix(".out") + ".json"), json.dumps(outcome, indent=1) + "\n")


@pytest.mark.parametrize("out", CASES, ids=name)
def test_samples_are_positive_and_lie_within_the_trial(out: Path) -> None:
    given = context(out)
    length = base.load(out.parent.name).timeout(given["parameters"])
    for sample in given.get("samples", []):
        assert sample["value"] > 0 or sample["metric"] in (
            *("loss", "retransmits", "jitter", "reordered", "duplicates"),
        )
        assert 0 <= sample.get("t_start", 0) <= sample.get("t_end", 0) <= length


@pytest.mark.parametrize("tool", base.names())
def test_output_that_is_cut_short_gives_no_other_values(tool: str) -> None:
    for out in good(tool):
        text, whole = out.read_text(), parse(out)
        for end in range(0, len(text.rstrip()), max(1, len(text) // 400)):
            try:
                cut = parse(out, text[:end])
            except ParseError:
                continue
            assert cut == whole, f"{name(out)} cut at {end}"


def test_goodput_is_what_the_receiver_counted() -> None:
    """The sender's own figure is higher by what lies in queues: 100 Mbit/s carries 95.6 of payload."""
    report = json.loads((FIXTURES / "iperf3" / "3.12-tcp.out").read_text())
    goodput, *rest = parse(FIXTURES / "iperf3" / "3.12-tcp.out")
    intervals = [s for s in rest if s.metric == "goodput"]
    assert goodput.value == report["end"]["sum_received"]["bits_per_second"]
    assert (goodput.t_start, goodput.t_end, goodput.quantile) == (None, None, None)
    assert goodput.value < report["end"]["sum_sent"]["bits_per_second"]
    server = [i["sum"] for i in report["server_output_json"]["intervals"] if not i["sum"]["omitted"]]
    assert [i.value for i in intervals] == [s["bits_per_second"] for s in server]
    assert [(round(i.t_start), round(i.t_end)) for i in intervals] == [(1, 2), (2, 3)]


@pytest.mark.parametrize("case", ["tcp-retransmits", "tcp-reverse"])
def test_retransmits_are_told_when_the_sender_had_them(case: str) -> None:
    out = FIXTURES / "iperf3" / f"3.12-{case}.out"
    report = json.loads(out.read_text())
    whole, *each = [s for s in parse(out) if s.metric == "retransmits"]
    assert whole == Sample("retransmits", report["end"]["sum_sent"]["retransmits"])
    assert sum(s.value for s in each) == whole.value
    if case == "tcp-retransmits":
        assert [(round(s.t_start), round(s.t_end), s.value) for s in each] == [
            (1, 2, 4879),
            (2, 3, 4007),
            (3, 4, 6057),
            (4, 5, 5154),
        ]


def test_loss_and_jitter_of_each_interval_are_the_receivers() -> None:
    out = FIXTURES / "iperf3" / "3.12-udp-overload.out"
    samples = parse(out)
    each = [s for s in samples if s.metric == "loss" and s.t_start is not None]
    assert [(round(s.t_start), s.value) for s in each] == [(1, 2031 / 10364), (2, 1968 / 10356)]
    assert {s.resolution for s in each} == {None}
    jitter = [s.value for s in samples if s.metric == "jitter" and s.t_start is not None]
    assert jitter == [pytest.approx(0.000478826), pytest.approx(0.000481470)]


@pytest.mark.parametrize(("lost", "packets"), [(-3, 100), (0, 0)])
def test_an_interval_that_says_nothing_of_loss_gives_none(lost: int, packets: int) -> None:
    """Late datagrams are taken off a later interval's losses; where nothing arrives, nothing is counted."""
    out = FIXTURES / "iperf3" / "3.12-udp-overload.out"
    report = json.loads(out.read_text())
    report["server_output_json"]["intervals"][-1]["sum"] |= {"lost_packets": lost, "packets": packets}
    samples = parse(out, json.dumps(report))
    each = [s for s in samples if s.metric == "loss" and s.t_start is not None]
    assert [s.value for s in each] == [2031 / 10364]


@pytest.mark.parametrize(("case", "streams"), [("tcp", 1), ("tcp-parallel", 4), ("tcp-reverse", 1)])
def test_tcp_goodput_counts_whole_reads_of_each_stream(case: str, streams: int) -> None:
    out = FIXTURES / "iperf3" / f"3.12-{case}.out"
    assert context(out)["parameters"]["streams"] == streams
    seconds = json.loads(out.read_text())["end"]["sum_received"]["seconds"]
    goodput, *rest = parse(out)
    assert goodput.resolution == pytest.approx(131072 * 8 * streams / seconds)
    assert {sample.resolution for sample in rest} == {None}


def test_udp_loss_leaves_the_omitted_second_out() -> None:
    """iperf3 3.12 counts it in end.sum_received (https://github.com/esnet/iperf/issues/1489)."""
    out = FIXTURES / "iperf3" / "3.12-udp-overload.out"
    end = json.loads(out.read_text())["end"]["sum_received"]
    values = {s.metric: s.value for s in parse(out) if s.t_start is None}
    assert set(values) == {"goodput", "offered", "datagrams", "loss", "reordered", "jitter"}
    assert values["loss"] == pytest.approx(1 - values["goodput"] / values["offered"], abs=0.002)
    assert values["loss"] < 0.8 * end["lost_packets"] / end["packets"]
    assert values["jitter"] == end["jitter_ms"] / 1000


def test_what_was_sent_after_the_last_arrival_is_lost() -> None:
    """The receiver numbers gaps between arrivals: of 2401 datagrams the first 53 arrived, and it counted no loss."""
    values = {
        s.metric: s.value for s in parse(FIXTURES / "iperf3" / "3.12-udp-tail-lost.out") if s.t_start is None
    }
    assert values["loss"] == (2401 - 53) / 2401
    assert values["loss"] == pytest.approx(1 - values["goodput"] / values["offered"], abs=0.002)


def test_datagrams_that_were_overtaken_are_counted_by_the_receiver() -> None:
    """One of 20, and each that came twice (one of 33) once more: its number is no higher than the last."""
    out = FIXTURES / "iperf3" / "3.12-udp-overtaken.out"
    values = {s.metric: s.value for s in parse(out) if s.t_start is None}
    assert values["reordered"] == pytest.approx(values["datagrams"] * (1 / 20 + 1 / 33), rel=0.1)
    assert values["loss"] == 0


def test_an_interval_in_which_nothing_arrived_is_a_zero() -> None:
    report = json.loads((FIXTURES / "iperf3" / "3.12-tcp.out").read_text())
    report["server_output_json"]["intervals"][-1]["sum"] |= {"bytes": 0, "bits_per_second": 0}
    samples = iperf3.parse(json.dumps(report), "", 0, IPERF)
    assert [s.value for s in samples if s.metric == "goodput"][-1] == 0


@pytest.mark.parametrize("value", [1e308, 2**53 + 2, -1, 0.5])
def test_what_nobody_can_have_counted_is_no_count(value: float) -> None:
    report = json.loads((FIXTURES / "iperf3" / "3.12-tcp.out").read_text())
    report["intervals"][-1]["sum"]["retransmits"] = value
    with pytest.raises(ParseError, match="which is no count"):
        iperf3.parse(json.dumps(report), "", 0, IPERF)


@pytest.mark.parametrize("size", [0, -8192])
def test_a_receiver_that_reads_nothing_at_once_has_no_step(size: int) -> None:
    report = json.loads((FIXTURES / "iperf3" / "3.12-tcp.out").read_text())
    report["start"]["test_start"]["blksize"] = size
    with pytest.raises(ParseError, match="in steps that cannot be"):
        iperf3.parse(json.dumps(report), "", 0, IPERF)


@pytest.mark.parametrize(
    ("stdout", "reason"),
    [
        ("", "report is empty"),
        ("[" * 100000, "report is nested too deeply"),
        ('{"start": {', "report is cut short"),
        ('{"start": "x', "report is cut short"),
        ('{"jitter_ms": -nan}', "report has '-nan}' in line 1, which is no JSON"),
        ("warning: a word before\n{}", "report begins with 'warning: a word before', which is no JSON"),
        ("\ufeff{}", "which is no JSON"),
        ("<html></html>", "report begins with '<html></html>', which is HTML or XML"),
    ],
)
def test_a_text_that_is_no_report_is_told_as_what_it_is(stdout: str, reason: str) -> None:
    with pytest.raises(ParseError, match=re.escape(reason)):
        iperf3.parse(stdout, "", 0, IPERF)


@pytest.mark.parametrize(
    ("end", "parameters", "reason"),
    [
        ({"sum_sent": {"bytes": 20_000}}, {}, "bytes received of 20000 that were sent"),
        ({"sum_sent": {"bytes": 21_000_000}}, {"omit": 0}, "bytes received of 21000000 that were sent"),
        ({"sum_sent": {"retransmits": 2**32 - 1}}, {}, "4294967295 retransmits of 23978880 bytes"),
        ({"streams": [{}] * 4}, {}, "reported 4 of 1 streams"),
        ({}, {"duration": 20}, "measured for 2.00345 s of 20"),
        (
            {"sum_received": {"bytes": 25_000_000, "seconds": 200, "bits_per_second": 1e6}},
            {},
            "measured for 200 s of 2",
        ),
        ({}, {"streams": 4}, "ran with streams 1, not 4"),
    ],
)
def test_a_report_that_cannot_be_of_this_trial_gives_no_sample(
    end: dict, parameters: dict, reason: str
) -> None:
    report = json.loads((FIXTURES / "iperf3" / "3.12-tcp.out").read_text())
    for total, values in end.items():
        report["end"][total] = values if isinstance(values, list) else report["end"][total] | values
    with pytest.raises(ParseError, match=re.escape(reason)):
        iperf3.parse(json.dumps(report), "", 0, IPERF | parameters)


def test_a_report_of_another_protocol_gives_no_sample() -> None:
    report = json.loads((FIXTURES / "iperf3" / "3.12-tcp.out").read_text())
    report["start"]["test_start"]["protocol"] = "UDP"
    with pytest.raises(ParseError, match="ran with protocol udp, not tcp"):
        iperf3.parse(json.dumps(report), "", 0, IPERF)


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (Sample("jitter", 1e5), "jitter as 100000, which it cannot be"),
        (Sample("latency_rtt", 3601.0, 0.0, 0.0), "latency_rtt as 3601"),
        (Sample("goodput", 1e15), "goodput as 1e+15"),
        (Sample("reordered", 2**32 - 1), "reordered as 4.29497e+09"),
    ],
)
def test_no_metric_is_beyond_its_bound(sample: Sample, reason: str) -> None:
    with pytest.raises(ParseError, match=re.escape(reason)):
        checked("a tool", [sample])


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        ({"error": "the server is busy"}, "the server is busy"),
        ({}, "no end"),
        ({"end": {}}, "no sum_received"),
        ({"end": {"sum_received": {"bytes": 0, "bits_per_second": 0}}}, "no byte arrived"),
        ({"end": {"sum_received": {"bytes": 9}}}, "no start"),
        ({"end": {"sum_received": {"bytes": 9}}, "start": {"test_start": {}}}, "no blksize"),
        (
            {"end": {"sum_received": {"bytes": 9}}, "start": {"test_start": {"blksize": 8192}}},
            "no seconds",
        ),
        (
            {
                "end": {"sum_received": {"bytes": 9, "seconds": 1}},
                "start": {"test_start": {"blksize": 8192}},
            },
            "no bits_per_second",
        ),
        (
            {
                "start": {"test_start": {"reverse": 0, "blksize": 8192}},
                "end": {"sum_received": {"bytes": 9, "bits_per_second": 72, "seconds": 1}},
                "server_output_json": {"intervals": []},
            },
            "no interval",
        ),
        ([], "no report"),
        ({"error": {"code": 1}}, "iperf3 reported an error"),
        ({"end": {"sum_received": {"bytes": "many"}}}, "'many', which is no number"),
        ({"end": {"sum_received": {"bytes": True}}}, "True, which is no number"),
        ({"end": {"sum_received": {"bytes": 10**400}}}, "no finite number"),
        ({"end": {"sum_received": {"bytes": float("nan")}}}, "nan, which is no finite number"),
        (
            {
                "start": {"test_start": {"reverse": 0, "blksize": 8192}},
                "end": {"sum_received": {"bytes": 9, "bits_per_second": 90, "seconds": 1}},
            },
            "a rate of 90 bit/s for bytes and seconds that make 72",
        ),
        (
            {
                "start": {"test_start": {"reverse": 0, "blksize": 8192}},
                "end": {"sum_received": {"bytes": 9, "bits_per_second": 72, "seconds": 0}},
            },
            "measured for 0 s",
        ),
    ],
)
def test_iperf3_report_without_a_measurement(report: object, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        iperf3.parse(json.dumps(report), "", 0, IPERF)


def test_qperf_resolution_is_one_message_over_the_duration() -> None:
    """65,536 bytes over 2 s: the step of 0.26 Mbit/s that decided a published ratio."""
    (sample,) = parse(FIXTURES / "qperf" / "0.4.11-tcp_bw.out")
    assert sample.resolution == 262144
    assert sample.value % 262144 == 0
    (large,) = parse(FIXTURES / "qperf" / "0.4.11-tcp_bw-message.out")
    assert large.resolution == 1048576 * 8 / 2


def bandwidth(sent: int | None = None, received: int = 2000, rate: int = 1000) -> str:
    left = "" if sent is None else f"    loc_send_bytes = {sent} bytes\n"
    arrived = f"    rem_recv_bytes = {received} bytes\n    rem_recv_msgs = 9\n"
    return f"tcp_bw:\n    bw = {rate} bytes/sec\n{left}{arrived}"


@pytest.mark.parametrize(
    ("stdout", "reason"),
    [
        ("", "no result of tcp_bw"),
        ("tcp_lat:\n    latency  =  5 ns\n", "no result of tcp_bw"),
        ("tcp_bw:\n", "cut short"),
        ("tcp_bw:\n    bw  =  11.9 MB/sec\n", "in 'MB/sec', not in 'bytes/sec'"),
        ("tcp_bw:\n    bw  =  1199\n", "in 'no unit'"),
        ("tcp_bw:\n    bw  =  0 bytes/sec\n", "nothing was transferred"),
        ("tcp_bw:\n    bw  =  fast bytes/sec\n", "no number"),
        ("tcp_bw:\n    bw  =  9 bytes/sec\n", "cut short"),
        ("tcp_bw:\nwarning: what is this\n", "no result: 'warning"),
        (bandwidth(), "no loc_send_bytes"),
        (bandwidth(sent=1000, received=2001), "2001 bytes received of 1000 that were sent"),
        (bandwidth(sent=1000, received=1000, rate=10**12), "a rate that make 1e-09 s, not 2 s"),
        (bandwidth(sent=1000, received=1000, rate=1), "a rate that make 1e.03 s, not 2 s"),
    ],
)
def test_qperf_output_without_a_measurement(stdout: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        qperf.parse(stdout, "", 0, BANDWIDTH)


def test_qperf_udp_has_what_arrived_and_what_was_sent() -> None:
    goodput, offered = parse(FIXTURES / "qperf" / "0.4.11-udp_bw-message.out")
    assert (goodput.metric, offered.metric) == ("goodput", "offered")
    assert goodput.resolution == offered.resolution == 1448 * 8 / 2
    assert 0.95 * offered.value < goodput.value < offered.value
    large, _ = parse(FIXTURES / "qperf" / "0.4.11-udp_bw.out")
    assert large.resolution == 32768 * 8 / 2


@pytest.mark.parametrize(
    ("case", "line", "value"),
    [
        ("udp_bw", "recv_bw", "900000000000 bytes/sec"),
        ("udp_bw", "send_bw", "98 bytes/sec"),
        ("udp_bw", "loc_send_bytes", "24576 bytes"),
        ("tcp_lat", "latency", "8106000 ns"),
        ("tcp_lat", "latency", "8 ns"),
    ],
)
def test_numbers_of_qperf_that_contradict_each_other_give_no_sample(case: str, line: str, value: str) -> None:
    out = FIXTURES / "qperf" / f"0.4.11-{case}.out"
    wrong = re.sub(rf"(?m)^( +{line} += ).*$", rf"\g<1>{value}", out.read_text())
    with pytest.raises(ParseError, match=r"a rate that make|that were sent"):
        parse(out, wrong)


def test_qperf_udp_lat_is_no_latency_once_a_datagram_is_lost() -> None:
    """It would be 48 µs instead of 22: the second after the loss is counted in."""
    (sample,) = parse(FIXTURES / "qperf" / "0.4.11-udp_lat.out")
    assert sample.metric == "latency_one_way"
    assert sample.value == pytest.approx(22e-6, abs=1e-6)
    with pytest.raises(ParseError, match="lost a datagram"):
        parse(FIXTURES / "qperf" / "0.4.11-udp_lat-one-lost.out")


def test_ping_median_stands_for_the_trial_and_each_reply_has_its_time() -> None:
    out = FIXTURES / "ping" / "20221126-some-lost.out"
    median, *replies, loss = parse(out)
    assert (median.metric, median.quantile, median.t_start) == ("latency_rtt", 0.5, None)
    assert sorted(r.value for r in replies)[len(replies) // 2] == median.value
    assert replies[0].t_start == 0
    assert loss == Sample("loss", (40 - len(replies)) / 40, resolution=1 / 40)
    assert 0.1 < loss.value < 0.5


@pytest.mark.parametrize(
    ("stdout", "exit_code", "reason"),
    [
        ("", 2, "exit code 2"),
        ("", None, "did not end in time"),
        ("", -9, "killed by signal 9"),
        ("1 packets transmitted, 0 received, 100% packet loss, time 0ms\n", 1, "no reply to 1 requests"),
        (
            "[1.5] 64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=5 s\n"
            "1 packets transmitted, 1 received, 0% packet loss, time 0ms\n",
            0,
            "in 's', not in 'ms'",
        ),
        (
            "64 bytes from 10.0.0.1: icmp_seq=0 ttl=64 time=0.045 ms\n"
            "1 packets transmitted, 1 packets received, 0.0% packet loss\n",
            0,
            "not that of iputils, by its summary: '1 packets transmitted, 1 packets received'",
        ),
        (
            "64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=5 ms\n"
            "1 packets transmitted, 1 received, 0% packet loss, time 0ms\n",
            0,
            "another form",
        ),
        (
            "1 packets transmitted, 1 received, 0% packet loss, time 0ms\n",
            0,
            "counted 1 replies and printed 0",
        ),
    ],
)
def test_ping_output_without_a_measurement(stdout: str, exit_code: int | None, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        ping.parse(stdout, "", exit_code, {"count": 1})


@pytest.mark.parametrize(("asked", "fits"), [(40, True), (44, True), (45, False), (39, False), (500, False)])
def test_ping_sends_what_was_asked_for(asked: int, fits: bool) -> None:
    out = FIXTURES / "ping" / "20221126-some-lost.out"
    try:
        ping.parse(out.read_text(), "", 0, {"count": asked})
    except ParseError as wrong:
        assert (wrong.reason, fits) == (f"ping counted 40 requests of {asked}", False)
    else:
        assert fits


def test_a_duplicate_reply_is_no_sample() -> None:
    reply = "[1.5] 64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=5.25 ms"
    end = "1 packets transmitted, 1 received, +1 duplicates, 0% packet loss, time 0ms"
    samples = ping.parse(f"{reply}\n{reply} (DUP!)\n\n{end}\n", "", 0, {"count": 1})
    assert samples == [
        Sample("latency_rtt", 0.00525, quantile=0.5),
        Sample("latency_rtt", 0.00525, 0.0, 0.0),
        Sample("loss", 0.0, resolution=1.0),
    ]
