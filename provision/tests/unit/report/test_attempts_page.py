"""Attempts for the trainer: what went how, nothing of a drill at hand, and nothing of anybody's text in force."""

import io
import json
import re

import lab_attempts
import pytest
from whole_page import ATTRIBUTES, HOSTILE, TAGS, Seen, spoil

from overlaylab.core.errors import UserError
from overlaylab.report.attempts_page import ALL, clock, rendered, write
from overlaylab.store import attempts
from overlaylab.store.store import Store

OF_DEBRIEFS = {"em", "strong", "code", "pre", "h4", "ol"}
CAUSE = "narrow|path MTU|MTU too small|Look at sizes|RFC"


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "lab.sqlite") as opened:
        opened.db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        yield opened


def written(store, drill=ALL):
    out = io.StringIO()
    write(store, drill, out)
    return out.getvalue()


def test_history_and_each_attempt(store):
    lab_attempts.repaired(store, trainee="Kim")
    other = lab_attempts.begin(store, drill="names-time-out", title="Names time out")
    attempts.end_attempt(store, other, "abandoned", 30.0, {})
    text = written(store)
    seen = Seen(text)
    assert seen.open == [] and set(seen.tags) <= TAGS | OF_DEBRIEFS and seen.attributes <= ATTRIBUTES
    assert not re.search(r"script|https?:|url\(|@import|src=|href=", text)
    assert seen.of("h1") == ["overlaylab: 2 attempts at drills"]
    cells = seen.of("td")
    assert cells[:7] == ["Pages answer, downloads hang", "large-downloads-hang", "1", "1", "1", "90", "4:00"]
    assert cells[7:14] == ["Names time out", "names-time-out", "1", "1", "0", "–", "–"]
    assert cells[15:23] == [
        "Kim",
        "large-downloads-hang",
        "flannel vxlan",
        "repaired",
        "4:00",
        "90",
        "1",
        "1",
    ]
    said = "\n".join(seen.of("p"))
    for words in (
        "Kim: repaired after 4:00, 90 of 100 points. A trained engineer needs 15 min.",
        "Downloads hang.",
        "the trainee's cause: MTU too small",
        "what it was about: path MTU discovery",
        "A route was narrow.",
    ):
        assert words in said, words
    assert "Look at sizes. (5 points)" in cells
    assert "2 cores, Intel Xeon" in seen.of("dd")


def test_one_drill_alone_and_one_that_nobody_tried(store):
    lab_attempts.repaired(store)
    lab_attempts.repaired(store, drill="names-time-out", title="Names time out")
    assert Seen(written(store, "names-time-out")).of("h1") == ["overlaylab: 1 attempt at drills"]
    with pytest.raises(UserError, match="nobody; tried: large-downloads-hang, names-time-out"):
        written(store, "nobody")


def test_what_failed_in_a_check_and_what_a_solution_changed(store):
    attempt_id = lab_attempts.begin(store)
    findings = [
        {
            "measure": "fetched",
            "role": "client",
            "passes": False,
            "reason": "must be at least 0.9 of what it was",
        },
        {"measure": "rtt", "role": "client", "passes": True, "reason": None},
    ]
    refusals = [{"guard": "firewall", "reason": "node1: a rule is gone"}]
    check = {"passes": False, "findings": findings, "refusals": refusals}
    attempts.add_event(store, attempt_id, "check", 50.0, check)
    step = {"does": "Widen the route.", "changes": {"node1": ["route: mtu 1450", "route: mtu 1300 is gone"]}}
    attempts.add_event(store, attempt_id, "solved-step", 60.0, step)
    attempts.end_attempt(store, attempt_id, "given-up", 60.0, {})
    cells = Seen(written(store)).of("td")
    assert (
        "fails\nfetched from the client: must be at least 0.9 of what it was\nguard firewall: node1: a rule is gone"
        in cells
    )
    assert "Widen the route.\nnode1: route: mtu 1450\nnode1: route: mtu 1300 is gone" in cells


def test_nothing_tells_of_the_cause_of_a_drill_at_hand(store):
    lab_attempts.repaired(store)
    assert re.search(CAUSE, written(store))
    running = lab_attempts.begin(store)
    attempts.add_event(store, running, "hint", 5.0, {"cost": 5, "text": "Look at sizes."})
    text = written(store)
    assert not re.search(CAUSE, text)
    assert "At hand: large-downloads-hang." in text and "at hand" in Seen(text).of("td")
    attempts.end_attempt(store, running, "abandoned", 9.0, {})
    assert re.search(CAUSE, written(store))


def test_times_on_a_clock():
    assert [clock(t) for t in (0.4, 59.6, 754, 3723, -12, -0.2, None)] == [
        "0:00", "1:00", "12:34", "1:02:03", "−0:12", "0:00", "–",
    ]  # fmt: skip


def test_a_debrief_is_markdown_without_html_and_links():
    text = "# Why\n\n*Large* **segments** of `ip link` <b>vanish</b>: [page](javascript:x).\n\n- one\n- two\n\n```sh\nip link\n```"
    assert rendered(text) == (
        "<h4>Why</h4>\n<p><em>Large</em> <strong>segments</strong> of <code>ip link</code> &lt;b&gt;vanish&lt;/b&gt;:"
        " [page](javascript:x).</p>\n<ul>\n<li>one</li>\n<li>two</li>\n</ul>\n<pre><code>ip link\n</code></pre>\n"
    )
    assert rendered("see [the page](docs/overlays.md#flannel)") == "<p>see the page</p>\n"


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_text_of_the_database_is_in_force(store, kind):
    lab_attempts.repaired(store)
    taken = spoil(store.db, HOSTILE[kind])
    assert {"_attempt.title", "_attempt.trainee", "_attempt.drill", "_attempt.cause"} <= taken
    hostile = HOSTILE[kind]
    for event, detail in {
        "ticket": {"ticket": hostile, "may_touch": hostile},
        "hint": {"text": hostile, "cost": hostile},
        "check": {"passes": hostile, "findings": [{"measure": hostile}, hostile], "refusals": hostile},
        "repaired": {"debrief": hostile, "topics": [hostile, 1], "references": hostile},
    }.items():
        store.db.execute("UPDATE _attempt_event SET detail = ? WHERE kind = ?", (json.dumps(detail), event))
    text = written(store)
    seen = Seen(text)
    assert seen.open == [] and set(seen.tags) <= TAGS | OF_DEBRIEFS and seen.attributes <= ATTRIBUTES
    assert "<script" not in text and "</script" not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\u200f\u2028]", text)
    assert len(text) < 1_000_000
