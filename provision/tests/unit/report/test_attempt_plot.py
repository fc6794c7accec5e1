"""Strips of what was felt: parts that lie together are one, gaps stay gaps, curves stand on zero."""

from overlaylab.report.attempt_plot import HEIGHT, SLICES, Felt, Mark, plot


def felt(measure, unit, values, phase="running", first=1.0, step=1.0):
    return [Felt(first + i * step, "client", phase, measure, unit, value) for i, value in enumerate(values)]


def minutes_at(drawing, x):
    axis = drawing.axis
    return axis.first + (x - axis.left) / (axis.right - axis.left) * (axis.last - axis.first)


def test_shares_are_spans_that_end_with_their_cycles():
    drawing = plot(felt("page", "ratio", [1, 1, 0, 0.5, None, 1], step=60.0, first=60.0), [])
    (strip,) = drawing.strips
    assert [span.kind for span in strip.spans] == ["whole", "none", "part", "whole"]
    ends = [round(minutes_at(drawing, span.x + span.width), 1) for span in strip.spans]
    assert ends == [2, 3, 4, 6]
    assert strip.label == "page, client" and strip.spans[1].title == "page, client: nothing came through"


def test_from_the_baseline_to_the_fault_nothing_is_drawn():
    drawing = plot(
        felt("page", "ratio", [1], phase="healthy", first=-40.0) + felt("page", "ratio", [0], first=-10.0), []
    )
    first, second = drawing.strips[0].spans
    assert round(minutes_at(drawing, second.x) * 60) == -11
    assert first.x + first.width < second.x


def test_a_curve_breaks_where_nothing_could_be_measured_and_has_its_healthy_level():
    rows = felt("goodput", "bit/s", [8e8], phase="healthy", first=-3.0) + felt(
        "goodput", "bit/s", [4e8, None, 2e8]
    )
    (strip,) = plot(rows, []).strips
    assert strip.path.count("M") == 2 and strip.path.count("L") == 1
    assert strip.healthy == strip.y and strip.note == "≤ 800 Mbit/s"
    assert strip.path.endswith(f" {strip.y + HEIGHT * 0.75:g}")


def test_what_could_never_be_measured_says_so_and_nothing_at_all_is_no_drawing():
    (strip,) = plot(felt("rtt", "s", [None, None]), []).strips
    assert (strip.path, strip.note) == ("", "not measured")
    assert plot([], []) is None


def test_many_cycles_are_drawn_as_few():
    drawing = plot(felt("rtt", "s", [1e-3] * 5000), [])
    (strip,) = drawing.strips
    assert strip.path.count("L") <= SLICES + 1


def test_events_stand_where_they_happened_and_an_old_baseline_is_left_out():
    marks = [
        Mark(-500.0, "", "the service measured"),
        Mark(0.0, "ticket", "the ticket"),
        Mark(90.0, "H1", "hint 1"),
    ]
    drawing = plot(
        felt("page", "ratio", [1], phase="healthy", first=-500.0) + felt("page", "ratio", [1] * 90), marks
    )
    assert [(round(minutes_at(drawing, x), 2), short) for x, short, _ in drawing.marks] == [
        (0, "ticket"),
        (1.5, "H1"),
    ]
    assert drawing.axis.first <= 0 and len(drawing.strips[0].spans) == 1


def test_names_of_events_never_lie_over_each_other():
    marks = [Mark(0.0, "ticket", ""), Mark(290.0, "C2", ""), Mark(291.0, "", ""), Mark(300.0, "repaired", "")]
    drawing = plot(felt("page", "ratio", [1] * 300), marks)
    assert [short for _, short, _ in drawing.marks] == ["ticket", "", "", "repaired"]
