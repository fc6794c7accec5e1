"""Suites. Wrong ones: test_documents_golden.py."""

import json
import re
from pathlib import Path

import pytest

from overlaylab.benchmarks import base
from overlaylab.documents import names_in
from overlaylab.paths import ROOT, SUITES
from overlaylab.suite import BenchmarkSpec, load_suite, read_suite


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


def test_the_example_in_the_docs_is_right_and_its_table_names_every_parameter(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "adding-a-benchmark.md").read_text()
    path = tmp_path / "example.yml"
    path.write_text(page.split("```yaml\n")[1].split("```")[0])
    assert read_suite(path).benchmarks == load_suite("quick").benchmarks[:1]
    for tool in base.tools():
        (row,) = (line for line in page.splitlines() if line.startswith(f"| `{tool}` |"))
        known = set(base.load(tool).parameters["properties"])
        assert set(re.findall(r"`([a-z_]+)`", row)) - {tool} == known - {"port", "data_port"}


def test_a_suite_may_look_at_what_is_left_of_a_bucket(tmp_path: Path) -> None:
    text = (SUITES / "quick.yml").read_text()
    (tmp_path / "long.yml").write_text(text.replace("blocks: 6", "blocks: 6\nbucket: kept"))
    assert read_suite(tmp_path / "long.yml").fills_bucket is False
