"""Summary and histogram: what is written beside a trial's samples."""

import pytest

from overlaylab.core.model import Sample
from overlaylab.store.summary import histogram, quantile, summarise


def test_a_summary_is_over_intervals_and_counts_with_the_whole_value():
    samples = [
        Sample("goodput", v, t, t + 1.0, resolution=2.0) for t, v in enumerate((30.0, 10.0, 20.0, 40.0))
    ]
    (one,) = summarise([*samples, Sample("goodput", 25.5), Sample("goodput", 39.0, quantile=0.99)])
    assert (one.metric, one.basis, one.n, one.value, one.mean) == ("goodput", "interval", 4, 25.5, 25.0)
    assert (one.low, one.high, one.resolution) == (10.0, 40.0, 2.0)
    assert one.quantiles == pytest.approx((10.3, 11.5, 17.5, 25.0, 32.5, 38.5, 39.7))


def test_a_summary_without_intervals_is_of_the_whole():
    (one,) = summarise([Sample("latency_one_way", 0.001)])
    assert (one.basis, one.n, one.value, one.low, one.high, one.bins) == ("whole", 1, 0.001, 0.001, 0.001, ())


def test_a_summary_without_a_whole_value_counts_with_the_median():
    (one,) = summarise([Sample("latency_rtt", v, t, t) for t, v in enumerate((0.3, 0.1, 0.2))])
    assert (one.basis, one.value) == ("interval", 0.2)


def test_only_percentiles_give_no_summary():
    assert summarise([Sample("latency_rtt", 0.2, quantile=0.5)]) == []


@pytest.mark.parametrize(("q", "value"), [(0.0, 1.0), (0.25, 1.75), (0.5, 2.5), (1.0, 4.0)])
def test_quantiles_interpolate(q, value):
    assert quantile([1.0, 2.0, 3.0, 4.0], q) == value


def test_histograms_have_the_same_bins_for_every_trial():
    bins = histogram([1.0, 1.001, 10.0, 0.0, 0.0, -1.0, 1.02])
    assert [n for _, _, n in bins] == [1, 2, 2, 1, 1]
    lower, upper = 1.0, 10 ** (1 / 200)
    assert bins[0][:2] == pytest.approx((-upper, -lower))
    assert bins[1] == (0.0, 0.0, 2)
    assert bins[2][:2] == pytest.approx((lower, upper))
    assert bins[3][:2] == pytest.approx((upper, 10 ** (2 / 200)))
    assert bins[4][:2] == pytest.approx((10.0, 10 ** (201 / 200)))


def test_a_value_on_an_edge_belongs_to_the_bin_above_it():
    edges = [10 ** (k / 200) for k in range(-2400, 2400)]
    assert [lower for lower, _, _ in histogram(edges)] == pytest.approx(edges)
