"""Tools: argv, durations, parameters. Their parsers: test_parsers.py."""

import signal
import socket
import subprocess
import time

import pytest
from lab_builders import runs

from overlaylab.tools import base, iperf, sockperf

TCP = {"protocol": "tcp", "duration": "5 s", "omit": "1 s", "streams": 1}
PING = {"count": 200, "interval": "20 ms", "payload": "56 bytes"}


def given(name: str, **written):
    tool = base.load(name)
    return tool, base.resolve(tool, written)


def test_tools_are_found_by_their_files() -> None:
    assert base.names() == ("connect", "iperf", "iperf3", "netperf", "ping", "qperf", "sockperf")
    for name in base.names():
        tool = base.load(name)
        assert tool.name == name
        assert isinstance(tool.closed_loop, bool)
        # A program of the lab's own has the version of what runs it.
        assert tool.version_argv()[0] == ("python3" if name == "connect" else name)
        assert tool.directions[0] == base.CLIENT_TO_SERVER
        for schema in tool.parameters["properties"].values():
            assert "description" in schema or "enum" in schema


def test_iperf3_tcp() -> None:
    tool, parameters = given("iperf3", **TCP)
    argv = ("iperf3", "--server", "--port", "5201", "--json")
    assert tool.server(parameters) == base.Server(argv, 5201, "tcp")
    assert " ".join(tool.client_argv("10.0.0.2", parameters)) == (
        "iperf3 --client 10.0.0.2 --port 5201 --json --get-server-output --connect-timeout 5000 "
        "--time 5 --omit 1 --interval 1 --parallel 1 --length 131072"
    )
    assert tool.client_argv("10.0.0.2", parameters, base.SERVER_TO_CLIENT)[-1] == "--reverse"
    assert (tool.duration(parameters), tool.timeout(parameters)) == (6, 29)


def test_iperf3_reads_at_once_what_a_suite_says() -> None:
    tool, parameters = given("iperf3", **TCP, length="8 KiB")
    argv = tool.client_argv("10.0.0.2", parameters)
    assert argv[argv.index("--length") :] == ("--length", "8192")


def test_iperf3_takes_a_segment_size() -> None:
    tool, parameters = given("iperf3", **TCP, mss="536 bytes")
    argv = tool.client_argv("10.0.0.2", parameters)
    assert argv[argv.index("--set-mss") :] == ("--set-mss", "536")


def test_iperf3_udp_offers_the_load_by_all_streams_together() -> None:
    written = {**TCP, "protocol": "udp", "streams": 4, "offered": "100 Mbit/s", "datagram": "1448 bytes"}
    tool, parameters = given("iperf3", **written)
    argv = tool.client_argv("10.0.0.2", parameters)
    assert argv[argv.index("--udp") :] == ("--udp", "--bitrate", "25000000", "--length", "1448")


def test_qperf() -> None:
    tool, parameters = given("qperf", test="tcp_lat", duration="2 s")
    assert tool.server(parameters) == base.Server(("qperf", "--listen_port", "19765"), 19765)
    assert " ".join(tool.client_argv("10.0.0.2", parameters)) == (
        "qperf --listen_port 19765 --ip_port 19766 --time 2 --unify_nodes --unify_units -vvs 10.0.0.2 tcp_lat"
    )
    assert (tool.duration(parameters), tool.timeout(parameters)) == (2, 23)
    tool, parameters = given("qperf", test="conf")
    assert " ".join(tool.client_argv("10.0.0.2", parameters)) == (
        "qperf --listen_port 19765 --unify_nodes --unify_units -vvs 10.0.0.2 conf"
    )
    assert tool.duration(parameters) == 0


def test_qperf_udp() -> None:
    tool, parameters = given("qperf", test="udp_bw", duration="2 s", message="1448 bytes")
    assert " ".join(tool.client_argv("10.0.0.2", parameters)) == (
        "qperf --listen_port 19765 --ip_port 19766 --time 2 --msg_size 1448"
        " --unify_nodes --unify_units -vvs 10.0.0.2 udp_bw"
    )


def test_iperf_tcp() -> None:
    tool, parameters = given("iperf", protocol="tcp", duration="10 s", streams=10, mss="1358 bytes")
    argv = ("iperf", "--server", "--port", "5001")
    assert tool.server(parameters) == base.Server(argv, 5001, "tcp")
    client = tool.client_argv("10.0.0.2", parameters)
    assert client[:2] == ("sh", "-c")
    assert " ".join(client[4:]) == (
        "iperf --client 10.0.0.2 --port 5001 --enhanced --format b --time 10 --parallel 10 --len 131072 --mss 1358"
    )
    assert (tool.duration(parameters), tool.timeout(parameters)) == (10, 50)


def test_iperf_udp_offers_the_load_by_all_streams_together_to_a_server_of_its_own() -> None:
    written = {"protocol": "udp", "duration": "10 s", "streams": 4, "offered": "1000 Mbit/s"}
    tool, parameters = given("iperf", **written, datagram="1470 bytes")
    server = tool.server(parameters)
    assert (server.port, server.transport) == (5001, "udp")
    # One that ends after the streams of one trial, again and again.
    assert server.argv[:2] == ("sh", "-c")
    assert server.argv[4:] == (
        "iperf", "--server", "--udp", "--port", "5001", "--len", "65507", "--parallel", "4",
    )  # fmt: skip
    assert " ".join(tool.client_argv("10.0.0.2", parameters)[4:]) == (
        "iperf --client 10.0.0.2 --port 5001 --udp --enhanced --format b --time 10 --parallel 4"
        " --bandwidth 250000000 --len 1470"
    )


@pytest.mark.parametrize("words", [iperf.WITH_AN_END, sockperf.LOG_AFTERWARDS], ids=["iperf", "sockperf"])
def test_a_tool_that_does_not_heed_the_end_of_its_time_is_killed(words: str) -> None:
    """timeout(1) sends KILL only as long as what it started is there: iperf 2 outlived a shell that had gone."""
    deaf = "trap '' TERM; echo $$; exec sleep 5"
    argv = ["timeout", "-k", "0.2", "0.3", "sh", "-c", words, "sh", "sh", "-c", deaf]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    for _ in range(100):  # a process takes its time to end; this one has five seconds of its own
        if not runs(int(done.stdout)):
            break
        time.sleep(0.01)
    assert not runs(int(done.stdout))


def test_netperf() -> None:
    tool, parameters = given("netperf", test="udp_rr", transactions=50000, request="300 bytes")
    argv = ("netserver", "-D", "-4", "-p", "19768")
    assert tool.server(parameters) == base.Server(argv, 19768, "tcp")
    assert " ".join(tool.client_argv("10.0.0.2", parameters)).startswith(
        "netperf -4 -H 10.0.0.2 -p 19768 -t UDP_RR -l -50000 -P 0 -j -c -C -- -r 300,300 -P ,19769 -k THROUGHPUT,"
    )
    # A request and its answer of 300 bytes each: 48 µs at 100 Mbit/s beside 1 ms; 4.8 ms at 1 Mbit/s beside 5 ms.
    assert tool.duration(parameters) == pytest.approx(50000 * 0.001048)
    assert tool.timeout(parameters) == pytest.approx(30 + 50000 * 0.0098)


def test_netperf_answers_of_another_size() -> None:
    tool, parameters = given("netperf", test="tcp_crr", transactions=1, request="1 KiB", response="1 bytes")
    argv = tool.client_argv("10.0.0.2", parameters)
    assert argv[argv.index("-r") + 1] == "1024,1"
    assert argv[argv.index("-t") + 1] == "TCP_CRR"


def test_a_datagram_of_netperf_is_no_larger_than_udp_allows() -> None:
    with pytest.raises(base.ParameterError, match="request"):
        given("netperf", test="udp_rr", transactions=1, request="64 KiB")
    _, parameters = given("netperf", test="tcp_rr", transactions=1, request="64 KiB")
    assert parameters["request"] == 65536


@pytest.mark.parametrize(("protocol", "words"), [("udp", ()), ("tcp", ("--tcp",))])
def test_sockperf(protocol: str, words: tuple[str, ...]) -> None:
    written = {"protocol": protocol, "duration": "10 s", "messages_per_second": 1000, "message": "64 bytes"}
    tool, parameters = given("sockperf", **written)
    argv = ("sockperf", "server", *words, "-p", "19770")
    assert tool.server(parameters) == base.Server(argv, 19770, protocol)
    client = tool.client_argv("10.0.0.2", parameters)
    assert client[:2] == ("sh", "-c")
    assert client[3:] == (
        *("sh", "sockperf", "under-load", *words, "-i", "10.0.0.2", "-p", "19770", "--time", "10"),
        *("--mps", "1000", "--reply-every", "1", "--msg-size", "64", "--full-rtt"),
        *("--full-log", "/dev/fd/5"),
    )
    assert (tool.duration(parameters), tool.timeout(parameters)) == (12, 54)


def test_the_log_of_sockperf_follows_what_it_prints_and_its_exit_code_is_kept() -> None:
    """Also where standard output is a socket, as a daemon may give it, which cannot be opened by name."""
    tool, parameters = given(
        "sockperf", protocol="udp", duration="1 s", messages_per_second=20, message="14 bytes"
    )
    words = tool.client_argv("10.0.0.2", parameters)[:4]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        program = "exec 6>/dev/fd/5; echo one >&6; echo two; echo three >&6; echo four; exit 7"
        done = subprocess.run([*words, "sh", "-c", program], stdout=theirs, check=False)
        theirs.close()
        printed = b"".join(iter(lambda: ours.recv(100), b""))
    assert (printed, done.returncode) == (b"two\nfour\none\nthree\n", 7)


def test_ping_needs_no_server() -> None:
    tool, parameters = given("ping", **PING)
    assert tool.server(parameters) is None
    assert " ".join(tool.client_argv("10.0.0.2", parameters)) == (
        "ping -n -D -c 200 -i 0.02 -s 56 -W 2 10.0.0.2"
    )
    assert tool.duration(parameters) == 4


@pytest.mark.parametrize(
    ("name", "written", "scale", "changed"),
    [
        ("iperf3", TCP, 4, {"duration": 20}),
        ("iperf3", TCP, 0.5, {"duration": 2}),
        ("iperf3", TCP, 0.1, {"duration": 1}),
        ("qperf", {"test": "conf"}, 4, {}),
        ("ping", PING, 0.5, {"count": 100}),
        ("netperf", {"test": "tcp_rr", "transactions": 500, "request": "1 bytes"}, 0.1, {"transactions": 50}),
    ],
)
def test_scale(name: str, written: dict, scale: float, changed: dict) -> None:
    tool, parameters = given(name, **written)
    assert base.scaled(tool, parameters, scale) == {**parameters, **changed}


@pytest.mark.parametrize("name", ["iperf3", "iperf"])
def test_a_datagram_of_path_size_is_what_the_overlay_carries_whole(name: str) -> None:
    own = {"omit": "0 s"} if name == "iperf3" else {}
    tool, parameters = given(
        name, protocol="udp", duration="5 s", streams=1, offered="10 Mbit/s", datagram="path", **own
    )
    assert parameters["datagram"] == "path"
    assert base.scaled(tool, parameters, 2)["datagram"] == "path"
    told = base.at_mtu(parameters, 1376)
    assert told == {**parameters, "datagram": 1348}
    assert "1348" in " ".join(tool.client_argv("10.32.0.2", told)).split()


def test_only_sizes_may_be_the_paths() -> None:
    with pytest.raises(base.ParameterError):
        given(
            "iperf3",
            protocol="udp",
            duration="path",
            omit="0 s",
            streams=1,
            offered="1 Mbit/s",
            datagram="path",
        )
    with pytest.raises(base.ParameterError):
        given(
            "iperf3",
            protocol="udp",
            duration="1 s",
            omit="0 s",
            streams=1,
            offered="1 Mbit/s",
            datagram="paths",
        )


def test_parameters_are_whole_where_the_tool_takes_whole_ones() -> None:
    _, parameters = given("iperf3", **TCP)
    assert {type(parameters[k]) for k in ("duration", "omit", "port")} == {int}
