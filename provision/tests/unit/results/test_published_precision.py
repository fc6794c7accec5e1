"""What is known of published figures: how exactly they were printed, and what is wrong with them."""

import csv

import pytest

from overlaylab.core.paths import DB
from overlaylab.results import precision
from overlaylab.results.published import pairs
from overlaylab.store.store import Store


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    with Store.open(tmp_path_factory.mktemp("db") / "lab.sqlite") as store:
        return pairs(store)


def pair(found, instance, overlay="weave", metric="goodput", **more):
    (one,) = [
        p
        for p in found
        if (p.instance, p.overlay, p.metric) == (instance, overlay, metric)
        and all(getattr(p, key) == value for key, value in more.items())
    ]
    return one


def bounds(one):
    interval = precision.published_interval(one)
    return round(interval.low, 3), round(interval.high, 3), interval.coverage


def test_every_pair_is_found_once(found) -> None:
    names = [(p.publication, p.cloud, p.instance, p.overlay, p.mode, p.mtu, p.metric) for p in found]
    assert len(set(names)) == len(names) == 22
    assert sum(p.metric == "latency_one_way" for p in found) == 7
    # The host's UDP run was 10 s and the overlays' 60 s: no pair.
    assert {p.protocol for p in found} == {"tcp"}


def test_repetitions_are_averaged_and_their_spread_is_the_interval(found) -> None:
    one = pair(found, "t2.small", "docker-overlay")
    assert (one.host_values, one.overlay_values) == ((934e6, 892e6, 832e6), (271e6, 270e6, 273e6))
    assert one.ratio == pytest.approx(0.3062, abs=5e-5)
    assert bounds(one) == (0.266, 0.354, 0.95)


def test_three_runs_that_differ_by_a_tenth_do_not_tell_an_overlay_from_the_host(found) -> None:
    assert bounds(pair(found, "m4.xlarge", "docker-overlay")) == (0.844, 1.122, 0.95)


def test_three_runs_that_agree_show_that_headers_are_not_all(found) -> None:
    low, high, _ = bounds(pair(found, None, "docker-overlay"))
    assert (low, high) == (0.934, 0.953)  # VXLAN's headers would leave 0.9655


def test_a_tools_step_counts_both_ways(found) -> None:
    # 17 of 18 messages: (17 − 1) / (18 + 1) to (17 + 1) / (18 − 1), and half of the last printed digit.
    assert bounds(pair(found, "A0")) == (0.840, 1.060, None)
    assert pair(found, "A0").same
    assert not pair(found, "A1").same


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        # 115 of 115 MiB/s, 42.4 of 115, and 83.9 of 115: three digits each.
        ({"mode": "fastdp", "mtu": 8950}, (114.5 / 115.5, 115.5 / 114.5)),
        ({"mode": "fastdp", "mtu": 1410}, (42.35 / 115.5, 42.45 / 114.5)),
        ({"mode": "sleeve", "mtu": 8950}, (83.85 / 115.5, 83.95 / 114.5)),
    ],
)
def test_a_single_run_is_known_to_its_printed_digits(found, more, expected) -> None:
    interval = precision.published_interval(pair(found, "t2.medium", **more))
    assert (interval.low, interval.high) == pytest.approx(expected, abs=1e-6)
    assert interval.coverage is None


def test_latencies_are_known_to_their_printed_digits(found) -> None:
    interval = precision.published_interval(pair(found, "A8", metric="latency_one_way"))
    assert (interval.low, interval.high) == pytest.approx((187.5 / 94.25, 188.5 / 94.15))
    assert pair(found, "A1", metric="latency_one_way").ratio == 1.0


def test_nothing_is_made_up_where_the_rounding_is_unknown(found, monkeypatch) -> None:
    monkeypatch.setattr(precision, "_precisions", dict)
    assert precision.published_interval(pair(found, "A1")) is None
    assert bounds(pair(found, "t2.small", "docker-overlay")) == (0.266, 0.354, 0.95)


def test_flaws_are_those_of_the_pair(found) -> None:
    assert precision.flaws_of(pair(found, "A2")) == ()
    (slip,) = precision.flaws_of(pair(found, "A1", metric="latency_one_way"))
    assert "same latency for host and overlay" in slip
    assert [flaw[:10] for flaw in precision.flaws_of(pair(found, "t2.small", "docker-overlay"))] == [
        "Host and o",
        "It prints ",
    ]
    assert "suspected the tool" in precision.flaws_of(pair(found, "t2.medium", "flannel"))[0]


@pytest.mark.parametrize("name", ["published_precision.csv", "published_flaws.csv"])
def test_each_line_beside_the_published_rows_is_about_some_of_them(name) -> None:
    def rows(path):
        with path.open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))

    published = rows(DB / "published.csv")
    keys = set(precision.FLAW_KEYS) | {"tool"}
    for line in rows(DB / name):
        about = {key: line[key] for key in keys & line.keys() if line[key]}
        assert any(about.items() <= row.items() for row in published), about
