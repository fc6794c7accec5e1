"""Suites. Wrong ones: test_documents_golden.py."""

import json
import re
from pathlib import Path

import pytest

from overlaylab.core.documents import names_in
from overlaylab.core.paths import ROOT, SUITES
from overlaylab.specs.suite import BenchmarkSpec, load_suite, read_suite
from overlaylab.tools import base


def test_quick() -> None:
    quick = load_suite("quick")
    assert quick.fills_bucket is True
    assert quick.blocks == 6
    assert quick.benchmarks == (
        BenchmarkSpec(
            name="tcp-goodput",
            tool="iperf3",
            parameters={
                "protocol": "tcp",
                "duration": 5,
                "omit": 1,
                "streams": 1,
                "length": 8192,
                "port": 5201,
            },
            repetitions=1,
            warmups=0,
            placement="remote",
            direction="client-to-server",
        ),
        BenchmarkSpec(
            name="tcp-latency",
            tool="qperf",
            parameters={"test": "tcp_lat", "duration": 2, "port": 19765, "data_port": 19766},
            repetitions=1,
            warmups=0,
            placement="remote",
            direction="client-to-server",
        ),
    )


def test_schaaf_2015_is_what_its_author_ran() -> None:
    suite = load_suite("schaaf-2015")
    assert suite.blocks == 3
    assert [(b.tool, b.parameters["test"], b.parameters.get("duration")) for b in suite.benchmarks] == [
        ("qperf", "tcp_bw", 2),
        ("qperf", "tcp_lat", 2),
        ("qperf", "conf", None),
    ]


def told(name: str) -> list[tuple]:
    """(benchmark, tool, parameters without ports, placement) of a suite."""
    return [
        (b.name, b.tool, {k: v for k, v in b.parameters.items() if not k.endswith("port")}, b.placement)
        for b in load_suite(name).benchmarks
    ]


def test_skybet_2017_is_what_its_author_ran_and_the_same_with_datagrams_that_fit() -> None:
    suite = load_suite("skybet-2017")
    assert (suite.cluster, suite.blocks) == ("three-zones", 3)
    common = {"protocol": "udp", "duration": 10, "omit": 0, "streams": 1, "length": 131072}
    assert told("skybet-2017") == [
        (f"udp-{load}-{name}", "iperf3", {**common, "offered": load * 1e6, "datagram": size}, "remote")
        for load in (1, 10, 100, 1000, 3000)
        for name, size in (("8k", 8192), ("path", "path"))
    ]


def test_ukti_2016_is_what_its_author_ran() -> None:
    parameters = {"protocol": "tcp", "duration": 10, "streams": 10, "length": 131072}
    assert told("ukti-2016") == [("tcp-goodput", "iperf", parameters, "remote")]
    assert load_suite("ukti-2016").blocks == 3


def test_deitcher_2016_is_what_its_author_ran() -> None:
    sizes = (300, 500, 1024, 2048, 8192, 16384, 32768, 65536)
    assert told("deitcher-2016") == [
        (
            f"{test}-rr-{size}-{place}",
            "netperf",
            {
                "test": f"{test}_rr",
                "transactions": 50000,
                "request": min(size, 65507) if test == "udp" else size,
            },
            place,
        )
        for place in ("remote", "local")
        for test in ("tcp", "udp")
        for size in sizes
    ]


def test_weave_vs_flannel_2016_is_what_its_author_ran_and_a_sweep() -> None:
    first, second, *rest = told("weave-vs-flannel-2016")
    assert first == (
        "tcp-goodput",
        "iperf",
        {"protocol": "tcp", "duration": 60, "streams": 1, "length": 131072},
        "remote",
    )
    assert second[2] == {
        "protocol": "udp", "duration": 60, "streams": 1, "length": 131072, "offered": 1e9, "datagram": 1470,
    }  # fmt: skip
    assert [(name, tool) for name, tool, *_ in rest[:2]] == [
        ("tcp-goodput-iperf3", "iperf3"),
        ("udp-1000-iperf3", "iperf3"),
    ]
    assert [parameters["datagram"] for *_, parameters, _ in rest[2:]] == [64, 512, 1024, 1472, "path", 8192]


def test_full_has_every_tool_and_boots_anew() -> None:
    suite = load_suite("full")
    assert {b.tool for b in suite.benchmarks} == set(base.names())
    assert {b.parameters["protocol"] for b in suite.benchmarks if b.tool == "iperf"} == {"tcp", "udp"}
    assert {b.direction for b in suite.benchmarks} == {"client-to-server", "server-to-client"}
    assert {b.placement for b in suite.benchmarks} == {"remote", "local"}
    assert (suite.fresh, suite.primary) == (5, ("tcp-goodput", "goodput"))


def test_scale_stretches_what_is_measured_and_nothing_else() -> None:
    quick, scaled = load_suite("quick"), load_suite("quick").scaled(4)
    assert [b.parameters["duration"] for b in scaled.benchmarks] == [20, 8]
    assert scaled.benchmarks[0].parameters["omit"] == 1
    assert (scaled.blocks, scaled.digest) == (quick.blocks, quick.digest)
    assert [b.parameters["duration"] for b in quick.scaled(0.1).benchmarks] == [1, 1]
    assert quick.scaled(1) == quick


@pytest.mark.parametrize("name", names_in(SUITES))
def test_every_suite_in_the_folder_is_right_and_can_be_stored(name: str) -> None:
    for benchmark in load_suite(name).benchmarks:
        assert json.loads(json.dumps(benchmark.parameters)) == benchmark.parameters


def test_what_a_suite_says_of_scale_can_be_typed() -> None:
    for name in names_in(SUITES):
        for scale in re.findall(r"SCALE=([\d.]*\d)", (SUITES / f"{name}.yml").read_text()):
            assert load_suite(name).scaled(float(scale)).name == name


def test_the_example_in_the_docs_is_right_and_its_table_names_every_parameter(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "adding-a-benchmark.md").read_text()
    path = tmp_path / "example.yml"
    path.write_text(page.split("```yaml\n")[1].split("```")[0])
    assert read_suite(path).benchmarks == load_suite("quick").benchmarks[:1]
    for tool in base.names():
        (row,) = (line for line in page.splitlines() if line.startswith(f"| `{tool}` |"))
        known = set(base.load(tool).parameters["properties"])
        assert set(re.findall(r"`([a-z_]+)`", row)) - {tool} == known - {"port", "data_port"}


def test_a_suite_may_look_at_what_is_left_of_a_bucket(tmp_path: Path) -> None:
    text = (SUITES / "quick.yml").read_text()
    (tmp_path / "long.yml").write_text(text.replace("blocks: 6", "blocks: 6\nbucket: kept"))
    assert read_suite(tmp_path / "long.yml").fills_bucket is False
