"""Benchmarks: argv, durations, parameters. Their parsers: test_parsers.py."""

import pytest

from overlaylab.benchmarks import base

TCP = {"protocol": "tcp", "duration": "5 s", "omit": "1 s", "streams": 1}
PING = {"count": 200, "interval": "20 ms", "payload": "56 bytes"}


def given(tool: str, **written):
    benchmark = base.load(tool)
    return benchmark, base.resolve(benchmark, written)


def test_tools_are_found_by_their_files() -> None:
    assert {"iperf3", "ping", "qperf"} <= set(base.tools())
    for tool in base.tools():
        benchmark = base.load(tool)
        assert benchmark.tool == tool
        # A program of the lab's own has the version of what runs it.
        assert benchmark.version_argv()[0] == ("python3" if tool == "connect" else tool)
        assert benchmark.directions[0] == base.CLIENT_TO_SERVER
        for schema in benchmark.parameters["properties"].values():
            assert "description" in schema or "enum" in schema


def test_iperf3_tcp() -> None:
    benchmark, parameters = given("iperf3", **TCP)
    assert benchmark.server_argv(parameters) == ("iperf3", "--server", "--port", "5201", "--json")
    assert benchmark.server_port(parameters) == 5201
    assert " ".join(benchmark.client_argv("10.0.0.2", parameters)) == (
        "iperf3 --client 10.0.0.2 --port 5201 --json --get-server-output --connect-timeout 5000 "
        "--time 5 --omit 1 --interval 1 --parallel 1 --length 131072"
    )
    assert benchmark.client_argv("10.0.0.2", parameters, base.SERVER_TO_CLIENT)[-1] == "--reverse"
    assert (benchmark.duration(parameters), benchmark.timeout(parameters)) == (6, 29)


def test_iperf3_reads_at_once_what_a_suite_says() -> None:
    benchmark, parameters = given("iperf3", **TCP, length="8 KiB")
    argv = benchmark.client_argv("10.0.0.2", parameters)
    assert argv[argv.index("--length") :] == ("--length", "8192")


def test_iperf3_udp_offers_the_load_by_all_streams_together() -> None:
    written = {**TCP, "protocol": "udp", "streams": 4, "offered": "100 Mbit/s", "datagram": "1448 bytes"}
    benchmark, parameters = given("iperf3", **written)
    argv = benchmark.client_argv("10.0.0.2", parameters)
    assert argv[argv.index("--udp") :] == ("--udp", "--bitrate", "25000000", "--length", "1448")


def test_qperf() -> None:
    benchmark, parameters = given("qperf", test="tcp_lat", duration="2 s")
    assert benchmark.server_argv(parameters) == ("qperf", "--listen_port", "19765")
    assert " ".join(benchmark.client_argv("10.0.0.2", parameters)) == (
        "qperf --listen_port 19765 --ip_port 19766 --time 2 --unify_nodes --unify_units -vvs 10.0.0.2 tcp_lat"
    )
    assert (benchmark.duration(parameters), benchmark.timeout(parameters)) == (2, 23)
    benchmark, parameters = given("qperf", test="conf")
    assert " ".join(benchmark.client_argv("10.0.0.2", parameters)) == (
        "qperf --listen_port 19765 --unify_nodes --unify_units -vvs 10.0.0.2 conf"
    )
    assert benchmark.duration(parameters) == 0


def test_ping_needs_no_server() -> None:
    benchmark, parameters = given("ping", **PING)
    assert benchmark.server_argv(parameters) is None
    assert benchmark.server_port(parameters) is None
    assert " ".join(benchmark.client_argv("10.0.0.2", parameters)) == (
        "ping -n -D -c 200 -i 0.02 -s 56 -W 2 10.0.0.2"
    )
    assert benchmark.duration(parameters) == 4


@pytest.mark.parametrize(
    ("tool", "written", "scale", "changed"),
    [
        ("iperf3", TCP, 4, {"duration": 20}),
        ("iperf3", TCP, 0.5, {"duration": 2}),
        ("iperf3", TCP, 0.1, {"duration": 1}),
        ("qperf", {"test": "conf"}, 4, {}),
        ("ping", PING, 0.5, {"count": 100}),
    ],
)
def test_scale(tool: str, written: dict, scale: float, changed: dict) -> None:
    benchmark, parameters = given(tool, **written)
    assert base.scaled(benchmark, parameters, scale) == {**parameters, **changed}


def test_parameters_are_whole_where_the_tool_takes_whole_ones() -> None:
    _, parameters = given("iperf3", **TCP)
    assert {type(parameters[k]) for k in ("duration", "omit", "port")} == {int}
