"""The drawing under a table: where each dot and mark stands, on which axis, with which words."""

from dataclasses import replace

import pytest

from overlaylab.core.model import Variant
from overlaylab.report.axis import axis, linear_ticks, log_ticks, plain
from overlaylab.report.plot import MANY, plot
from overlaylab.results.published import Pair, Published
from overlaylab.results.rows import Ratio, Row, Table
from overlaylab.stats.inference import LOWER, Interval, Verdict

HOST, SLEEVE = Variant("host"), Variant("weave", "sleeve")


def row(values, variant=HOST, ratio=None, theory=None, published=()):
    own = sorted(values)
    return Row(variant, len(own), own[len(own) // 2] if own else None, min(own, default=None), max(own, default=None),
               ratio, 0, theory, published, tuple(enumerate(values, start=1)))  # fmt: skip


def table(*rows, unit="bit/s", metric="goodput", better="higher"):
    return Table("b", (), None, metric, unit, better, None, rows)


def drawn(*series, unit="bit/s"):
    return plot(table(*(row(own, Variant(f"v{i}")) for i, own in enumerate(series)), unit=unit))


def compared(interval=None, verdict=None):
    """A host of 90 Mbit/s in six blocks, and a sleeve that keeps from 0.2 to 0.45 of it; 0.961 by headers, 0.729 published."""
    each = [90e6 * share for share in (0.2, 0.25, 0.3, 0.35, 0.4, 0.45)]
    held = Ratio(0.325, 0.2, 0.45, 6, False, tuple((own, 90e6) for own in each), 0.0, interval, verdict,
                 tuple(range(1, 7)))  # fmt: skip
    pair = Pair("schaaf-2015", "Azure", "A1", "weave", "sleeve", None, None, "qperf", "tcp", "goodput", None,
                (100e6,), (72.9e6,), ())  # fmt: skip
    theirs = (Published(pair, comparable=True), Published(pair, comparable=False))
    return table(row([90e6] * 6), row(each, SLEEVE, held, 0.961, theirs))


def test_dots_stand_where_their_values_are():
    found = drawn([10e6, 20e6, 30e6], [15e6])
    one, two = found.strips
    (panel,) = found.panels
    left, right = panel.axis.left, panel.axis.right
    at = {dot.title: (dot.x - left) / (right - left) for dot in one.values.dots}
    assert at == {
        "block 1: 10.0 Mbit/s": pytest.approx(0, abs=1e-3),
        "block 2: 20.0 Mbit/s": pytest.approx(0.5, abs=1e-3),
        "block 3: 30.0 Mbit/s": pytest.approx(1, abs=1e-3),
    }
    assert [dot.y for dot in one.values.dots] == [30.0, 38.0, 46.0] and (one.y, one.bottom) == (26, 50)
    assert one.values.median == one.values.dots[1].x
    assert two.values.median is None  # a single dot is its own


def test_a_title_says_what_in_which_unit_and_how_often():
    assert drawn([10e6, 30e6], [15e6]).title == "b: goodput, Mbit/s: 2 overlay modes, 1 to 2 blocks each"
    assert plot(compared()).title == "b: goodput, Mbit/s: 1 overlay mode and the host, 6 blocks each"
    assert drawn([1, 3], unit="1").title == "b: goodput, a count: 1 overlay mode, 2 blocks"


def test_a_title_says_between_which_zones():
    one = replace(table(row([10e6, 20e6])), where="a to b")
    assert plot(one).title == "b (a to b): goodput, Mbit/s: the host, 2 blocks"


def test_values_over_more_than_a_decade_stand_on_a_log_axis():
    (linear,) = drawn([10e6, 100e6]).panels
    (log,) = drawn([5.9e6, 95.7e6]).panels
    assert (linear.title, linear.axis.log) == ("goodput, Mbit/s", False)
    assert (log.title, [text for _, text in log.axis.ticks]) == (
        "goodput, Mbit/s, log axis",
        ["5", "10", "20", "50", "100"],
    )
    assert not drawn([0, 100], unit="1").panels[0].axis.log  # nothing of zero has a place there


def test_counts_have_no_tick_between_them():
    assert [text for _, text in drawn([0, 1], unit="1").panels[0].axis.ticks] == ["0", "1"]


def test_ratios_stand_beside_with_interval_theory_published_and_verdict():
    verdict = Verdict(LOWER, 0.01, LOWER)
    found = plot(compared(Interval(0.2, 0.45, 0.97), verdict))
    _, ratios = found.panels
    host, sleeve = found.strips
    assert host.ratio is None and sleeve.word == "slower"
    at = ratios.axis.place
    assert (ratios.title, ratios.one) == ("ratio to host, log axis", at(1))
    assert sleeve.ratio.span == (at(0.2), at(0.45), True)
    assert (sleeve.ratio.median, sleeve.ratio.theory, sleeve.ratio.published) == (
        at(0.325),
        at(0.961),
        (at(0.729),),
    )
    assert [dot.title for dot in sleeve.ratio.dots][:2] == ["block 1: 0.200", "block 2: 0.250"]
    assert [kind for kind, _ in found.legend] == ["dot", "median", "interval", "theory", "published", "one"]
    assert dict(found.legend)["interval"] == "where the median lies with 95 % or more"


def test_nothing_is_claimed_of_a_run_that_goes_on():
    found = plot(compared(Interval(0.2, 0.45, 0.97), Verdict(LOWER, 0.01, LOWER)), final=False)
    assert found.strips[1].word == "" and found.strips[1].ratio.span[2] is False
    assert dict(found.legend)["range"] == "min–max of the blocks: nothing is claimed"
    assert "interval" not in dict(found.legend)


def test_a_legend_has_nothing_that_is_not_drawn():
    assert drawn([10e6], [20e6]).legend == (("dot", "one trial"),)


def test_a_variant_without_a_value_has_a_strip():
    (one, two) = drawn([10e6, 20e6], []).strips
    assert two.values.dots == () and one.values.dots


def test_very_many_dots_are_one_path():
    (strip,) = drawn([1e6 + i for i in range(MANY + 1)]).strips
    assert strip.values.dots == () and strip.values.path.count("M") == MANY + 1
    assert strip.values.path.startswith(f"M{strip.values.path[1:].split()[0]} 26h0")


@pytest.mark.parametrize("series", [[], [[]], [[5e6]]])
def test_where_nothing_is_to_be_compared_there_is_no_drawing(series):
    assert drawn(*series) is None


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 100, (0, 20, 6)),
        (95.5, 95.8, (95.5, 0.1, 4)),
        (0.116, 0.961, (0.0, 0.2, 6)),
        (5, 5, (4.94, 0.02, 7)),
        (0, 0, (0, 0.2, 6)),
        (-3, 7, (-4, 2, 7)),
    ],
)
def test_ticks_are_round_and_hold_all(low, high, expected):
    first, step, count = linear_ticks(low, high, 6)
    assert (pytest.approx(first), pytest.approx(step), count) == expected
    assert first <= low + 1e-9 and high <= first + step * (count - 1) + 1e-9


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (5.9, 95.7, 8, [5, 10, 20, 50, 100]),
        (0.06, 1, 5, [0.05, 0.1, 0.2, 0.5, 1]),
        (0.06, 1, 4, [0.1, 1]),
        (1, 1000, 8, [1, 10, 100, 1000]),
        (1e-6, 1e6, 4, [1e-6, 1e-2, 1e2, 1e6]),
    ],
)
def test_log_ticks_are_round(low, high, most, expected):
    assert log_ticks(low, high, most) == pytest.approx(expected)


def test_a_log_axis_holds_all():
    one = axis([0.0616, 1.0], 0, 100)
    assert one.log and 0 <= one.place(0.0616) < one.place(0.1) < one.place(1.0) <= 100
    assert [plain(number) for number in (0.05, 0.1, 2, 10, 20000)] == ["0.05", "0.1", "2", "10", "20000"]
