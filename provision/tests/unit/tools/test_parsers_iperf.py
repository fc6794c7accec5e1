"""The parser of iperf 2: which of its lines count."""

import pytest
from test_parsers import FIXTURES, parse

from overlaylab.tools.parsers import ParseError, iperf

IPERF = FIXTURES / "iperf"
TCP = {"protocol": "tcp", "duration": 2, "streams": 1}
UDP = {"protocol": "udp", "duration": 2, "streams": 1, "datagram": 1000}


def whole(case: str) -> dict[str, float]:
    samples = parse(IPERF / f"2.1.8-{case}.out")
    assert {(s.t_start, s.t_end, s.quantile) for s in samples} == {(None, None, None)}
    return {sample.metric: sample.value for sample in samples}


@pytest.mark.parametrize("case", ["tcp", "tcp-parallel", "tcp-mss"])
def test_goodput_is_what_had_arrived_when_the_last_stream_was_closed(case: str) -> None:
    """iperf's own sum of four streams on this link of 100 Mbit/s is 105.9 Mbit/s."""
    assert 80e6 < whole(case)["goodput"] < 95.7e6  # 1448 of 1514 bytes, and of 536 fewer


def test_loss_is_the_servers() -> None:
    offered = whole("udp-overload")
    assert set(offered) == {"goodput", "offered", "datagrams", "loss", "reordered", "jitter"}
    assert offered["offered"] == pytest.approx(120e6, rel=0.01)
    assert 0.15 < offered["loss"] < 0.25
    assert offered["goodput"] == pytest.approx(offered["offered"] * (1 - offered["loss"]), rel=0.02)
    assert (whole("udp")["loss"], whole("udp")["reordered"]) == (0, 0)


def test_datagrams_that_were_overtaken_are_counted() -> None:
    """One of 20 is; iperf also takes a datagram that came twice, one of 33, for one that was late."""
    moved = whole("udp-overtaken")
    assert moved["loss"] == 0
    assert moved["reordered"] == pytest.approx(moved["datagrams"] * (1 / 20 + 1 / 33), rel=0.1)


def test_streams_are_added_up() -> None:
    one, four = whole("udp"), whole("udp-parallel")
    assert four["goodput"] == pytest.approx(one["goodput"], rel=0.02)
    assert four["datagrams"] == pytest.approx(one["datagrams"], rel=0.02)


SENT = "[  1] 0.0000-2.0000 sec  2000000 Bytes  8000000 bits/sec  2000/0     1000 pps\n"
HEAD = "[  1] Server Report:\n"
RECEIVED = "[  1] 0.0000-2.0000 sec  1900000 Bytes  7600000 bits/sec   0.010 ms 100/2000 (5%)\n"
THOUSANDFOLD = "[  1] 0.0000-2.0000 sec  2000000000 Bytes  8000000000 bits/sec   0.010 ms 0/2000000 (0%)\n"
BRIEF = "[  1] 0.0000-0.2000 sec  1900000 Bytes  76000000 bits/sec   0.010 ms 100/2000 (5%)\n"
END = f"{iperf.END}\n"


@pytest.mark.parametrize(
    ("stdout", "stderr", "parameters", "reason"),
    [
        ("", "", TCP, "cut short"),
        (SENT, "", TCP, "cut short"),
        (END, "tcp connect failed: Connection refused\n", TCP, "0 of 1 streams: tcp connect failed"),
        (SENT + END, "", {**TCP, "streams": 2}, "1 of 2 streams"),
        (SENT + SENT + END, "", TCP, "stream 1 twice"),
        (SENT + END, "tcp write failed: Broken pipe\n", TCP, "broke off: tcp write failed"),
        (SENT + END, "", {**TCP, "duration": 3}, "broke off"),
        (SENT.replace("8000000", "9000000") + END, "", TCP, "gave 9000000 bit/s"),
        (SENT.replace("0.0000-2", "1.0000-2") + END, "", TCP, "a part of a stream"),
        (SENT.replace("2000000 Bytes  8000000", "0 Bytes  0") + END, "", TCP, "goodput as 0"),
        (SENT + END, "[  3] WARNING: no ack\n", UDP, r"server reported 0 of 1 streams: \[  3\] WARNING"),
        (SENT + HEAD + SENT + END, "", UDP, "no loss and no jitter"),
        (SENT + HEAD + RECEIVED.replace("100/2000", "0/0") + END, "", UDP, "0 datagrams lost of 0"),
        (
            SENT + HEAD + RECEIVED.replace("100/2000", "0/2000") + END,
            "",
            UDP,
            "1900000 bytes in 2000 datagrams",
        ),
        (SENT + HEAD + THOUSANDFOLD + END, "", UDP, "2000000 datagrams of 2000 that were sent"),
        (
            SENT + HEAD + RECEIVED.replace("100/2000", "98100/100000") + END,
            "",
            UDP,
            "100000 datagrams of 2000",
        ),
        (SENT + HEAD + BRIEF + END, "", UDP, "a stream of 0.2 s of 2"),
        (
            SENT.replace("2.0000 sec", "50.000 sec").replace("8000000", "320000") + END,
            "",
            TCP,
            "of 50 s of 2",
        ),
    ],
)
def test_output_without_a_measurement(stdout: str, stderr: str, parameters: dict, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        iperf.parse(stdout, stderr, 0, parameters)


def test_the_servers_report_says_what_arrived() -> None:
    samples = {s.metric: s for s in iperf.parse(SENT + HEAD + RECEIVED + END, "", 0, UDP)}
    assert {name: sample.value for name, sample in samples.items()} == {
        "goodput": 7.6e6,
        "offered": 8e6,
        "datagrams": 2000,
        "loss": 0.05,
        "reordered": 0,
        "jitter": 1e-5,
    }
    assert samples["loss"].resolution == 1 / 2000
