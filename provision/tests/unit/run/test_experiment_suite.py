"""What a suite brings to a request: fresh boots, baselines, a cluster."""

from dataclasses import replace

import pytest

from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.run import experiment
from overlaylab.run.options import Options
from overlaylab.specs.suite import load_suite

pytestmark = pytest.mark.usefixtures("own_cache")


def test_fresh_boots_are_the_suites_unless_asked_otherwise(tmp_path, monkeypatch) -> None:
    assert experiment.request("weave").fresh == 0
    assert experiment.request("weave", Options(fresh=3)).fresh == 3
    monkeypatch.setattr(experiment, "load_suite", lambda name: replace(load_suite(name), fresh=5))
    assert experiment.request("weave").fresh == 5
    assert experiment.request("weave", Options(fresh=0)).fresh == 0
    asked = experiment.request("weave", Options(fresh=3, seed=7))
    assert experiment.again(asked.arguments(), "libvirt").fresh == 3
    with pytest.raises(UserError, match="FRESH: must lie between 0 and 1000"):
        experiment.request("weave", Options(fresh=-1))


def test_a_suite_brings_its_own_baselines_and_cluster(monkeypatch) -> None:
    assert experiment.request("host", Options(suite="noise")).variants == (
        Variant("host"),
        Variant("host", "again"),
    )
    assert experiment.request("weave").cluster == "pair"
    monkeypatch.setattr(
        experiment,
        "load_suite",
        lambda name: replace(load_suite(name), also=("bridge/bridge",), cluster="three-zones"),
    )  # fmt: skip
    asked = experiment.request("weave", Options(modes="fastdp"))
    assert asked.variants == (Variant("host"), Variant("bridge"), Variant("weave", "fastdp"))
    assert asked.cluster == "three-zones"
    assert experiment.request("bridge").variants == (Variant("host"), Variant("bridge"))
    assert experiment.request("weave", Options(cluster="pair")).cluster == "pair"
