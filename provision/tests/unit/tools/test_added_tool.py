"""A tool is one file, found by its name: what it measures and where its server listens is said there and nowhere else."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from lab_results import maker, outcomes, printed

from overlaylab import tools as package
from overlaylab.core.metrics import METRICS, Metric
from overlaylab.core.model import Sample
from overlaylab.store.store import Store
from overlaylab.tools import base
from overlaylab.tools.parsers import ParseError

FILE = """
from overlaylab.core.metrics import HIGHER, Metric
from overlaylab.core.model import Sample
from overlaylab.tools.base import Server, server_port
from overlaylab.tools.parsers import checked

FRAMES = Metric("frame_rate", "1/s", HIGHER, "video frames that came in time", most=1000.0, zero_whole=False)


class Video:
    name = "video"
    metrics = (FRAMES,)
    parameters = {"properties": {"port": server_port(19800, "tcp"), "data_port": server_port(19801, "udp")}}

    def parse(self, stdout, stderr, exit_code, parameters):
        return checked("video", [Sample("frame_rate", float(stdout))], self.metrics)


TOOL = Video()
"""


@pytest.fixture
def video(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> base.Tool:
    """A tool whose file lies in a folder of this test's own."""
    (tmp_path / "video.py").write_text(FILE, encoding="utf-8")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    yield base.load("video")
    sys.modules.pop("overlaylab.tools.video")


def test_its_file_is_all_that_is_needed(video, tmp_path: Path) -> None:
    assert "video" in base.names()
    assert base.ports(video) == ["19800/tcp", "19801/udp"]
    assert base.metrics()["frame_rate"].unit == "1/s"
    assert set(base.metrics()) - {"frame_rate"} == set(METRICS)
    assert video.parse("59.9", "", 0, {}) == [Sample("frame_rate", 59.9)]


@pytest.mark.parametrize("said", ["0", "-1", "1001", "inf"])
def test_its_metric_holds_its_values_to_what_they_can_be(video, said: str) -> None:
    with pytest.raises(ParseError, match="frame_rate"):
        video.parse(said, "", 0, {})


def test_its_metric_comes_into_the_database_and_the_tables(video, tmp_path: Path) -> None:
    values = {maker.HOST: [60.0, 60.0], maker.FASTDP: [30.0, 45.0]}
    run = replace(maker.RUN, blocks=2, variants=(maker.HOST, maker.FASTDP))
    with Store.open(tmp_path / "lab.sqlite") as store:
        found = outcomes(run, values, metric="frame_rate")
        maker.fill(store, run, benchmarks=[maker.TCP], results=found)
        rows = store.db.execute("SELECT metric_id, name, unit, better FROM metric WHERE metric_id > 900")
        assert [tuple(row) for row in rows] == [(1000, "frame_rate", "1/s", "higher")]
        shown = printed(store)
    assert "tcp-goodput: frame_rate, /s, higher is better" in shown
    assert ".625" in shown


def test_two_tools_do_not_declare_one_metric(video, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base.load("ping"), "metrics", video.metrics, raising=False)
    with pytest.raises(ValueError, match="frame_rate is declared already"):
        base.metrics()


def test_the_unit_of_a_metric_is_one_that_the_lab_knows(video, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video, "metrics", (Metric("furlongs", "furlong", "higher", "how far"),))
    with pytest.raises(ValueError, match="the unit furlong of furlongs is none of bit/s, s"):
        base.metrics()
